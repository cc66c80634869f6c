"""What came out, in a few words and one figure, before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import log
from pathlib import Path

from shared.claims.outcomes import VERDICTS, Decision, Outcome
from shared.claims.words import number_of
from shared.reports.document import Block, Figure, Paragraph, Strong, Text, parts, plain_text
from shared.reports.forest import LINEAR, Effect, forest
from shared.reports.paper_tables import PAPERS_OWN
from shared.reports.verdicts import KINDS, counted, size_text

CAPTION = (
    "The effect of every claim, with its 95 % interval, in units of the smallest effect that matters: right of 0 it "
    "agrees with the claim, and right of 1 it matters, too."
)
LIMITS = " Models are small: directions of effects compare with the paper's, scores do not."
LOGARITHMIC = f" Beyond {LINEAR:g} the axis is logarithmic."
WORDS = 80
"""The most words that the answer may have."""
EQUALITY = (
    " A hollow circle is of a claim that two models are equal: there the effect lies between \N{MINUS SIGN}1 and 1."
)


def answer(decisions: Sequence[Decision], folder: Path) -> list[Block]:
    """What came out, what it rests on, and a figure of the effects where there are any.

    Args:
        decisions: on the claims.
        folder: of figures.
    """
    kinds = [name for each, name in KINDS.items() if any(_evidence(decision) == each for decision in decisions)]
    blocks: list[Block] = [Paragraph(in_words(decisions))]
    if kinds:
        limits = "" if decisions[0].scale == PAPERS_OWN else LIMITS
        blocks.append(Paragraph(f"The evidence: {', '.join(kinds)}.{limits}"))
    ratios = [ratio for decision in decisions if (ratio := relative(decision)) is not None]
    if ratios:
        path = folder / "effects.png"
        forest(ratios, path, "Effect, in units of the smallest that matters", far=True)
        alt = f"Effects of {number_of(len(ratios), 'claim')} beside 0, no effect, and 1, the smallest that matters"
        far = any(abs(end) > LINEAR for ratio in ratios for end in (ratio.value, *(ratio.interval or ())))
        equal = any(ratio.hollow for ratio in ratios)
        blocks.append(Figure(path, f"{CAPTION}{EQUALITY * equal}{LOGARITHMIC * far}", alt))
    return blocks


def in_words(decisions: Sequence[Decision]) -> Text:
    """How often there is each verdict, and the claims of each with their effects, in at most :data:`WORDS` words.

    Where that is too long, some are left out and counted: first of those that are not tested, then of the most.
    """
    groups = {verdict: [d for d in decisions if d.verdict == verdict] for verdict in VERDICTS}
    named = {verdict: len(group) for verdict, group in groups.items() if group}
    while True:
        said = [*parts(counted(decisions))]
        for verdict, count in named.items():
            more = len(groups[verdict]) - count
            claims = [_briefly(decision) for decision in groups[verdict][:count]] + [f"{more} more"] * (more > 0)
            said += [" ", Strong(f"{verdict.capitalize()}:"), f" {'; '.join(claims)}."]
        if len(plain_text(tuple(said)).split()) <= WORDS or max(named.values()) == 1:
            return tuple(said)
        named[max(named, key=lambda verdict: (named[verdict] > 1, verdict == "not tested", named[verdict]))] -= 1


def _briefly(decision: Decision) -> str:
    """A claim in short, and its effect if one was measured; the id of one that has no short form."""
    lead, name = decision.lead, decision.claim.in_short or decision.claim.id
    if lead is None or lead.effect is None or not lead.relevant:  # an identity has no size that matters
        return name
    return f"{name} ({size_text(asdict(lead))})"


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
