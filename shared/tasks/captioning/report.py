"""The figures that every captioning paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Figure
from shared.reports.learning_curves import learning_curves
from shared.tasks.captioning.overlays import draw_overlays
from shared.tasks.captioning.stopping_figure import SHOWN, draw_stopping

CURVES = {
    "loss": "Loss on the validation split against updates",
    "bleu": "BLEU-4 of greedy captions of the validation split against updates",
}


def captioning_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    overlays: Mapping[str, str],
    panels: Mapping[str, Sequence[str]],
    stopping: Sequence[str],
) -> list[Figure]:
    """What is looked at while each word is written, whether likelihood and BLEU go together, and learning curves.

    Args:
        results: all variants.
        folder: where the PNGs go.
        overlays: variant to the caption of its images, lit by attention (of its first seed).
        panels: title to the variants that share a figure of curves, see :func:`shared.reports.panels.panels`.
        stopping: variants of which BLEU on the validation split is drawn against likelihood over training.
    """
    figures: list[Figure] = []
    for variant, caption in overlays.items():
        run = results.get(variant)
        if run is not None and run.seeds:
            figures += draw_overlays(run.attention(run.seeds[0]), folder / f"overlays_{variant}.png", caption)
    path = folder / "stopping.png"
    if draw_stopping([results[variant] for variant in stopping if variant in results], path):
        caption = "BLEU-4 against likelihood over training, both on the validation split."
        figures.append(Figure(path, f"{caption} {SHOWN}"))
    return figures + learning_curves(results, folder, panels, CURVES)
