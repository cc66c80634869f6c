"""The verdict part of a report: one table of all claims, then what decided each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from shared.claims.schema import Claim, Comparison, Exact
from shared.claims.verdicts import VERDICTS, Decision, Outcome
from shared.metrics.registry import measure
from shared.reports.document import (
    SPACE,
    Badge,
    Block,
    Code,
    Heading,
    Paragraph,
    Strong,
    Table,
    Text,
    plain,
    signed,
    typeset,
)
from shared.reports.studies import number

UNSIGNED = frozenset({"above", "below", "ratio_at_least", "exponent", "rank_correlation", "exact"})
"""Kinds of comparisons whose effects are values or ratios, and no differences."""
RULE = (
    "An effect comes with its 95 % interval over test examples and seeds (paired bootstrap over examples, "
    "Student's t over seeds). A comparison is reproduced if the interval lies wholly on the claimed side, "
    "contradicted if it lies wholly on the other, inconclusive if it covers the border. A claim is "
    "reproduced if all its deciding comparisons are, contradicted if any is. p is two-sided, and "
    "of the test that decided: that the effect lies on the claimed side or, of a contradicted comparison, that it "
    "lies outside; in brackets it is corrected by Holm's method over all deciding comparisons of the paper."
)


def overview(decisions: Sequence[Decision]) -> list[Block]:
    """The table of verdicts, and how they come about."""
    counts = Counter(decision.verdict for decision in decisions)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    rows = [claim_row(decision.to_json(), _paper_effect(decision.claim)) for decision in decisions]
    columns = (
        "Claim",
        "The paper says",
        "Verdict",
        "Effect",
        "95 % interval",
        "In the paper",
        "Seeds",
        "n",
        "Metric",
    )
    return [
        Heading("Verdicts"),
        Paragraph((f"Of {len(decisions)} claims: ", Strong(said), ".")),
        Table(columns, rows, "ltlrrlrrl"),
        Paragraph(
            "The figures in a row are those of the claim's first deciding comparison; the next section has "
            f"them all. n is the number of test examples. {RULE}"
        ),
    ]


def claim_row(entry: Mapping[str, Any], in_paper: Text | None = None) -> list[Text]:
    """Cells for one entry of claims.json; with ``in_paper`` the paper's effect stands before the seeds."""
    tested = entry["metric"] is not None
    return [
        Strong(entry["id"]),
        entry["statement"],
        Badge(entry["verdict"]),
        *(_figures(entry) if tested else ("–", "–")),
        *([] if in_paper is None else [in_paper]),
        plain(entry["seeds"], 0),
        plain(entry["n"], 0),
        metric_title(entry["metric"], entry.get("token", "token")) if tested else "–",
    ]


def details(decisions: Sequence[Decision]) -> list[Block]:
    """For every claim: what it says, every comparison, and the reason for the verdict."""
    blocks: list[Block] = [Heading("What decided each claim")]
    for decision in decisions:
        claim = decision.claim
        blocks += [
            Heading((f"{claim.id}: ", Badge(decision.verdict)), level=3),
            Paragraph(f"{claim.statement} ({claim.where}; in the paper: {claim.effect_in_paper.text}.)"),
        ]
        if decision.outcomes:
            comparisons = (*claim.deciding, *claim.also)
            rows = [_outcome_row(*pair) for pair in zip(comparisons, decision.outcomes, strict=True)]
            blocks.append(Table(_DETAIL_COLUMNS, rows, "tllllrrrrrr"))
        blocks.append(Paragraph((Strong("Reason:"), f" {decision.reason}.")))
        if claim.note:
            blocks.append(Paragraph(claim.note))
        if decision.verdict == "contradicted" and claim.if_contradicted:
            blocks.append(Paragraph((Strong("Why it may differ here:"), f" {claim.if_contradicted}")))
    return blocks


_DETAIL_COLUMNS = (
    *("Comparison", "Verdict", "Variants", "Metric", "Claimed", "Effect", "95 % interval"),
    *("In the paper", "p (Holm)", "n", "Seeds"),
)


def _outcome_row(comparison: Comparison, outcome: Outcome) -> list[Text]:
    name = outcome.name if outcome.deciding else f"{outcome.name} (supporting)"
    if outcome.reason:
        name = f"{name}: {outcome.reason}"
    variants: list[Code | str] = []
    for variant in outcome.variants:
        variants += [", ", Code(variant)]
    paper = (
        None if outcome.paper is None else _number(outcome.kind, outcome.paper, _digits(outcome.kind, outcome.metric))
    )
    return [
        name,
        Badge(outcome.verdict),
        tuple(variants[1:]),
        ", ".join(metric_title(metric, outcome.token) for metric in comparison.metrics()),
        _claimed_text(comparison),
        *_figures(asdict(outcome)),
        paper or "–",
        p_text(outcome.p_value, outcome.p_holm),
        plain(outcome.n, 0),
        f"{outcome.seeds}{' (spread unknown)' if outcome.seeds == 1 else ''}",
    ]


def metric_title(metric: str, token: str = "token") -> str:
    """A measure's heading; what runs call their token need not be known where there are runs of several kinds."""
    return measure(metric).title.format(token=token)


def _figures(outcome: Mapping[str, Any]) -> tuple[str, str]:
    """Effect with unit, and interval."""
    kind = outcome["kind"]
    digits = _digits(kind, outcome["metric"])
    effect, interval = outcome["effect"], outcome["interval"]
    return (
        "–" if effect is None else f"{_number(kind, effect, digits)}{SPACE}{outcome['unit']}".strip(),
        "–" if interval is None else f"[{f',{SPACE}'.join(_number(kind, end, digits) for end in interval)}]",
    )


def _digits(kind: str, metric: str) -> int:
    """After the decimal point: the metric's own, unless what is shown is a number without its unit."""
    digits = measure(metric).digits
    return max(digits, 2) if kind in ("ratio_at_least", "exponent", "rank_correlation") else digits


def _number(kind: str, value: float, digits: int) -> str:
    """Differences and slopes carry their sign; values and ratios do not. What is exact may be tiny, or a count."""
    if kind == "exact":
        return number(value)
    return plain(value, digits) if kind in UNSIGNED else signed(value, digits)


def _paper_effect(claim: Claim) -> str:
    """Written as the effect beside it, where it is the same value or ratio."""
    effect, first = claim.effect_in_paper, next(iter(claim.deciding), None)
    if effect.number is None:
        return effect.text
    shown = signed(effect.number, 2)
    if first is not None and first.kind in UNSIGNED and first.paper == effect.number:
        shown = _number(first.kind, effect.number, _digits(first.kind, first.metric))
    return f"{shown}{SPACE}{effect.unit or ''}".strip()


def p_text(p: float | None, corrected: float | None = None) -> str:
    """A p-value, with the corrected one in brackets."""
    shown = [f"<{SPACE}0.001" if value < 0.001 else f"{value:.3f}" for value in (p, corrected) if value is not None]
    return "–" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} ({shown[1]})"


def _claimed_text(comparison: Comparison) -> str:
    if isinstance(comparison, Exact):
        margin = f"{SPACE}±{SPACE}{typeset(f'{comparison.tolerance:g}')}" if comparison.tolerance else ""
        return f"{number(comparison.value)}{margin}"
    region = comparison.claimed()
    low, high = (typeset(f"{end + 0.0:g}") for end in region)  # + 0.0 turns -0.0 into 0
    if math.isinf(region[1]):
        return f">{SPACE}{low}"
    return f"<{SPACE}{high}" if math.isinf(region[0]) else f"{low} to {high}"
