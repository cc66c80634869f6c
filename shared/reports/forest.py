"""Effects as figures: those of several claims below each other, and every seed's of one claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared.claims.outcomes import Outcome
from shared.claims.words import number_of
from shared.reports.document import Figure
from shared.reports.figures import INK, VERDICTS, drawing, plain_powers
from shared.reports.verdicts import effect_text, matters

TICKS = (-100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1000)
LINEAR = 2.0
"""Up to where a scale for far effects is linear, either way."""
LETTERS = 13  # points: a phone shows the figure of a claim at half of its size
SEED, FAILED, MEAN, RELEVANT, PAPER = "#0072B2", "#D55E00", "#1b1f24", "#009E73", "#CC79A7"


@dataclass(frozen=True)
class Effect:
    """An effect in some unit.

    Attributes:
        claim: its id.
        verdict: on it.
        value: the effect.
        interval: its ends, if there are any.
        hollow: whether its circle is, to mark it.
    """

    claim: str
    verdict: str
    value: float
    interval: tuple[float, ...] = ()
    hollow: bool = False


def draw_forest(effects: Sequence[Effect], path: Path, label: str, *, far: bool = False) -> None:
    """Draw effects with their intervals, in the colours of their verdicts: 0 is no effect, 1 the unit.

    Args:
        effects: at least one, from top to bottom.
        path: of the PNG.
        label: of the axis, with the unit.
        far: whether effects beyond :data:`LINEAR` are on a logarithmic scale.
    """
    with drawing(path, height=0.9 + 0.34 * len(effects)) as canvas:
        axes = canvas.subplots()
        for place in (0.0, 1.0):
            axes.axvline(place, color="#666666", linewidth=1.4, linestyle="--" if place else "-")
        for row, effect in enumerate(effects):
            colour = VERDICTS[effect.verdict]
            if effect.interval:
                axes.plot(effect.interval, [row, row], color=colour, linewidth=3, solid_capstyle="butt")
            inside = "white" if effect.hollow else colour
            axes.plot([effect.value], [row], "o", color=colour, markersize=8, markerfacecolor=inside)
        axes.set_yticks(range(len(effects)), [effect.claim for effect in effects], color=INK)
        axes.set_ylim(len(effects) - 0.4, -0.6)
        axes.margins(x=0.08)
        if far:
            ends = [end for effect in effects for end in effect.interval or (effect.value,)]
            most, least = 1.15 * max(LINEAR, *ends), 1.15 * min(0.0, *ends)
            axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.0)
            axes.set_xlim(least or -0.3, most)
            ticks = [tick for tick in TICKS if least <= tick <= most]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        _without_side(axes)
        axes.tick_params(length=0, labelsize=12)
        axes.set_xlabel(label, fontsize=12)


def seed_figure(claim: str, lead: Outcome, failed: Collection[int], path: Path) -> Figure:
    """Draw the comparison that decides a claim to ``path``.

    Every seed is a point, a cross where it ``failed``: where a model did not learn its task. The mean stands below them
    with its 95 % interval, and the paper's effect where it is the same quantity.
    """
    _draw_seeds(lead, failed, path)
    equal, outcome = lead.kind == "equal", asdict(lead)
    said = [
        f"{claim}: every seed (points) and their mean with its 95 % interval (black)",
        f"grey line: no {'difference' if equal else 'effect'}",
        f"green line{'s' if equal else ''}: the smallest that matters",
    ]
    if failed:
        said.append("crosses: seeds in which a model did not learn its task")
    if lead.paper is not None:
        said.append("diamond: the paper's effect")
    seeds = number_of(len(lead.seeds), "seed")
    seen = f"{seeds}: mean effect {effect_text(outcome)}; the smallest that matters is {matters(outcome)}"
    return Figure(path, f"{'; '.join(said)}.", seen)


def _draw_seeds(lead: Outcome, failed: Collection[int], path: Path) -> None:
    from matplotlib.ticker import MaxNLocator

    assert lead.effect is not None, "a comparison of runs that were judged has an effect"
    assert lead.relevant is not None, "and a size that matters"
    ratio = lead.scale == "log"
    with drawing(path, height=2.1) as canvas:
        axes = canvas.subplots()
        if ratio:
            axes.set_xscale("log")
        axes.axvline(1.0 if ratio else 0.0, color="#666666", linewidth=1.6)
        other = 1.0 / lead.relevant if ratio else -lead.relevant
        for end in (other, lead.relevant) if lead.kind == "equal" else (lead.relevant,):
            axes.axvline(end, color=RELEVANT, linewidth=1.6, linestyle="--")
        for place, (seed, value) in enumerate(zip(lead.seeds, lead.per_seed, strict=True)):
            mark, colour = ("X", FAILED) if seed in failed else ("o", SEED)
            height = 1.0 + (place + 0.5) / len(lead.seeds)
            axes.plot([value], [height], mark, color=colour, markersize=8, alpha=0.85)
        if lead.interval is not None:
            axes.plot(lead.interval, [0.5, 0.5], color=MEAN, linewidth=3)
        axes.plot([lead.effect], [0.5], "|", color=MEAN, markersize=18, markeredgewidth=3)
        if lead.paper is not None:
            axes.plot([lead.paper], [0.5], "D", color=PAPER, markersize=9)
        axes.set_ylim(0.0, 2.05)
        axes.set_yticks([0.5, 1.5], ["mean", "seeds"])
        _without_side(axes)
        axes.margins(x=0.06)
        axes.tick_params(labelsize=LETTERS, length=0)
        axes.set_xlabel(f"Effect; the smallest that matters is {matters(asdict(lead))}", fontsize=LETTERS)
        if ratio:
            plain_powers(axes.xaxis)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6))


def _without_side(axes: Any) -> None:
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
