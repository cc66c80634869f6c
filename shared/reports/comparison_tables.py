"""The tables behind a verdict: every comparison of a claim, and every seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from shared.claims.comparisons import Comparison, Exact, Row
from shared.claims.outcomes import Decision, Outcome
from shared.reports.document import SPACE, Badge, Block, Code, Table, Text, listed, plain, typeset
from shared.reports.exhibits import Results
from shared.reports.naming import called
from shared.reports.studies import number
from shared.reports.verdicts import (
    amount,
    compared_titles,
    effect_text,
    matters,
    p_text,
    value_text,
    with_unit,
)

COLUMNS = (
    *("Comparison", "As measured", "Variants", "Measure", "Effect, 95 % interval", "Matters from", "In the paper"),
    *("p of the first test (Holm)", "p of the second test (Holm)", "Seeds", "Test examples"),
)


def comparison_tables(decision: Decision, results: Results) -> list[Block]:
    """All comparisons of a claim, and the effect of every seed."""
    outcomes = decision.outcomes
    rows = [_row(*pair) for pair in zip(decision.claim.rows(), outcomes, strict=True)]
    blocks: list[Block] = [Table(COLUMNS, rows, "tlllllllllr")] if rows else []
    seeds = sorted({seed for outcome in outcomes for seed in outcome.seeds})
    of_seeds: list[list[Text]] = []
    for outcome in (each for each in outcomes if each.seeds):
        known = dict(zip(outcome.seeds, outcome.per_seed, strict=False))  # none where the effect is undefined
        of_seeds.append([outcome.name, *(_cell(outcome, known.get(seed)) for seed in seeds)])
    if decision.claim.primary is not None and decision.lead is not None:
        of_seeds += _sides(decision.claim.primary, decision.lead, results, seeds)
    if seeds:
        blocks.append(Table(("Effect of seed", *map(str, seeds)), of_seeds, "t" + "r" * len(seeds)))
    return blocks


def _cell(outcome: Outcome, value: float | None) -> str:
    return "–" if value is None else amount(asdict(outcome), value)


def _sides(row: Comparison, lead: Outcome, results: Results, seeds: Sequence[int]) -> list[list[Text]]:
    """The measure itself, of every variant and seed, where it is of the whole test split."""
    if row.over is not None or row.where != {"split": "test"}:
        return []
    rows: list[list[Text]] = []
    for variant in lead.variants:
        numbers = [results[variant].metrics.get(seed, {}).get(row.metric) for seed in seeds]
        shown = [
            "–" if value is None or not math.isfinite(value) else value_text(row.metric, value) for value in numbers
        ]
        rows.append([(*called(variant), f", {compared_titles(row, lead.token)[0]}"), *shown])
    return rows


def _row(row: Row, outcome: Outcome) -> list[Text]:
    found, tests = asdict(outcome), outcome.tests
    kind = "decides" if outcome.deciding else "supporting"
    reason = f": {outcome.reason}" if outcome.reason else ""
    paper = "–" if outcome.paper is None else with_unit(amount(found, outcome.paper), found)
    return [
        f"{outcome.name} ({kind}){reason}",
        (Badge(outcome.verdict), f": {outcome.how}") if outcome.how else Badge(outcome.verdict),
        tuple(listed([[Code(variant)] for variant in outcome.variants])),
        ", ".join(compared_titles(row, outcome.token)),
        effect_text(found),
        _bound(row) if isinstance(row, Exact) else matters(found) if outcome.relevant else "–",
        paper,
        "–" if tests is None else p_text(tests.above, tests.above_holm),
        "–" if tests is None else p_text(tests.below, tests.below_holm),
        ", ".join(map(str, outcome.seeds)) or "–",
        plain(outcome.n, 0),
    ]


def _bound(row: Exact) -> str:
    """What an identity's number must be."""
    if row.value is None:
        return f"at most {number(row.at_most)}"
    margin = f"{SPACE}±{SPACE}{typeset(f'{row.tolerance:g}')}" if row.tolerance else ""
    return f"exactly {number(row.value)}{margin}"
