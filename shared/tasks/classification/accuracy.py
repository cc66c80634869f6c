"""How many test texts are classified rightly: with intervals, by kind of text, and in paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import shared.tasks.classification.measures  # noqa: F401  registers the accuracy
from shared.claims.comparisons import Condition, Sides
from shared.claims.effects import selected
from shared.claims.estimates import estimate, having
from shared.claims.outcomes import Decision, Outcome
from shared.claims.results import RunResults, check_paired
from shared.claims.statistics import McNemar, mcnemar
from shared.metrics.quantities import Example
from shared.metrics.registry import MEASURES
from shared.reports.document import SPACE, Block, Heading, Paragraph, Table, Text, plain, signed
from shared.reports.naming import called
from shared.reports.verdicts import p_text

ACCURACY = "accuracy"
BY = {"set": "Accuracy by set, %", "label": "Accuracy by class, %", "split": "Accuracy by split, %"}
MOST_COLUMNS = 8
DIGITS = MEASURES[ACCURACY].digits
COLUMNS = (
    *("Claim", "Variants", "Texts", "Seed", "Difference, points"),
    *("Right with the first only / the second only", "p"),
)
EXPLAINED = (
    "Both variants classify the same texts. For every seed by itself, the table has the difference of the accuracies "
    "(first minus second), the texts that only one of the two classifies rightly, and the two-sided p of McNemar's "
    "exact test on them, not corrected for the number of tests: it says whether these two trained models differ, not "
    "whether others like them would. That is for the tests above."
)


def accuracies(runs: Sequence[RunResults]) -> list[Block]:
    """Accuracy on the test split with its 95 % interval, then by set, by class and by split where there are several.

    Args:
        runs: of one task; nothing is shown of those that classify nothing.
    """
    runs = having(runs, "correct")
    if not runs:
        return []
    rows: list[list[Text]] = []
    for run in runs:
        found = estimate(run, ACCURACY)
        texts = [row for row in next(iter(run.examples.values())) if row["split"] == "test"]
        if found is not None:
            low, high = (plain(min(max(end, 0.0), 100.0), DIGITS) for end in found.interval())
            cells = plain(found.value, DIGITS), f"[{low},{SPACE}{high}]"
            rows.append([called(run.variant), *cells, plain(len(texts), 0)])
    columns = ("Variant", "Accuracy, %", "95 % interval over texts and seeds", "Texts")
    return [Table(columns, rows, "lrrr"), *(table for field in BY for table in _by(runs, field))]


def _by(runs: Sequence[RunResults], field: str) -> list[Block]:
    """A column per value of ``field``, the most frequent first; nothing where there are one, too many or none."""
    counts = Counter(row[field] for row in _texts(next(iter(runs[0].examples.values())), field))
    if not 1 < len(counts) <= MOST_COLUMNS:
        return []
    values = [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    rows: list[list[Text]] = []
    for run in runs:
        texts = [row for examples in run.examples.values() for row in _texts(examples, field)]
        hits = Counter(row[field] for row in texts if row["correct"])
        shares = (100 * hits[value] / (counts[value] * len(run.examples)) for value in values)
        rows.append([called(run.variant), *(plain(share, 1) for share in shares)])
    columns = (BY[field], *(f"{value} (n = {counts[value]:,})" for value in values))
    return [Table(columns, rows, "l" + "r" * len(values))]


def _texts(examples: Sequence[Example], field: str) -> list[Example]:
    """Of the test split those that carry ``field``; those of every split where that is the field."""
    return [row for row in examples if field in row and (field == "split" or row["split"] == "test")]


def paired_tests(decisions: Sequence[Decision], results: Mapping[str, RunResults]) -> list[Block]:
    """For every two variants that the claims compare by accuracy, McNemar's test for each seed.

    Raises:
        ReplicationError: their test texts are not the same.
    """
    rows: list[list[Text]] = []
    for claim, row, outcome in _each_once(decisions):
        first, second = (results[variant] for variant in row.variants)
        for seed, effect in zip(outcome.seeds, outcome.per_seed, strict=True):
            test = _tested(first, second, seed, row.where)
            rows.append([
                claim, f"{called(first.variant)} – {called(second.variant)}", _restriction(row.where), str(seed),
                signed(row.sign * effect, DIGITS), f"{test.only_first}{SPACE}/{SPACE}{test.only_second}",
                p_text(test.p),
            ])  # fmt: skip
    return [Heading("Paired tests"), Table(COLUMNS, rows, "lllrrll"), Paragraph(EXPLAINED)] if rows else []


def _tested(first: RunResults, second: RunResults, seed: int, where: Mapping[str, Condition]) -> McNemar:
    check_paired(first.examples[seed], second.examples[seed], f"{second.variant}, seed {seed},")
    right = ([row["correct"] for row in run.examples[seed] if selected(row, where)] for run in (first, second))
    return mcnemar(*right)


def _each_once(decisions: Sequence[Decision]) -> Iterator[tuple[str, Sides, Outcome]]:
    """Every comparison of the accuracies of two variants, with the claim that makes it first."""
    seen = set()
    for decision in decisions:
        for row, outcome in zip(decision.claim.rows(), decision.outcomes, strict=False):  # none where nothing decides
            if not (
                isinstance(row, Sides) and outcome.effect is not None and row.metric == ACCURACY and row.than is None
            ):
                continue
            key = (row.variants, tuple(sorted(row.where.items())))
            if row.scale == "plain" and row.over is None and key not in seen:
                seen.add(key)
                yield decision.claim.id, row, outcome


def _restriction(where: Mapping[str, Condition]) -> str:
    """Which test texts count, if not all."""
    kept = {name: wanted for name, wanted in where.items() if (name, wanted) != ("split", "test")}
    return ", ".join(f"{name} {wanted}" for name, wanted in kept.items()) or "all"
