"""Which of several verdicts is the better evidence."""

from itertools import permutations

import pytest

from shared.claims.outcomes import VERDICTS, better, disagree, left_open


def entry(verdict, evidence="generated", scale="quick"):
    return {"id": "A", "verdict": verdict, "evidence": evidence, "scale": scale}


ORDERED = [
    entry("not tested", None, "paper_scale"),
    entry("inconclusive", "generated", "quick"),
    entry("inconclusive", "standard data", "bench"),
    entry("reproduced", "generated", "quick"),
    entry("refuted", None, "bench"),
    entry("contradicted", "generated", "paper_scale"),
    entry("contradicted", "standard data", "quick"),
    entry("reproduced", "standard data", "bench"),
    entry("contradicted", "paper's data", "smoke"),
    entry("reproduced", "paper's data", "paper_scale"),
]
"""From the weakest to the strongest."""


def test_decided_comes_before_data_and_data_before_scale():
    for n, best in enumerate(ORDERED):
        for worse in ORDERED[:n]:
            assert better([best, worse]) is better([worse, best]) is best


def test_the_order_of_reports_changes_nothing():
    chosen = ORDERED[:5]
    assert all(better(order) is chosen[-1] for order in permutations(chosen))


def test_what_is_measured_is_as_good_as_what_is_generated():
    quick, bench = entry("verified", "measured", "quick"), entry("verified", "generated", "bench")
    assert better([quick, bench]) is bench
    assert better([entry("reproduced", "measured", "bench"), entry("reproduced")])["scale"] == "bench"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (("reproduced", "contradicted"), True),
        (("verified", "refuted"), True),
        (("reproduced", "reproduced"), False),
        (("reproduced", "verified"), False),
        (("contradicted", "inconclusive", "not tested"), False),
    ],
)
def test_only_decided_verdicts_disagree(verdicts, expected):
    assert disagree([entry(verdict) for verdict in verdicts]) is expected


def test_only_better_data_leave_a_decided_claim_open():
    best = entry("reproduced", "generated", "quick")
    undecided = [entry("inconclusive", data, "bench") for data in ("measured", "generated", "standard data")]
    assert left_open(best, [best, *undecided, entry("not tested", None, "bench")]) == undecided[2:]
    assert left_open(entry("reproduced", "standard data", "bench"), undecided) == []
    assert left_open(entry("inconclusive"), undecided) == []


def test_every_verdict_has_a_rank():
    for verdict in VERDICTS:
        assert better([entry(verdict, evidence) for evidence in (None, "measured")])["verdict"] == verdict
