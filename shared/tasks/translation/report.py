"""The figures that every translation paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.breakdown import having
from shared.reports.document import Figure
from shared.reports.figures import SPREAD, metric_by_covariate, offset_histogram, training_curves
from shared.reports.panels import Panel, chosen_panels, panels
from shared.reports.sections import CONVENTION
from shared.tasks.translation.heads import SAID, draw_heads
from shared.tasks.translation.heatmaps import alignment_heatmaps, compare_alignments
from shared.tasks.translation.operations import loss_by_operations

Results = Mapping[str, RunResults]
Chosen = Mapping[str, Sequence[str]]


def translation_figures(
    results: Results,
    folder: Path,
    *,
    heatmaps: Mapping[str, str],
    comparisons: Chosen | None = None,
    heads: Mapping[str, str] | None = None,
    chosen: Chosen | None = None,
    per_operation: Chosen | None = None,
    schedules: Chosen | None = None,
    trained_to: Mapping[str, int] | None = None,
) -> list[Figure]:
    """BLEU against source length, attention offsets and learning curves, and what else is asked for.

    Args:
        results: all variants.
        folder: where the PNGs go.
        heatmaps: variant to the caption of its heatmaps (of its first seed).
        comparisons: caption to the variants whose attention on one sentence is shown side by side (first seeds).
        heads: variant to the caption of its attention by layer and head (of its first seed).
        chosen: title to the variants that share a figure, see :func:`shared.reports.panels.panels`.
        per_operation: title to the variants of one task whose loss is drawn against the operations of training.
        schedules: title to the variants of one task whose learning rates are drawn.
        trained_to: task to the longest source in training, to shade what lies beyond.
    """
    shared = panels(results, chosen or {})
    figures = []
    for panel in shared:
        figures += _of_examples(panel, folder, (trained_to or {}).get(panel.task))
    figures += _of_attention(results, folder, heatmaps, comparisons or {})
    for variant, caption in (heads or {}).items():
        figures += _of_heads(results.get(variant), folder, caption)
    for panel in shared:
        path = folder / f"training_curves_{panel.name}.png"
        if training_curves(panel.runs, path):
            caption = f"Loss on the validation split against updates: {SPREAD}"
            figures.append(Figure(path, f"{panel.title}. {caption}"))
    for panel in chosen_panels(results, per_operation or {}):
        path = folder / f"loss_by_operations_{panel.name}.png"
        if loss_by_operations(panel.runs, path):
            caption = f"Loss on the validation split against the operations of training so far: {SPREAD} {CONVENTION}"
            figures.append(Figure(path, f"{panel.title}. {caption}"))
    for panel in chosen_panels(results, schedules or {}):
        path = folder / f"learning_rate_{panel.name}.png"
        if training_curves(panel.runs, path, metric="learning_rate", split="train"):
            figures.append(Figure(path, f"{panel.title}. Learning rate against updates."))
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


def _of_attention(results: Results, folder: Path, heatmaps: Mapping[str, str], comparisons: Chosen) -> list[Figure]:
    figures = []
    for variant, caption in heatmaps.items():
        run = results.get(variant)
        path = folder / f"alignments_{variant}.png"
        if run is not None and run.seeds and alignment_heatmaps(run.attention(run.seeds[0]), path):
            figures.append(Figure(path, caption))
    for number, (caption, variants) in enumerate(comparisons.items(), start=1):
        runs = [results[variant] for variant in variants if variant in results and results[variant].seeds]
        path = folder / f"alignments_compared_{number}.png"
        if compare_alignments({run.variant: run.attention(run.seeds[0]) for run in runs}, path):
            figures.append(Figure(path, f"{caption} Blue: a weight of exactly zero."))
    return figures


def _of_heads(run: RunResults | None, folder: Path, caption: str) -> list[Figure]:
    if run is None or not run.seeds:
        return []
    paths = {kind: folder / f"heads_{run.variant}_{kind}.png" for kind in SAID}
    drawn = [kind for kind, path in paths.items() if draw_heads(run.heads(run.seeds[0]), kind, path)]
    return [Figure(paths[kind], f"{caption.rstrip('.')}. {SAID[kind]}") for kind in drawn]
