"""What came out, in a few words and one figure, before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from shared.claims.outcomes import Decision, Outcome
from shared.reports.document import Block, Figure, Paragraph, Strong
from shared.reports.verdicts import counted

LIMITS = {
    "generated": "data generated for the purpose",
    "measured": "measurements of time, memory and error",
    "standard data": "standard data and small models",
    "paper's data": "the paper's own data and small models",
    "identity": "identities of mathematics",
}
"""Evidence to what it is, in the sentence on the limits of what was found."""
CAPTION = (
    "The effect of every claim, with its 95 % interval, in units of the smallest effect that matters: right of 0 it "
    "agrees with the claim, and right of 1 it matters, too."
)
EQUALITY = (
    " A hollow circle is of a claim that two models are equal: there the effect lies between \N{MINUS SIGN}1 and 1."
)
TICKS = (-100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True)
class Ratio:
    """An effect and its interval in units of the smallest that matters; ratios as logarithms.

    Attributes:
        equality: whether the claim is that the effect does not matter.
    """

    claim: str
    verdict: str
    equality: bool
    effect: float
    low: float
    high: float


def answer(decisions: Sequence[Decision], folder: Path) -> list[Block]:
    """A paragraph, and a figure of the effects where there are any.

    Args:
        decisions: on the claims.
        folder: of figures.
    """
    kinds = [LIMITS[each] for each in LIMITS if any(_evidence(decision) == each for decision in decisions)]
    said = [" The evidence: ", ", ".join(kinds), ". Directions of effects compare with the paper's, scores do not."]
    open_ones = [d.claim.id for d in decisions if d.verdict in ("contradicted", "refuted", "inconclusive")]
    unlike = f" Not as the paper says, or undecided: {', '.join(open_ones)}." if open_ones else ""
    blocks: list[Block] = [Paragraph((*_parts(counted(decisions)), *(said if kinds else ()), unlike))]
    ratios = [ratio for decision in decisions if (ratio := relative(decision)) is not None]
    if ratios:
        path = folder / "effects.png"
        _draw(ratios, path)
        alt = f"Effects of {len(ratios)} claims beside 0, no effect, and 1, the smallest that matters"
        blocks.append(Figure(path, f"{CAPTION}{EQUALITY if any(ratio.equality for ratio in ratios) else ''}", alt))
    return blocks


def relative(decision: Decision) -> Ratio | None:
    """The effect that decides, in units of the smallest that matters; None of identities and where none is measured."""
    lead = decision.lead
    if lead is None or lead.effect is None or not lead.relevant or lead.interval is None:
        return None
    effect, low, high = (_units(lead, value) for value in (lead.effect, *lead.interval))
    return Ratio(decision.claim.id, decision.verdict, lead.kind == "equal", effect, low, high)


def _units(lead: Outcome, value: float) -> float:
    assert lead.relevant is not None, "a comparison has a size that matters"
    return log(value) / log(lead.relevant) if lead.scale == "log" else value / lead.relevant


def _evidence(decision: Decision) -> str | None:
    if decision.lead is None:
        return None
    return "identity" if decision.lead.kind == "exact" else decision.evidence


def _parts(text: object) -> tuple[str | Strong, ...]:
    return text if isinstance(text, tuple) else (str(text),)


def _draw(ratios: Sequence[Ratio], path: Path) -> None:
    from shared.reports.figures import INK, VERDICTS, drawing

    with drawing(path, height=0.9 + 0.34 * len(ratios)) as canvas:
        axes = canvas.subplots()
        axes.set_xscale("symlog", linthresh=2.0, linscale=1.0)
        for place in (0.0, 1.0):
            axes.axvline(place, color="#666666", linewidth=1.4, linestyle="--" if place else "-")
        for row, ratio in enumerate(ratios):
            colour = VERDICTS[ratio.verdict]
            axes.plot([ratio.low, ratio.high], [row, row], color=colour, linewidth=3, solid_capstyle="butt")
            inside = "white" if ratio.equality else colour
            axes.plot([ratio.effect], [row], "o", color=colour, markersize=8, markerfacecolor=inside)
        axes.set_yticks(range(len(ratios)), [f"{ratio.claim}" for ratio in ratios], fontsize=12, color=INK)
        axes.set_ylim(len(ratios) - 0.4, -0.6)
        ends = [end for ratio in ratios for end in (ratio.low, ratio.high)]
        most, least = max(2.0, *ends), min(0.0, *ends)
        axes.set_xlim(1.15 * least if least < 0.0 else -0.3, 1.15 * most)
        ticks = [tick for tick in TICKS if 1.15 * least <= tick <= 1.15 * most]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=12)
        axes.set_xticks([], minor=True)
        axes.grid(False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("Effect, in units of the smallest that matters", fontsize=12)
