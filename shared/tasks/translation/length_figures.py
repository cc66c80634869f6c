"""Scores against source length, and where attention peaks, as figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shared.metrics.registry import measure
from shared.reports.figures import COLOURS, Runs, drawing, legend_above, plot_line
from shared.reports.naming import name_of
from shared.reports.styles import styles_of
from shared.tasks.translation.lengths import alignment_offsets, length_bins, score_by_length


def scores_by_length(runs: Runs, path: Path, name: str = "bleu") -> None:
    """Draw a measure over bins of the source length with 95 % bands, one line per variant.

    With BLEU this is Figure 2 of Bahdanau et al. (2015).

    Args:
        runs: variants of one task whose examples carry the measure.
        path: of the PNG.
        name: of the measure, which is the better the higher it is.
    """
    drawn = measure(name)
    bins = length_bins(runs[0])
    lowest, highest = drawn.most, 0.0
    with drawing(path, height=3.7) as canvas:
        axes = canvas.subplots()
        for style, run in zip(_styles(runs), runs, strict=True):
            scores = score_by_length(run, drawn, bins)
            x, y = [score.centre for score in scores], [score.value for score in scores]
            low, high = np.clip([score.interval for score in scores], 0.0, drawn.most).T
            plot_line(axes, style, len(runs), (x, y, low, high), label=name_of(run.variant), marked=True)
            lowest, highest = min(lowest, *low), max(highest, *high)
        axes.set(xlabel="Source length (words)", ylabel=drawn.title)
        base = lowest if 2.0 * lowest > highest else 0.0
        margin = max(0.06 * (highest - base), 1.0)  # all may be 100
        axes.set_ylim(max(base - margin, 0.0), highest + margin)
        legend_above(canvas, axes)


def offset_histogram(runs: Runs, path: Path, *, reach: int = 4) -> bool:
    """Draw how far from the gold source word the attention peaks, one group of bars per variant.

    Args:
        runs: variants; those without alignments are left out.
        path: of the PNG.
        reach: offsets beyond ±reach are summed into the outermost bars.

    Returns:
        whether any run had alignments; if none had, nothing is drawn.
    """
    aligned = {index: offsets for index, run in enumerate(runs) if (offsets := alignment_offsets(run))}
    if not aligned:
        return False
    positions = np.arange(-reach, reach + 1)
    width, styles = 0.8 / len(aligned), _styles(runs)
    with drawing(path, height=3.2) as canvas:
        axes = canvas.subplots()
        for place, (index, offsets) in enumerate(aligned.items()):
            shares = np.zeros(len(positions))
            for offset, share in offsets.items():
                shares[min(max(offset, -reach), reach) + reach] += share
            left = positions + (place - (len(aligned) - 1) / 2) * width
            axes.bar(
                left,
                shares,
                width * 0.92,
                color=COLOURS[styles[index] % len(COLOURS)],
                label=name_of(runs[index].variant),
            )
        inner = [f"{position:+d}".replace("-", "−") if position else "0" for position in positions[1:-1]]
        axes.set_xticks(positions, [f"≤ −{reach}", *inner, f"≥ +{reach}"])
        axes.set(xlabel="Attended source position minus gold position", ylabel="Share of target words", ylim=(0, 1))
        axes.grid(axis="x", visible=False)
        legend_above(canvas, axes)
    return True


def _styles(runs: Runs) -> list[int]:
    return styles_of([name_of(run.variant) for run in runs])
