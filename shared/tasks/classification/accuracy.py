"""How many test texts are classified rightly: with intervals, by kind of text, and in paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import shared.tasks.classification.measures  # noqa: F401  registers the accuracy
from shared.claims.mcnemar import McNemar, mcnemar
from shared.claims.results import RunResults, check_paired
from shared.claims.sampling import sample, selected
from shared.claims.schema import Comparison, Condition, Difference, Equal, Ladder, Ratio
from shared.claims.statistics import generator
from shared.claims.verdicts import Decision, Outcome
from shared.metrics.quantities import Example
from shared.metrics.registry import MEASURES
from shared.reports.document import SPACE, Block, Code, Heading, Paragraph, Table, Text, plain, signed
from shared.reports.estimates import estimate, having
from shared.reports.verdicts import p_text

ACCURACY = "accuracy"
BY = {"set": "Accuracy by set, %", "label": "Accuracy by class, %", "split": "Accuracy by split, %"}
MOST_COLUMNS = 8
DIGITS = MEASURES[ACCURACY].digits
COLUMNS = (
    *("Claim", "Variants", "Texts", "Difference, points", "95 % interval"),
    *("Seeds", "Right with the first only / the second only", "p"),
)
EXPLAINED = (
    "Both variants classify the same texts. The difference is the mean over seeds, its interval covers texts and "
    "seeds. For every seed by itself, the last columns have the texts that only one of the two classifies rightly, and "
    "the two-sided p of McNemar's exact test on them, not corrected for the number of tests: it says whether these two "
    "trained models differ, not whether others like them would."
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
            rows.append([Code(run.variant), *cells, plain(len(texts), 0)])
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
        rows.append([Code(run.variant), *(plain(share, 1) for share in shares)])
    columns = (BY[field], *(f"{value} (n = {counts[value]:,})" for value in values))
    return [Table(columns, rows, "l" + "r" * len(values))]


def _texts(examples: Sequence[Example], field: str) -> list[Example]:
    """Of the test split those that carry ``field``; those of every split where that is the field."""
    return [row for row in examples if field in row and (field == "split" or row["split"] == "test")]


@dataclass(frozen=True)
class _Pair:
    """Two variants that a claim compares by accuracy, on the test texts that meet ``where``; their difference."""

    variants: tuple[str, str]
    where: Mapping[str, Condition]
    effect: float | None
    interval: tuple[float, float] | None

    def tests(self, results: Mapping[str, RunResults]) -> dict[int, McNemar]:
        """Seed to its test, of the seeds that both have."""
        first, second = (results[variant] for variant in self.variants)
        found = {}
        for seed in sorted(first.examples.keys() & second.examples.keys()):
            check_paired(first.examples[seed], second.examples[seed], f"{second.variant}, seed {seed},")
            found[seed] = mcnemar(*(self._right(run.examples[seed]) for run in (first, second)))
        return found

    def _right(self, examples: Sequence[Example]) -> list[int]:
        return [row["correct"] for row in examples if selected(row, self.where)]


def paired_tests(decisions: Sequence[Decision], results: Mapping[str, RunResults]) -> list[Block]:
    """For every two variants that the claims compare by accuracy, McNemar's test for each seed.

    Raises:
        ReplicationError: their test texts are not the same.
    """
    rows: list[list[Text]] = []
    for claim, pair in _each_once(decisions, results):
        found = pair.tests(results)
        first, second = pair.variants
        ends = [signed(end, DIGITS) for end in pair.interval or ()]
        rows.append([
            claim, (Code(first), " – ", Code(second)), _restriction(pair.where),
            "–" if pair.effect is None else signed(pair.effect, DIGITS), f"[{f',{SPACE}'.join(ends)}]" if ends else "–",
            ", ".join(map(str, found)),
            "; ".join(f"{test.only_first}{SPACE}/{SPACE}{test.only_second}" for test in found.values()),
            "; ".join(p_text(test.p) for test in found.values()),
        ])  # fmt: skip
    return [Heading("Paired tests"), Table(COLUMNS, rows, "lllrrlll"), Paragraph(EXPLAINED)] if rows else []


def _each_once(decisions: Sequence[Decision], results: Mapping[str, RunResults]) -> Iterator[tuple[str, _Pair]]:
    """Every pair, with the claim that compares it first."""
    seen = set()
    for decision in decisions:
        comparisons = (*decision.claim.deciding, *decision.claim.also)
        for comparison, outcome in zip(comparisons, decision.outcomes, strict=True):
            if comparison.metric != ACCURACY or outcome.verdict == "not tested":
                continue
            for pair in _pairs(decision.claim.id, comparison, outcome, results):
                key = (pair.variants, tuple(sorted(pair.where.items())))
                if key not in seen:
                    seen.add(key)
                    yield decision.claim.id, pair


def _pairs(claim: str, comparison: Comparison, outcome: Outcome, results: Mapping[str, RunResults]) -> list[_Pair]:
    """The neighbours in a comparison of several variants; a ratio's or a ladder's differences are drawn here."""
    if isinstance(comparison, Difference | Equal):
        return [_Pair(comparison.variants, comparison.where, outcome.effect, outcome.interval)]
    if not isinstance(comparison, Ratio | Ladder):
        return []
    runs = [results[variant] for variant in comparison.variants]
    estimates = sample(comparison, runs, generator(claim, comparison.name)).estimates
    differences = (first - second for first, second in pairwise(estimates))
    return [
        _Pair(variants, comparison.where, difference.value, difference.interval())
        for variants, difference in zip(pairwise(comparison.variants), differences, strict=True)
    ]


def _restriction(where: Mapping[str, Condition]) -> str:
    """Which test texts count, if not all."""
    kept = {name: wanted for name, wanted in where.items() if (name, wanted) != ("split", "test")}
    return ", ".join(f"{name} {wanted}" for name, wanted in kept.items()) or "all"
