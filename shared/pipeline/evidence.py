"""What the runs of a scale are evidence of: the paper's own data, other published data, generated data, or none."""

from __future__ import annotations

import importlib

from shared.claims.outcomes import Evidence
from shared.data.cards import load_card
from shared.pipeline.config import REPLICATIONS, ScaleFile
from shared.reports.paper import Paper
from shared.tasks.sections import find_route

COMPOSING = ("scenes",)
"""Readers that compose examples of what was fetched: nobody else has published these examples."""


def evidence_of(settings: ScaleFile) -> dict[str, Evidence]:
    """Every variant that has results to what its data are; a study that trains nothing measures."""
    paper = Paper.load(REPLICATIONS / settings.paper / "paper.yaml")
    models = importlib.import_module(f"replications.{settings.paper}.settings")
    data = {task: _of_data(settings, task, paper) for task in settings.tasks}
    found: dict[str, Evidence] = {}
    for variant in settings.judged():
        section, _ = find_route(settings.run(variant), models.MODEL, models.ROUTES)
        measured = section is not None and not section[1].trains_network
        found[variant] = "measured" if measured else data[settings.task_of(variant)]
    return found


def _of_data(settings: ScaleFile, task: str, paper: Paper) -> Evidence:
    """Of one task; pictures that are made smaller are no longer the paper's."""
    dataset = settings.dataset(task)
    if dataset in paper.data and getattr(settings.corpus(task), "pool", 1) == 1:
        return "paper's data"
    card = load_card(dataset)
    composed = card.reader is not None and card.reader.name in COMPOSING
    generated = composed or all(source.kind == "generated" for source in card.sources)
    return "generated" if generated else "standard data"
