"""How far back models make use of the text: relative effective context lengths (Dai et al. 2019, section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.metrics.context_length import THRESHOLD, relative_gains
from shared.reports.curves import Points, Runs, plot_curves
from shared.reports.document import Block, Figure, Paragraph, Table, Text, over_seeds
from shared.reports.figures import drawing, legend_above
from shared.reports.naming import called
from shared.tasks.language.context_lengths import ContextLosses, context_losses
from shared.tasks.language.measures import RATIOS

CAPTION = (
    "Relative gain in perplexity from one more step of context, over the best model of the group, on the share r of "
    "the symbols that are hardest for the group. Below the dotted line, 1 %, a model's effective context ends. Mean "
    "over seeds, lowest to highest seed shaded."
)
EXPLAINED = (
    "Relative effective context lengths, symbols: the shortest context from which one step more gains a model less "
    "than 1 % in perplexity over the best of the group, on the share r of the symbols that are hardest for the group. "
    "Mean over seeds, in brackets the lowest and the highest seed. Lengths of different groups do not compare."
)


def context_blocks(results: Mapping[str, RunResults], folder: Path, groups: Mapping[str, Sequence[str]]) -> list[Block]:
    """For every group a figure ``contexts_<group>.png`` of relative gains in ``folder``, and a table of lengths.

    Args:
        results: all variants, see :func:`shared.tasks.language.context_lengths.with_context_lengths`.
        folder: where the PNGs go.
        groups: name to variants; those that did not measure losses by context are left out, and so is a group of one.

    Raises:
        ReplicationError: see :func:`shared.tasks.language.context_lengths.context_losses`.
    """
    blocks: list[Block] = []
    for group, names in groups.items():
        found = list(context_losses(results, names).values())
        if not found:
            continue
        runs = [results[name] for name in found[0].losses]
        path = folder / f"contexts_{group}.png"
        draw_gains(runs, found, path)
        blocks += [Figure(path, f"Group {group}. {CAPTION}"), _lengths(group, runs), Paragraph(EXPLAINED)]
    return blocks


def draw_gains(runs: Runs, found: Sequence[ContextLosses], path: Path) -> None:
    """Draw the relative gain of each step to a longer context, a panel for each share r.

    Args:
        runs: the models of a group.
        found: their losses, of every seed.
        path: of the PNG.
    """
    with drawing(path, height=3.2) as canvas:
        panels = canvas.subplots(1, len(RATIOS), sharey=True)
        for axes, r in zip(panels, RATIOS.values(), strict=True):
            axes.axhline(100 * THRESHOLD, color="#666666", linewidth=1.0, linestyle=":")
            plot_curves(axes, runs, _curves(runs, found, r))
            axes.set_yscale("symlog", linthresh=100 * THRESHOLD)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_title(f"r = {r}")
        panels[0].set_ylabel("Relative gain (%)")
        canvas.supxlabel("Context (symbols)", fontsize="medium")
        legend_above(canvas, panels[0])


def _curves(runs: Runs, found: Sequence[ContextLosses], r: float) -> list[Points]:
    """Of every model: length of the context to the gains of all seeds, per cent."""
    gains = [relative_gains(losses, r) for losses, _ in found]
    lengths = found[0].contexts[:-1].tolist()
    return [
        {length: [100 * float(seed[run.variant][step]) for seed in gains] for step, length in enumerate(lengths)}
        for run in runs
    ]


def _lengths(group: str, runs: Runs) -> Table:
    metrics = [f"recl_{group}_{percent}" for percent in RATIOS]
    rows: list[list[Text]] = [
        [
            called(run.variant),
            *(over_seeds([seed[name] for seed in run.metrics.values()], 0) for name in metrics),
        ]
        for run in runs
    ]
    return Table((f"Group {group}", *(f"r = {r}" for r in RATIOS.values())), rows, "lrrr")
