"""The figures that every translation paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.breakdown import having
from shared.reports.document import Figure
from shared.reports.figures import metric_by_covariate, offset_histogram, training_curves
from shared.reports.heatmaps import alignment_heatmaps, compare_alignments
from shared.reports.panels import Panel, panels


def translation_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    heatmaps: Mapping[str, str],
    comparisons: Mapping[str, Sequence[str]] | None = None,
    chosen: Mapping[str, Sequence[str]] | None = None,
    trained_to: Mapping[str, int] | None = None,
) -> list[Figure]:
    """BLEU against source length, attention offsets and learning curves, and heatmaps of chosen variants.

    Args:
        results: all variants.
        folder: where the PNGs go.
        heatmaps: variant to the caption of its heatmaps (of its first seed).
        comparisons: caption to the variants whose attention on one sentence is shown side by side (first seeds).
        chosen: title to the variants that share a figure, see :func:`shared.reports.panels.panels`.
        trained_to: task to the longest source in training, to shade what lies beyond.
    """
    shared = panels(results, chosen or {})
    figures = []
    for panel in shared:
        figures += _of_examples(panel, folder, (trained_to or {}).get(panel.task))
    for variant, caption in heatmaps.items():
        run = results.get(variant)
        path = folder / f"alignments_{variant}.png"
        if run is not None and run.seeds and alignment_heatmaps(run.attention(run.seeds[0]), path):
            figures.append(Figure(path, caption))
    for number, (caption, variants) in enumerate((comparisons or {}).items(), start=1):
        runs = [results[variant] for variant in variants if variant in results and results[variant].seeds]
        path = folder / f"alignments_compared_{number}.png"
        if compare_alignments({run.variant: run.attention(run.seeds[0]) for run in runs}, path):
            figures.append(Figure(path, f"{caption} Blue: a weight of exactly zero."))
    for panel in shared:
        path = folder / f"training_curves_{panel.name}.png"
        if training_curves(panel.runs, path):
            caption = "Loss on the validation split against updates: mean over seeds, lowest to highest seed shaded."
            figures.append(Figure(path, f"{panel.title}. {caption}"))
    return figures


def _of_examples(panel: Panel, folder: Path, trained_to: int | None) -> list[Figure]:
    figures = []
    path = folder / f"bleu_by_length_{panel.name}.png"
    if runs := having(panel.runs, "bleu"):
        label = "Source length (words)"
        metric_by_covariate(runs, "bleu", "source_length", path, label=label, trained_to=trained_to)
        caption = "BLEU against source length, with 95 % bands over test sentences and seeds."
        figures.append(Figure(path, f"{panel.title}. {caption}"))
    path = folder / f"alignment_offsets_{panel.name}.png"
    if offset_histogram(panel.runs, path):
        caption = "Where the attention peaks relative to the gold source word."
        figures.append(Figure(path, f"{panel.title}. {caption}"))
    return figures
