"""Verdicts of the claims of a paper: Holm's correction, looks, identities, and what was not run."""

import json
import math
from dataclasses import replace

import pytest

from shared.claims import effects
from shared.claims.outcomes import better, disagree, left_open
from shared.claims.verdicts import decide
from tests.claims.made_runs import by_name, claim, decided, made, pair, paper, primary


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch):
    monkeypatch.setattr(effects, "RESAMPLES", 4_000)


def several(*values, spread=0.1, **fields):
    """The decisions on a paper that has a claim for every one of these effects."""
    claims, runs = [], []
    for i, value in enumerate(values):
        claims.append(claim(f"T99-C{i}", primary=primary(variants=(f"a{i}", f"b{i}"))))
        first, second = pair(value, spread)
        runs += [replace(first, variant=f"a{i}"), replace(second, variant=f"b{i}")]
    return decide(paper(*claims, **fields), by_name(*runs), "quick")


def test_holm_corrects_each_test_over_the_primaries_of_the_paper():
    found = several(0.12, 0.13, 0.2, spread=0.1)
    for name, corrected in (("above", "above_holm"), ("below", "below_holm")):
        plain = [getattr(decision.lead.tests, name) for decision in found]
        ordered = sorted(range(3), key=lambda i: plain[i])
        expected, highest = [0.0] * 3, 0.0
        for rank, i in enumerate(ordered):
            highest = max(highest, min(1.0, (3 - rank) * plain[i]))
            expected[i] = highest
        assert [getattr(decision.lead.tests, corrected) for decision in found] == pytest.approx(expected)


def test_a_verdict_that_holm_takes_back_is_inconclusive_and_says_so():
    """An effect of three standard errors is enough alone (p = 0.02), but not among four."""
    effect = 3.0 * 4.0 / math.sqrt(5)
    (alone,) = several(effect, spread=4.0)
    assert (alone.verdict, alone.reason) == ("reproduced", "5 seeds")
    among = several(effect, *[0.5] * 3, spread=4.0)
    assert [decision.verdict for decision in among] == ["inconclusive"] * 4
    taken_back = "reproduced by the tests alone, but not after Holm's correction"
    assert [decision.reason for decision in among] == [taken_back] + ["5 seeds"] * 3
    assert among[0].lead.interval[0] > 0.0  # the plain interval is still the one shown


def test_a_contradiction_that_holm_takes_back_is_no_reproduction():
    """Above 0 for sure, and below 1 but for the correction: not the other verdict."""
    spread, error = 0.1, 0.1 / math.sqrt(5)
    found = several(1.0 - 3.0 * error, 1.0, 1.0, 1.0, spread=spread)
    assert found[0].lead.tests.above_holm < 0.01
    assert (found[0].verdict, found[0].how) == ("inconclusive", "")
    assert found[0].reason == "contradicted by the tests alone, but not after Holm's correction"


def test_supporting_rows_are_neither_corrected_nor_decide():
    wrong = primary(name="the other way round", variants=("b", "a"))
    right = primary(name="again")
    supported = paper(claim(supporting=[wrong, right]))
    found = decided(pair(2.0), claims=supported)
    assert found.verdict == "reproduced"
    assert [row.verdict for row in found.outcomes] == ["reproduced", "contradicted", "reproduced"]
    assert [row.tests.above_holm is None for row in found.outcomes] == [False, True, True]
    assert (found.agreeing, len(found.supporting)) == (1, 2)


def test_looks_share_the_error_rate():
    """p = 0.02 is enough for the only look, not for one of three."""
    effect = 3.0 * 4.0 / math.sqrt(5)
    assert several(effect, spread=4.0)[0].verdict == "reproduced"
    assert several(effect, spread=4.0, looks=(5,))[0].verdict == "reproduced"
    assert several(effect, spread=4.0, looks=(5, 8, 12))[0].verdict == "inconclusive"
    assert several(10.0 * effect, spread=4.0, looks=(5, 8, 12))[0].verdict == "reproduced"


def test_a_verdict_that_the_looks_take_back_is_inconclusive_and_says_so():
    effect = 3.0 * 4.0 / math.sqrt(5)
    (found,) = several(effect, spread=4.0, looks=(5, 8, 12))
    looks = "by the tests alone, but not after the correction for the looks of the plan"
    assert (found.verdict, found.reason) == ("inconclusive", f"reproduced {looks}")
    error = 0.1 / math.sqrt(5)
    (found,) = several(1.0 - 3.0 * error, looks=(5, 8, 12))
    assert found.lead.tests.above < 0.001 < 0.025 / 3.0 < found.lead.tests.below < 0.025
    assert (found.verdict, found.reason) == ("inconclusive", f"contradicted {looks}")


def test_a_number_of_seeds_that_is_no_look_of_the_plan_decides_nothing():
    (found,) = several(2.0, looks=(8, 12))
    assert (found.verdict, found.how) == ("inconclusive", "5 seeds are none of the looks of the plan")
    assert found.reason == "the effect by itself would be reproduced, but 5 seeds are none of the looks of the plan"


def identity(**fields):
    return {"name": "count", "variant": "a", "metric": "parameters"} | fields


@pytest.mark.parametrize(
    ("numbers", "fields", "verdict", "worst"),
    [
        ([4.0, 4.0], {"value": 4.0}, "verified", 4.0),
        ([4.0, 4.1], {"value": 4.0}, "refuted", 4.1),
        ([4.0, 4.1, 3.8], {"value": 4.0, "tolerance": 0.25}, "verified", 3.8),
        ([1e-7, 3e-6], {"at_most": 1e-5}, "verified", 3e-6),
        ([1e-7, 3e-5], {"at_most": 1e-5}, "refuted", 3e-5),
        ([float("nan")], {"at_most": 1.0}, "refuted", None),
    ],
)
def test_an_identity_holds_in_every_seed_or_is_refuted(numbers, fields, verdict, worst):
    found = decided([made("a", {"parameters": numbers})], paper(claim(primary=None, identities=[identity(**fields)])))
    assert (found.verdict, found.how, found.checks) == (verdict, "", ())
    assert found.reason == ("all identities hold" if verdict == "verified" else "does not hold: count")
    assert worst is None or found.lead.effect == worst
    assert (found.lead.interval, found.lead.tests) == (None, None)


def test_all_identities_of_a_claim_must_hold():
    both = [identity(value=4.0), identity(name="error", metric="error", at_most=0.1)]
    claims = paper(claim(primary=None, identities=both))
    good, bad = (made("a", {"parameters": [4.0], "error": [error]}) for error in (0.0, 0.2))
    assert (decided([good], claims).verdict, decided([good], claims).reason) == ("verified", "all identities hold")
    assert (decided([bad], claims).verdict, decided([bad], claims).reason) == ("refuted", "does not hold: error")


def test_identities_take_no_part_in_the_correction():
    exact = claim("T99-C2", primary=None, identities=[identity(value=4.0)])
    first, second = pair(2.0)
    runs = [first, second, made("c", {"parameters": [4.0]})]
    exact = exact.model_copy(update={"identities": (exact.identities[0].model_copy(update={"variant": "c"}),)})
    alone, verified = decide(paper(claim(), exact), by_name(*runs), "quick")
    assert (alone.verdict, verified.verdict) == ("reproduced", "verified")
    assert alone.lead.tests.above_holm == alone.lead.tests.above


def skipped(variant, reason):
    return replace(made(variant, {"score": [1.0]}), metrics={}, not_run=reason)


@pytest.mark.parametrize(
    ("others", "reason"), [([], "b was not run at this scale"), ([skipped("b", "needs a GPU")], "b: needs a GPU")]
)
def test_a_claim_whose_variants_were_not_run_is_not_tested(others, reason):
    found = decided([pair(1.0)[0], *others])
    assert (found.verdict, found.reason, found.lead, found.evidence) == ("not tested", reason, None, None)
    assert [row.verdict for row in found.outcomes] == ["not tested"]


def test_a_supporting_row_that_was_not_run_is_not_counted():
    row = primary(name="elsewhere", variants=("a", "gone"))
    found = decided(pair(2.0), paper(claim(supporting=[row])))
    assert (found.verdict, found.agreeing, len(found.supporting), len(found.outcomes)) == ("reproduced", 0, 0, 2)


def test_an_identity_that_was_not_run_is_not_tested_whatever_the_others_say():
    both = [identity(value=4.0), identity(name="other", variant="gone", value=4.0)]
    found = decided([made("a", {"parameters": [5.0]})], paper(claim(primary=None, identities=both)))
    assert (found.verdict, found.reason) == ("not tested", "gone was not run at this scale")


@pytest.mark.parametrize("where", ["quick", "all"])
def test_a_claim_that_nothing_decides_here_says_why(where):
    found = decided(pair(2.0), paper(claim(not_decided={where: "no such data"})))
    assert (found.verdict, found.reason, found.outcomes) == ("not tested", "no such data", ())


def test_a_claim_that_is_not_decided_at_another_scale_is_decided_at_this():
    assert decided(pair(2.0), paper(claim(not_decided={"bench": "too long"}))).verdict == "reproduced"


def test_the_evidence_is_that_of_the_first_variant():
    runs = by_name(*pair(2.0))
    (plain,) = decide(paper(claim()), runs, "quick")
    (told,) = decide(paper(claim()), runs, "quick", evidence={"a": "paper's data"})
    assert (plain.evidence, told.evidence) == ("generated", "paper's data")


@pytest.mark.parametrize(
    ("changed", "expected"), [(None, None), ({}, ()), ({"T99-C1": ("primary.relevant",)}, ("primary.relevant",))]
)
def test_what_has_changed_since_the_plan_is_kept(changed, expected):
    (found,) = decide(paper(claim()), by_name(*pair(2.0)), "quick", changed=changed)
    assert found.changed == expected


def test_the_json_entry_carries_what_decided_and_every_row():
    found = decided(pair(2.0), paper(claim(supporting=[primary(name="again")])))
    entry = json.loads(json.dumps(found.to_json()))
    assert (entry["id"], entry["verdict"], entry["scale"], entry["budget"]) == (
        "T99-C1", "reproduced", "quick", "one budget",
    )  # fmt: skip
    assert entry["lead"] == entry["comparisons"][0]
    assert [row["name"] for row in entry["comparisons"]] == ["primary", "again"]
    assert [check["name"] for check in entry["checks"]] == ["floor", "room", "gap", "doubling", "order"]
    assert (entry["supporting"], entry["agreeing"], entry["changed"]) == (1, 1, None)


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
