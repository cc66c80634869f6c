"""What reports of classification papers show: accuracies with intervals, by kind of text, and paired tests of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shared.claims.comparisons import Sides
from shared.claims.effects import meets
from shared.claims.estimates import estimate, runs_with
from shared.claims.outcomes import Decision
from shared.claims.results import RunResults, check_paired
from shared.claims.statistics import mcnemar
from shared.reports.curves import LearningCurves
from shared.reports.document import SPACE, Block, Heading, Paragraph, Table, Text, plain, signed
from shared.reports.exhibits import KindReport, Results, examples_with, table_by
from shared.reports.naming import name_and_code
from shared.reports.verdicts import p_text
from shared.tasks.classification.figures import CURVES

ACCURACY = "accuracy"
DIGITS = 2
"""As the measure has."""
BY = {"label": "Accuracy by class, %", "split": "Accuracy by split, %"}
MOST_COLUMNS = 8
PAIRED = (
    *("Claim", "Variants", "Texts", "Seed", "Difference, points"),
    *("Right with the first only / the second only", "p"),
)
PAIRED_EXPLAINED = (
    "Both variants classify the same texts. For every seed by itself, the table has the difference of the accuracies "
    "(first minus second), the texts that only one of the two classifies rightly, and the two-sided p of McNemar's "
    "exact test on them, not corrected for the number of tests: it says whether these two trained models differ, not "
    "whether others like them would. That is for the tests above."
)


def accuracies(runs: Sequence[RunResults]) -> list[Block]:
    """Accuracy on the test split with its 95 % interval, then by class and by split where there are several.

    Args:
        runs: of one task; nothing is shown of those that classify nothing.
    """
    runs = runs_with(runs, "correct")
    rows: list[list[Text]] = []
    for run in runs:
        if (found := estimate(run, ACCURACY)) is not None:
            low, high = (plain(min(max(end, 0.0), 100.0), DIGITS) for end in found.interval())
            count = sum(row["split"] == "test" for row in next(iter(run.examples.values())))
            cells = plain(found.value, DIGITS), f"[{low},{SPACE}{high}]"
            rows.append([name_and_code(run.variant), *cells, plain(count, 0)])
    columns = ("Variant", "Accuracy, %", "95 % interval over texts and seeds", "Texts")
    return [Table(columns, rows, "lrrr"), *(table for field in BY for table in _by(runs, field))] if runs else []


def _by(runs: Sequence[RunResults], field: str) -> list[Block]:
    """A column per value of ``field``, the most frequent first; nothing where there are one, too many or none."""
    counts = Counter(row[field] for row in examples_with(next(iter(runs[0].examples.values())), field))
    if not 1 < len(counts) <= MOST_COLUMNS:
        return []
    ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def accuracy(run: RunResults, value: str) -> str:
        texts = [row for of in run.examples.values() for row in examples_with(of, field) if row[field] == value]
        return plain(100 * sum(row["correct"] for row in texts) / len(texts), 1)

    return [table_by(BY[field], ordered, runs, accuracy)]


def paired_tests(decisions: Sequence[Decision], results: Results) -> list[Block]:
    """For every two variants that the claims compare by accuracy, McNemar's test for each seed.

    Raises:
        ReplicationError: their test texts are not the same.
    """
    rows: list[list[Text]] = []
    seen = set()
    for decision in decisions:
        for row, outcome in zip(decision.claim.rows(), decision.outcomes, strict=False):  # none where nothing decides
            if not isinstance(row, Sides) or outcome.effect is None:
                continue
            key = (row.variants, tuple(sorted(row.where.items())))
            if (row.metric, row.than, row.scale, row.over) != (ACCURACY, None, "plain", None) or key in seen:
                continue
            seen.add(key)
            first, second = (results[variant] for variant in row.variants)
            kept = [f"{name} {wanted}" for name, wanted in row.where.items() if (name, wanted) != ("split", "test")]
            for seed, effect in zip(outcome.seeds, outcome.per_seed, strict=True):
                check_paired(first.examples[seed], second.examples[seed], f"{second.variant}, seed {seed},")
                sides = ([e["correct"] for e in run.examples[seed] if meets(e, row.where)] for run in (first, second))
                only_first, only_second, p = mcnemar(*sides)
                rows.append([
                    decision.claim.id, f"{name_and_code(first.variant)} – {name_and_code(second.variant)}",
                    ", ".join(kept) or "all", str(seed), signed(row.sign * effect, DIGITS),
                    f"{only_first}{SPACE}/{SPACE}{only_second}", p_text(p),
                ])  # fmt: skip
    return [Heading("Paired tests"), Table(PAIRED, rows, "lllrrll"), Paragraph(PAIRED_EXPLAINED)] if rows else []


REPORT = KindReport(tables=accuracies, sections=paired_tests, figures=(LearningCurves(curves=CURVES),))
