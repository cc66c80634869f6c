"""The figures that every translation paper's report shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Figure
from shared.reports.figures import alignment_heatmaps, by_task, metric_by_covariate, offset_histogram


def translation_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    heatmaps: Mapping[str, str],
    trained_to: Mapping[str, int] | None = None,
) -> list[Figure]:
    """BLEU against source length and attention offsets per task, and attention heatmaps of chosen variants.

    Args:
        results: all variants.
        folder: where the PNGs go.
        heatmaps: variant to the caption of its heatmaps (of its first seed).
        trained_to: task to the longest source in training, to shade what lies beyond.
    """
    figures = []
    for task, runs in by_task(results).items():
        path = folder / f"bleu_by_length_{task}.png"
        if any("bleu" in row for row in runs[0].examples.get(runs[0].seeds[0], [])[:1]):
            limit = (trained_to or {}).get(task)
            label = "Source length (words)"
            metric_by_covariate(runs, "bleu", "source_length", path, label=label, trained_to=limit)
            caption = "BLEU against source length, with 95 % bands over test sentences and seeds."
            figures.append(Figure(path, f"Task {task}. {caption}"))
        path = folder / f"alignment_offsets_{task}.png"
        if offset_histogram(runs, path):
            caption = "Where the attention peaks relative to the gold source word."
            figures.append(Figure(path, f"Task {task}. {caption}"))
    for variant, caption in heatmaps.items():
        run = results.get(variant)
        path = folder / f"alignments_{variant}.png"
        if run is not None and run.seeds and alignment_heatmaps(run.attention(run.seeds[0]), path):
            figures.append(Figure(path, caption))
    return figures
