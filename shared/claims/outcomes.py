"""What comparisons and claims came to, and which of several verdicts on a claim is the better evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from shared.claims import schema
from shared.claims.attempts import History, can_decide
from shared.claims.competence import Check, Learned, best_value
from shared.claims.rules import LEARNED, SCALES
from shared.metrics.registry import measure

Verdict = Literal["reproduced", "in part", "mixed", "contradicted", "inconclusive", "verified", "refuted", "not tested"]
"""Of a comparison or a claim: in part, if not all that it says is reproduced; mixed, if scales or designs differ."""
Sort = Literal["experiment", "demonstration", "identity"]
SORTS: tuple[Sort, ...] = get_args(Sort)
"""Evidence where both sides could do the task; where a limit built into one of them is shown, or both do it so well
that no difference could matter; and mathematics."""
Confirmed = Literal["confirmed", "not confirmed", "one run", ""]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Evidence = Literal["paper's data", "standard data", "own data", "generated", "measured"]
"""What decided: models of the paper's data, of other published data, of data that a user alone has, of generated data,
or a study without data."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Tests:
    """One-sided p-values of a comparison's two tests.

    Attributes:
        above: that the effect is above 0 (``equal``: that it lies within ± relevant).
        below: that it is below ``relevant``, the smallest that matters (``equal``: that it lies outside).
        opposite: that the effect is below 0. It only determines how a contradiction is described, and not for
            ``equal``.
        above_holm, below_holm, opposite_holm: the same, corrected for earlier attempts and over what decides claims of
            the paper; None for other comparisons.
        matters: whether the estimate is at least what matters; of ``equal`` always.
    """

    above: float
    below: float
    opposite: float = 1.0
    above_holm: float | None = None
    below_holm: float | None = None
    opposite_holm: float | None = None
    matters: bool = True

    @property
    def deciding(self) -> list[float]:
        """The three p-values that decide: the corrected ones where they exist."""
        corrected = self.above_holm, self.below_holm, self.opposite_holm
        own = self.above, self.below, self.opposite
        return [p if holm is None else holm for p, holm in zip(own, corrected, strict=True)]


@dataclass(frozen=True)
class Outcome:
    """What one comparison came to.

    Attributes:
        deciding: whether the claim's verdict is that of this comparison.
        how: kind of a contradiction: opposite, no effect that matters, or real but too small to matter.
        effect: mean over the seeds, positive where it agrees with the claim; a ratio on the log scale. For an identity,
            the measured number with the largest deviation.
        base: what the effect is counted from, such as "above 0.5"; empty where that is 0.
        relevant: the smallest effect that matters, in the same unit.
        interval: 95 %, over seeds and test examples, of this comparison alone; None where one run shows no spread.
        tests: the two tests that decide; None for an identity, and where nothing was run.
        seeds, per_seed: the seeds and the effect of each.
        sides: variant to its mean, as measured.
        n: test examples; None for a number that is one per run.
        drawn_of: "examples" or "families" that are resampled beside the seeds; empty if nothing is.
        repeats: see :class:`shared.claims.effects.Effects`; 1 of all but correlations.
        paper: the paper's effect in the same unit.
        token: the runs' name for one token, the unit of likelihoods.
        pooled: further seeds of earlier runs of the same design that count, beside ``seeds``.
        again: how many of ``seeds`` have earlier runs, which count with today's by their mean.
    """

    name: str
    kind: str
    verdict: Verdict
    metric: str
    unit: str
    variants: tuple[str, ...]
    deciding: bool
    scale: str = "plain"
    reason: str = ""
    how: str = ""
    effect: float | None = None
    relevant: float | None = None
    interval: Interval | None = None
    tests: Tests | None = None
    seeds: tuple[int, ...] = ()
    per_seed: tuple[float, ...] = ()
    sides: Mapping[str, float] = field(default_factory=dict)
    n: int | None = None
    drawn_of: str = ""
    repeats: float = 1.0
    base: str = ""
    paper: float | None = None
    token: str = "token"
    pooled: int = 0
    again: int = 0

    @property
    def tested(self) -> bool:
        """Whether there were runs to judge."""
        return self.verdict != "not tested"

    @property
    def saturated(self) -> bool:
        """Whether both sides of an equality are so near to the best possible value that nothing could matter."""
        better = measure(self.metric).better if self.kind == "equal" and self.scale == "plain" else None
        if better is None or self.relevant is None or len(self.sides) < 2:
            return False
        best = best_value(self.metric, up=better == "higher")
        return all(abs(best - value) < self.relevant for value in self.sides.values())

    def to_json(self) -> dict[str, Any]:
        """All of it, but an empty base."""
        return {name: value for name, value in asdict(self).items() if name != "base" or value}


@dataclass(frozen=True)
class Judged:
    """What became of a comparison that decides, with its checks; or of a part of a claim.

    Attributes:
        says, by: of a part, what it says and the name of the comparison that decides it.
        how: see :class:`Outcome`; of an inconclusive one why, if a check of competence failed.
        reason: a sentence.
    """

    verdict: Verdict
    how: str
    reason: str
    checks: tuple[Check, ...] = ()
    learned: tuple[Learned, ...] = ()
    says: str = ""
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision(Judged):
    """The verdict on one claim at one scale, with what it rests on; checks are those of the primary comparison.

    Attributes:
        evidence: None where nothing decided.
        changed: what deciding has changed since the plan was frozen; None if there is no plan.
        parts: of a claim that says several things.
        history: what was tried before.
        confirmed: whether further seeds, which the plan drew, say the same; "" where nothing is decided.
    """

    claim: schema.Claim
    scale: str
    outcomes: tuple[Outcome, ...]
    evidence: Evidence | None = None
    changed: tuple[str, ...] | None = None
    parts: tuple[Judged, ...] = ()
    history: History = field(default_factory=History)
    confirmed: Confirmed = ""

    @property
    def sort(self) -> Sort | None:
        """Of the evidence; None where there is none."""
        if self.lead is None:
            return None
        if self.claim.identities or self.claim.by_mathematics:
            return "identity"
        learned = (*self.learned, *(each for part in self.parts for each in part.learned))
        unable = any(each.exempt and each.reached < LEARNED * each.seeds for each in learned)
        return "demonstration" if unable or self.lead.saturated else "experiment"

    @property
    def lead(self) -> Outcome | None:
        """The primary comparison, or of the identities the first that is refuted, else the first; if any was tested."""
        tested = [outcome for outcome in self.outcomes if outcome.deciding and outcome.tested]
        return next((outcome for outcome in tested if outcome.verdict == "refuted"), next(iter(tested), None))

    @property
    def supporting(self) -> Sequence[Outcome]:
        """The other comparisons that were tested."""
        return [outcome for outcome in self.outcomes if not outcome.deciding and outcome.tested]

    @property
    def agreeing(self) -> int:
        """How many supporting comparisons agree with the claim."""
        return sum(outcome.verdict in ("reproduced", "verified") for outcome in self.supporting)

    @property
    def budget(self) -> str:
        """``survives doubling``, ``depends on the budget`` or ``one budget``; empty where nothing is trained."""
        doubling = next((check for check in self.checks if check.name == "doubling"), None)
        if doubling is None or self.evidence == "measured":
            return ""
        return {"yes": "survives doubling", "no": "depends on the budget"}.get(doubling.passed, "one budget")

    def to_json(self) -> dict[str, Any]:
        """The entry of claims.json: the verdict, the figures of what decided, and every comparison."""
        lead = self.lead.to_json() if self.lead else None
        return {
            "id": self.claim.id, "statement": self.claim.statement, "in_short": self.claim.in_short,
            "in_paper": self.claim.in_paper.model_dump(mode="json"), "verdict": self.verdict, "how": self.how,
            "reason": self.reason, "scale": self.scale, "evidence": self.evidence, "budget": self.budget,
            "agreeing": self.agreeing, "supporting": len(self.supporting), "lead": lead,
            "checks": [asdict(check) for check in self.checks], "learned": [asdict(each) for each in self.learned],
            "changed": None if self.changed is None else list(self.changed), "sort": self.sort, "ours": self.claim.ours,
            "parts": [{key: getattr(each, key) for key in PART} for each in self.parts],
            "attempt": self.history.attempt if lead and can_decide(lead["seeds"]) else None,
            "before": [line["verdict"] for line in self.history.before], "confirmed": self.confirmed,
            "lines": [{key: value for key, value in line.items() if key not in LONG} for line in self.history.lines],
            "comparisons": [outcome.to_json() for outcome in self.outcomes],
        }  # fmt: skip


PART = ("says", "verdict", "how", "reason", "by")
LONG = ("plan", "commits", "effects", "claim")
"""Keys of parts that claims.json has, and those of lines of the ledger that it has not."""
DATA = ("measured", "own data", "generated", "standard data", "paper's data")
"""What decided, from the weakest to the strongest. What is merely measured, identities, and data that nobody else can
check count as generated."""
SIDES = {"reproduced": "for", "verified": "for", "in part": "for", "contradicted": "against", "refuted": "against"}
"""Decided verdicts, and whether they speak for the claim."""

Entry = Mapping[str, Any]
"""An entry of claims.json."""


def better(entries: Iterable[Entry]) -> Entry:
    """The best evidence among the entries of one claim at several scales.

    A decided verdict beats an inconclusive one, and that beats one that was not tested. Among equals the better data
    win, then the larger scale.
    """
    return max(entries, key=_rank)


def disagree(entries: Sequence[Entry]) -> bool:
    """Whether decided verdicts speak for a claim at one scale and against it at another."""
    return len({SIDES[entry["verdict"]] for entry in entries if entry["verdict"] in SIDES}) > 1


def headline(entries: Sequence[Entry]) -> dict[str, Any]:
    """The entry with the better evidence; its verdict is mixed if others speak otherwise, which follow as ``against``.

    These are decided entries of other scales and, with enough seeds, lines of earlier designs: the best one first.

    Args:
        entries: of one claim at several scales.
    """
    best = better(entries)
    lines = {line["design"]: line for entry in entries for line in entry.get("lines", ())}
    today = {entry.get("design") for entry in entries}
    earlier = [line for design, line in lines.items() if design not in today and can_decide(line["seeds"])]
    against = sorted((each for each in (*entries, *earlier) if disagree([best, each])), key=_rank, reverse=True)
    return {**best, "verdict": "mixed" if against else best["verdict"], "against": against}


def left_open(best: Entry, entries: Iterable[Entry]) -> list[Entry]:
    """The inconclusive entries whose data are better than those of the decided one that counts."""
    if best["verdict"] not in SIDES:
        return []
    return [entry for entry in entries if entry["verdict"] == "inconclusive" and _data(entry) > _data(best)]


def _rank(entry: Entry) -> tuple[int, int, int]:
    decided = 2 if entry["verdict"] in SIDES else int(entry["verdict"] == "inconclusive")
    return decided, _data(entry), SCALES.index(entry["scale"])


def _data(entry: Entry) -> int:
    data = DATA.index(entry["evidence"]) if entry["evidence"] in DATA else 0
    return max(data, DATA.index("generated"))
