"""The figures that every language-modelling paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Block
from shared.reports.learning_curves import learning_curves
from shared.tasks.language.context_length_figures import context_blocks
from shared.tasks.language.evaluation_speed import speed_figures
from shared.tasks.language.memory_figures import BY_DISTANCE, BY_MEMORY, BY_POSITION
from shared.tasks.language.sample_texts import sample_tables

CURVES = {"loss": "Loss on the validation split against updates"}
Chosen = Mapping[str, Sequence[str]]


def language_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    attention_lengths: Chosen,
    position_panels: Chosen,
    distance_panels: Chosen,
    context_groups: Chosen,
    samples: Sequence[str],
    panels: Chosen,
) -> list[Block]:
    """What memory is good for, how far back models use it, what evaluation costs, samples, and learning curves.

    Args:
        results: all variants.
        folder: where the PNGs go.
        attention_lengths: title to the variants whose loss is drawn against the length of the memory.
        position_panels: title to the variants whose loss is drawn by the position in the segment.
        distance_panels: title to the variants whose share of recalled words is drawn by their distance.
        context_groups: name to the variants whose relative effective context lengths are found together.
        samples: variants whose texts are shown.
        panels: title to the variants that share a figure of curves, see :func:`shared.reports.panels.panels`.
    """
    return [
        *BY_MEMORY.blocks(results, folder, attention_lengths),
        *BY_POSITION.blocks(results, folder, position_panels),
        *BY_DISTANCE.blocks(results, folder, distance_panels),
        *context_blocks(results, folder, context_groups),
        *speed_figures(results, folder),
        *sample_tables(results, samples),
        *learning_curves(results, folder, panels, CURVES),
    ]
