"""The verdicts of a report: one table of all claims, and how effects, tests and evidence are written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared.claims.comparisons import Exact, Row
from shared.claims.outcomes import VERDICTS, Decision
from shared.claims.rules import ALPHA, FEWEST_SEEDS
from shared.claims.words import number_of
from shared.metrics.registry import known, measure
from shared.reports.document import (
    SPACE,
    Bullets,
    Text,
    badge,
    link,
    number,
    plain,
    sentence,
    signed,
    strong,
    typeset,
    with_ends,
)

KINDS = {
    "generated": "data generated for the purpose",
    "standard data": "standard data",
    "paper's data": "the paper's own data",
    "measured": "measurements of time, memory or error",
    "identity": "identities of mathematics",
}
"""Kind of evidence to its name in sentences on the limits of verdicts; models are trained for the first three."""
COLUMNS = ("Claim", "What was tested", "Verdict", "Effect", "Evidence")
ALIGN = "ltlll"
RULES = {
    "The effect.": (
        "Every seed gives one, positive where it agrees with the claim; two variants are compared seed by seed. The "
        "95 % interval of the mean covers seeds, and test examples where the measure is of examples."
    ),
    "The verdict.": (
        "A claim is contradicted if its effect is surely below the smallest that matters, else reproduced if it is "
        "surely above 0, else inconclusive. A claim of equality is reproduced if its effect is surely within the "
        "smallest that matters, and contradicted if it is surely outside. Surely means: by a one-sided test at "
        f"{100 * ALPHA / 2:g} %, corrected by Holm's method over the claims of the paper at one scale, with at least "
        f"{FEWEST_SEEDS} seeds."
    ),
    "The models.": (
        "No verdict stands, for or against, if models have not learned their task, if the gap between them was still "
        "closing, or if twice the training disagrees, where it was tried."
    ),
    "The evidence.": (
        "A verdict says “survives doubling” if it was the same with twice the updates, and “one budget” if that was "
        "not tried. Supporting comparisons look at a claim by another measure or by other models, and decide nothing."
    ),
    "Identities.": "What holds by mathematics is verified or refuted, and counted apart.",
}
"""How a verdict comes about; docs/EVIDENCE.md says it in full."""


Entry = Mapping[str, Any]
"""An entry of claims.json, or one of its outcomes."""


def rules() -> Bullets:
    """How verdicts come about."""
    return Bullets([f"{strong(name)} {said}" for name, said in RULES.items()])


def count_verdicts(decisions: Sequence[Decision]) -> str:
    """How often there is each verdict; identities apart."""
    said = []
    for identity, one, many in ((False, "claim", "claims"), (True, "identity", "identities")):
        group = [decision.verdict for decision in decisions if bool(decision.claim.identities) == identity]
        if group:
            found = counts_text(group)
            said.append(f"Of {len(group)} {one if len(group) == 1 else many}: {strong(found)}.")
    return " ".join(said)


def counts_text(verdicts: Sequence[str]) -> str:
    """How often each verdict is among them, in words."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def in_short(entry: Entry) -> str:
    """The short form of a claim; its statement where an older report has none."""
    return str(entry.get("in_short") or entry["statement"])


def claim_row(entry: Entry, page: str = "") -> list[Text]:
    """Cells for one entry of claims.json: badge, effect and evidence are of the one comparison that decides.

    Args:
        entry: of claims.json.
        page: with the claim's card; by default the same.
    """
    lead = entry["lead"]
    return [
        link(entry["id"], f"{page}#{entry['id']}"),
        sentence(in_short(entry)),
        verdict_text(entry),
        found_text(entry),
        "–" if lead is None else evidence_text(entry, lead) + _unsupported(entry),
    ]


def verdict_text(entry: Entry) -> str:
    """The badge, and what kind of contradicted or inconclusive it is."""
    return badge(entry["verdict"]) + (f": {entry['how']}" if entry["how"] else "")


def evidence_text(entry: Entry, lead: Entry) -> str:
    """What the data are, how many seeds there were, and whether twice the training agrees."""
    if lead["kind"] == "exact":
        return "identity"
    return ", ".join(
        part for part in (entry["evidence"], number_of(len(lead["seeds"]), "seed"), entry["budget"]) if part
    )


def _unsupported(entry: Entry) -> str:
    """A warning where most of the comparisons that only support a reproduced claim do not."""
    agreeing, supporting = entry["agreeing"], entry["supporting"]
    if entry["verdict"] != "reproduced" or 2 * agreeing >= supporting:
        return ""
    return f"; {supporting_text(agreeing, supporting)}"


def supporting_text(agreeing: int, supporting: int) -> str:
    """How many of the comparisons that only support a claim agree with it."""
    many = "supporting comparisons agree"
    return f"{agreeing} of {number_of(supporting, 'supporting comparison agrees', many)}"


def found_text(entry: Entry) -> str:
    """For an entry of claims.json the effect that decides, or how many identities hold; "–" where there is neither."""
    lead = entry["lead"]
    if lead is None:
        return "–"
    if lead["kind"] != "exact":
        return effect_text(lead)
    verdicts = [row["verdict"] for row in entry["comparisons"] if row["deciding"]]
    return f"{verdicts.count('verified')} of {len(verdicts)} hold"


def effect_text(outcome: Entry) -> str:
    """The effect with its unit, then its interval in brackets."""
    if outcome["effect"] is None:
        return "–"
    shown = size_text(outcome)
    if outcome["interval"] is None:
        return shown
    return with_ends(shown, (amount(outcome, end) for end in outcome["interval"]))


def with_unit(shown: str, outcome: Entry) -> str:
    """A number and what it is of; the effects of comparisons on the log scale are ratios."""
    unit = "times" if outcome["scale"] == "log" else outcome["unit"]
    return f"{shown}{SPACE}{unit}" if unit else shown


def size_text(outcome: Entry) -> str:
    """An effect with its unit and what it is counted from; claims.json says that only where it is not 0."""
    return f"{with_unit(amount(outcome, outcome['effect']), outcome)} {outcome.get('base', '')}".rstrip()


def amount(outcome: Entry, value: float) -> str:
    """An effect as a number, as fine as what matters, to two digits, and as its interval is wide; or an identity's."""
    if outcome["kind"] == "exact":
        return number(value)
    low, high = outcome["interval"] or (0.0, 0.0)
    wide = (high - low) / 4.0
    spread = wide > 1e-6 * max(abs(low), abs(high))  # else rounding is all there is
    digits = 1 + _places(outcome["relevant"] - (outcome["scale"] == "log"))
    if spread:  # two digits of it are the most that mean anything
        digits = min(max(digits, _places(wide)), 1 + _places(wide))
    return plain(value, min(6, digits)) if outcome["scale"] == "log" else signed(value, min(6, digits))


def _places(size: float) -> int:
    """Of the first digit that is not 0, after the decimal point."""
    return max(-1, -math.floor(math.log10(size) + 1e-9))


def matters(outcome: Entry) -> str:
    """The smallest effect that matters, with its unit; either way, of equality."""
    shown = typeset(f"{outcome['relevant']:g}")
    if outcome["kind"] == "equal":
        shown = f"1{SPACE}/{SPACE}{shown} or {shown}" if outcome["scale"] == "log" else f"±{SPACE}{shown}"
    return with_unit(shown, outcome)


def value_text(metric: str, value: float) -> str:
    """What was measured, as score tables have it."""
    return plain(value, measure(metric).digits) if known(metric) else number(value)


def metric_title(metric: str, token: str = "token") -> str:
    """A measure's heading; the default ``token`` serves where runs have different tokens."""
    return measure(metric).title.format(token=token)


def compared_titles(row: Row, token: str = "token") -> list[str]:
    """What the quantities of a comparison are called: the first by its own ``called``, if it has one."""
    first, *others = (metric_title(metric, token) for metric in row.metrics())
    own = None if isinstance(row, Exact) else row.called
    return [own or first, *others]


def p_text(p: float | None, corrected: float | None = None) -> str:
    """A p-value, with the corrected one in brackets."""
    shown = [f"<{SPACE}0.001" if value < 0.001 else f"{value:.3f}" for value in (p, corrected) if value is not None]
    return "–" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} ({shown[1]})"
