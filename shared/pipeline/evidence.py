"""The evidence of the runs of a scale: the paper's own data, other published data, generated data, or no data."""

from __future__ import annotations

import importlib

from shared.claims.outcomes import Evidence
from shared.data.cards import load_card
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import REPLICATIONS
from shared.reports.paper import Paper
from shared.tasks.sections import find_route

COMPOSING = ("scenes",)
"""Readers that compose new examples from the fetched data; these examples are published nowhere else."""


def evidence_of(settings: ScaleFile) -> dict[str, Evidence]:
    """Map each variant with results to its evidence, which is "measured" for a study that trains no network."""
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
    """The evidence of one task; downscaled pictures do not count as the paper's data."""
    dataset = settings.dataset(task)
    if dataset in paper.data and getattr(settings.corpus(task), "pool", 1) == 1:
        return "paper's data"
    card = load_card(dataset)
    composed = card.reader is not None and card.reader.name in COMPOSING
    generated = composed or all(source.kind == "generated" for source in card.sources)
    return "generated" if generated else "standard data"
