"""What came out, in a few words and one figure, before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path

from shared.claims.outcomes import Decision, Outcome
from shared.reports.document import Block, Figure, Paragraph, Strong
from shared.reports.forest import Effect, forest
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
        forest(ratios, path, "Effect, in units of the smallest that matters", far=True)
        alt = f"Effects of {len(ratios)} claims beside 0, no effect, and 1, the smallest that matters"
        blocks.append(Figure(path, f"{CAPTION}{EQUALITY if any(ratio.hollow for ratio in ratios) else ''}", alt))
    return blocks


def relative(decision: Decision) -> Effect | None:
    """The effect that decides in units of the smallest that matters, ratios as logarithms; hollow of an equality.

    None of identities and where none is measured.
    """
    lead = decision.lead
    if lead is None or lead.effect is None or not lead.relevant or lead.interval is None:
        return None
    effect, low, high = (_units(lead, value) for value in (lead.effect, *lead.interval))
    return Effect(decision.claim.id, decision.verdict, effect, (low, high), hollow=lead.kind == "equal")


def _units(lead: Outcome, value: float) -> float:
    assert lead.relevant is not None, "a comparison has a size that matters"
    return log(value) / log(lead.relevant) if lead.scale == "log" else value / lead.relevant


def _evidence(decision: Decision) -> str | None:
    if decision.lead is None:
        return None
    return "identity" if decision.lead.kind == "exact" else decision.evidence


def _parts(text: object) -> tuple[str | Strong, ...]:
    return text if isinstance(text, tuple) else (str(text),)
