"""Effects of claims below each other, each in a unit of its own: 0 is no effect, 1 the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = (-100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1000)
LINEAR = 2.0
"""Up to where a scale for far effects is linear, either way."""


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
    interval: tuple[float, float] | None = None
    hollow: bool = False


def forest(effects: Sequence[Effect], path: Path, label: str, *, far: bool = False) -> None:
    """Draw effects with their intervals, in the colours of their verdicts.

    Args:
        effects: at least one, from top to bottom.
        path: of the PNG.
        label: of the axis, with the unit.
        far: whether effects beyond :data:`LINEAR` are on a logarithmic scale.
    """
    from shared.reports.figures import INK, VERDICTS, drawing

    with drawing(path, height=0.9 + 0.34 * len(effects)) as canvas:
        axes = canvas.subplots()
        for place in (0.0, 1.0):
            axes.axvline(place, color="#666666", linewidth=1.4, linestyle="--" if place else "-")
        for row, effect in enumerate(effects):
            colour = VERDICTS[effect.verdict]
            if effect.interval is not None:
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
        axes.grid(False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, labelsize=12)
        axes.set_xlabel(label, fontsize=12)
