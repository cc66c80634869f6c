"""The figures that every classification paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Figure
from shared.reports.learning_curves import learning_curves
from shared.reports.sweep_figures import SHOWN, draw_sweep
from shared.reports.sweeps import Sweep
from shared.tasks.classification.heat import compare_rows, heat_texts

CURVES = {
    "loss": "Loss on the validation split against updates",
    "error": "Share of the validation split classified wrongly, against updates",
}


def classification_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    heat: Mapping[str, str],
    rows: Mapping[str, Sequence[str]],
    sweeps: Sequence[Sweep],
    chosen: Mapping[str, Sequence[str]],
) -> list[Figure]:
    """What hyper-parameters do, what the attention falls on, and learning curves.

    Args:
        results: all variants.
        folder: where the PNGs go.
        heat: variant to the caption of its texts, coloured by attention (of its first seed).
        rows: caption to the variants whose rows of attention on one text are shown (of their first seeds).
        sweeps: hyper-parameters, with the variants that differ in them.
        chosen: title to the variants that share a figure of curves, see :func:`shared.reports.panels.panels`.
    """
    figures: list[Figure] = []
    for number, sweep in enumerate(sweeps, start=1):
        path = folder / f"sweep_{number}.png"
        if draw_sweep(sweep, results, path):
            figures.append(Figure(path, f"{sweep.title.rstrip('.')}. {SHOWN}"))
    for variant, caption in heat.items():
        run = results.get(variant)
        if run is not None and run.seeds:
            figures += heat_texts(run.attention(run.seeds[0]), folder / f"heat_{variant}.png", caption)
    for number, (caption, variants) in enumerate(rows.items(), start=1):
        runs = [results[variant] for variant in variants if variant in results and results[variant].seeds]
        if len(runs) < min(2, len(variants)):
            continue  # nothing is left to compare with
        sources = {run.variant: run.attention(run.seeds[0]) for run in runs}
        figures += compare_rows(sources, folder / f"heat_rows_{number}.png", caption)
    return figures + learning_curves(results, folder, chosen, CURVES)
