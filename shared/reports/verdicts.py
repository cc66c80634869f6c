"""The verdicts of a report: one table of all claims, and how effects, tests and evidence are written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared.claims.outcomes import VERDICTS, Decision
from shared.claims.rules import ALPHA, FEWEST_SEEDS
from shared.metrics.registry import known, measure
from shared.reports.document import SPACE, Badge, Block, Heading, Paragraph, Strong, Table, Text, plain, signed, typeset
from shared.reports.studies import number

COLUMNS = ("Claim", "The paper says", "Verdict", "Effect", "Evidence")
ALIGN = "ltlll"
RULE = (
    "The same seed of two variants is a pair with one effect, positive where it agrees with the claim; the 95 % "
    f"interval of the mean effect covers seeds and test examples. Two one-sided tests, at {100 * ALPHA / 2:g} % each, "
    "decide: a claim is contradicted if its effect is surely below the smallest that matters, else reproduced if it "
    f"is surely above 0, else inconclusive. At least {FEWEST_SEEDS} seeds are needed, and the p-values are corrected "
    "by Holm's method over the claims of the paper. No verdict stands, for or against, if models have not learned "
    "their task, if the gap between them was still closing, or if twice the training, where we could afford it, "
    "disagrees. What holds by mathematics is verified or refuted, and counted apart."
)


def overview(decisions: Sequence[Decision]) -> list[Block]:
    """The table of verdicts, and how they come about."""
    rows = [claim_row(decision.to_json()) for decision in decisions]
    table = Table(COLUMNS, rows, ALIGN, stacked=True)
    return [Heading("Verdicts"), Paragraph(counted(decisions)), table, Paragraph(RULE)]


def counted(decisions: Sequence[Decision]) -> Text:
    """How often there is each verdict; identities apart."""
    identities = [decision for decision in decisions if decision.claim.identities]
    others = [decision for decision in decisions if not decision.claim.identities]
    said: list[str | Strong] = []
    for group, name in ((others, "claim"), (identities, "identity" if len(identities) == 1 else "identitie")):
        counts = Counter(decision.verdict for decision in group)
        if group:
            plural = "s" * (len(group) > 1)
            found = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
            said += [f"{' ' if said else ''}Of {len(group)} {name}{plural}: ", Strong(found), "."]
    return tuple(said)


def claim_row(entry: Mapping[str, Any]) -> list[Text]:
    """Cells for one entry of claims.json: badge, effect and evidence are of the one comparison that decides."""
    lead = entry["lead"]
    return [
        Strong(entry["id"]),
        entry["statement"],
        verdict_text(entry),
        "–" if lead is None else effect_text(lead),
        "–" if lead is None else evidence_text(entry, lead),
    ]


def verdict_text(entry: Mapping[str, Any]) -> Text:
    """The badge, and what kind of contradicted or inconclusive it is."""
    badge = Badge(entry["verdict"])
    return (badge, f": {entry['how']}") if entry["how"] else badge


def evidence_text(entry: Mapping[str, Any], lead: Mapping[str, Any]) -> str:
    """What the data are, how many seeds there were, and whether twice the training agrees."""
    if lead["kind"] == "exact":
        return "identity"
    return ", ".join(part for part in (entry["evidence"], seeds_text(len(lead["seeds"])), entry["budget"]) if part)


def seeds_text(seeds: int) -> str:
    """So many seeds."""
    return f"{seeds} seed{'s' * (seeds != 1)}"


def effect_text(outcome: Mapping[str, Any]) -> str:
    """The effect with its unit, then its interval in brackets."""
    if outcome["effect"] is None:
        return "–"
    shown = with_unit(amount(outcome, outcome["effect"]), outcome)
    if outcome["interval"] is None:
        return shown
    return f"{shown} [{f',{SPACE}'.join(amount(outcome, end) for end in outcome['interval'])}]"


def with_unit(shown: str, outcome: Mapping[str, Any]) -> str:
    """A number and what it is of; the effects of comparisons on the log scale are ratios."""
    unit = "times" if outcome["scale"] == "log" else outcome["unit"]
    return f"{shown}{SPACE}{unit}" if unit else shown


def amount(outcome: Mapping[str, Any], value: float) -> str:
    """An effect as a number, as fine as what matters, to two digits, and as its interval is wide; or an identity's."""
    if outcome["kind"] == "exact":
        return number(value)
    low, high = outcome["interval"] or (0.0, 0.0)
    wide = (high - low) / 4.0
    digits = max(1 + _places(outcome["relevant"] - (outcome["scale"] == "log")), _places(wide) if wide else 0)
    return plain(value, min(6, digits)) if outcome["scale"] == "log" else signed(value, min(6, digits))


def _places(size: float) -> int:
    """Of the first digit that is not 0, after the decimal point."""
    return max(-1, -math.floor(math.log10(size) + 1e-9))


def matters(outcome: Mapping[str, Any]) -> str:
    """The smallest effect that matters, with its unit."""
    shown = typeset(f"{outcome['relevant']:g}")
    return with_unit(f"±{SPACE}{shown}" if outcome["kind"] == "equal" else shown, outcome)


def value_text(metric: str, value: float) -> str:
    """What was measured, as score tables have it."""
    return plain(value, measure(metric).digits) if known(metric) else number(value)


def metric_title(metric: str, token: str = "token") -> str:
    """A measure's heading; what runs call their token need not be known where there are runs of several kinds."""
    return measure(metric).title.format(token=token)


def p_text(p: float | None, corrected: float | None = None) -> str:
    """A p-value, with the corrected one in brackets."""
    shown = [f"<{SPACE}0.001" if value < 0.001 else f"{value:.3f}" for value in (p, corrected) if value is not None]
    return "–" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} ({shown[1]})"
