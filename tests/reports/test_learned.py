"""What a report says of whether the models have learned."""

from dataclasses import replace

import pytest

from shared.claims.comparisons import Floor
from shared.claims.results import load_results
from shared.reports.document import Bullets, Table, plain_text
from shared.reports.exhibits import by_task
from shared.reports.runs import learned_blocks
from tests.synthetic_runs import Variant, build

BOUND = {"metric": "bleu", "at_least": 75.0, "because": "it is a test."}


@pytest.fixture
def tasks(tmp_path):
    variants = {"good": Variant("generated", 0.97), "poor": Variant("generated", 0.5)}
    return by_task(load_results(build(tmp_path, variants, examples=60)))


def rows(table):
    return [[plain_text(cell) for cell in row] for row in table.rows]


def test_every_variant_says_how_many_seeds_reach_the_floor(tasks):
    _, reasons, table = learned_blocks({"generated": Floor(**BOUND)}, tasks)
    assert isinstance(reasons, Bullets)
    assert plain_text(reasons.items[0]) == "generated: BLEU at least 75.00. It is a test."
    assert isinstance(table, Table)
    assert table.columns == ("Task", "Variant", "Seeds that learned"), "none is exempt"
    assert rows(table) == [["generated", "good", "3 of 3"], ["generated", "poor", "0 of 3"]]


def test_those_that_are_meant_to_fail_say_why(tasks):
    _, _, table = learned_blocks({"generated": Floor(**BOUND, exempt={"poor": "it is poor"})}, tasks)
    assert table.columns[-1] == "Exempt, because"
    assert [row[-1] for row in rows(table)] == ["", "it is poor"]
    assert len(table.align) == len(table.columns)


def test_a_floor_is_per_token_of_those_that_have_likelihoods(tasks):
    poor, good = sorted(tasks["generated"], key=lambda run: run.variant, reverse=True)
    aligner = replace(poor, token="word", mean={"aer": 0.5})
    translator = replace(good, token="piece")
    floor = Floor(metric="nll_per_token", at_most=1.0, because="it is a test.")
    _, reasons, _ = learned_blocks({"generated": floor}, {"generated": [aligner, translator]})
    assert plain_text(reasons.items[0]).startswith("generated: NLL per piece")
