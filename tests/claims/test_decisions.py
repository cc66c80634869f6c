"""Verdicts of the claims of a paper: corrections, identities, parts, earlier attempts, and what was not run."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from shared.claims.attempts import Ledger
from shared.claims.outcomes import better, disagree, headline, left_open
from shared.claims.verdicts import decide
from tests.claims.made_runs import UNIT, by_name, claim, decided, made, pair, paper, primary

CORRECTED = "Holm's correction and that for earlier attempts"


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
        plain = [math.pi**2 / 6.0 * getattr(decision.lead.tests, name) for decision in found]
        ordered = sorted(range(3), key=lambda i: plain[i])
        expected, highest = [0.0] * 3, 0.0
        for rank, i in enumerate(ordered):
            highest = max(highest, min(1.0, (3 - rank) * plain[i]))
            expected[i] = highest
        assert [getattr(decision.lead.tests, corrected) for decision in found] == pytest.approx(expected)


def test_a_verdict_that_holm_takes_back_is_inconclusive_and_says_so():
    """An effect of three and a half standard errors is enough alone (p = 0.012), but not among four."""
    effect = 3.5 * 4.0 / math.sqrt(5)
    (alone,) = several(effect, spread=4.0)
    assert (alone.verdict, alone.reason) == ("reproduced", "")
    among = several(effect, *[0.5] * 3, spread=4.0)
    assert [decision.verdict for decision in among] == ["inconclusive"] * 4
    taken_back = f"reproduced by the tests alone, but not after {CORRECTED}"
    assert [decision.reason for decision in among] == [taken_back] + [""] * 3
    assert among[0].lead.interval[0] > 0.0  # the plain interval is still the one shown


def test_a_contradiction_that_holm_takes_back_is_no_reproduction():
    """Above 0 for sure, and below 1 but for the correction: not the other verdict."""
    spread, error = 0.1, 0.1 / math.sqrt(5)
    found = several(1.0 - 3.0 * error, 1.0, 1.0, 1.0, spread=spread)
    assert found[0].lead.tests.above_holm < 0.01
    assert (found[0].verdict, found[0].how) == ("inconclusive", "")
    assert found[0].reason == f"contradicted by the tests alone, but not after {CORRECTED}"


def test_supporting_rows_are_neither_corrected_nor_decide():
    wrong = primary(name="the other way round", variants=("b", "a"))
    right = primary(name="again")
    supported = paper(claim(supporting=[wrong, right]))
    found = decided(pair(2.0), claims=supported)
    assert found.verdict == "reproduced"
    assert [row.verdict for row in found.outcomes] == ["reproduced", "contradicted", "reproduced"]
    assert [row.tests.above_holm is None for row in found.outcomes] == [False, True, True]
    assert (found.agreeing, len(found.supporting)) == (1, 2)


def identity(**fields):
    return {"name": "count", "variant": "a", "metric": "parameters"} | fields


@pytest.mark.parametrize(("numbers", "fields", "verdict", "worst"), [
    ([4.0, 4.0], {"value": 4.0}, "verified", 4.0),
    ([4.0, 4.1], {"value": 4.0}, "refuted", 4.1),
    ([4.0, 4.1, 3.8], {"value": 4.0, "tolerance": 0.25}, "verified", 3.8),
    ([1e-7, 3e-6], {"at_most": 1e-5}, "verified", 3e-6),
    ([1e-7, 3e-5], {"at_most": 1e-5}, "refuted", 3e-5),
    ([float("nan")], {"at_most": 1.0}, "refuted", None),
])  # fmt: skip
def test_an_identity_holds_in_every_seed_and_so_do_the_others_of_its_claim(numbers, fields, verdict, worst):
    runs = [made("a", {"parameters": numbers})]
    found = decided(runs, paper(claim(primary=None, identities=[identity(**fields)])))
    assert (found.verdict, found.how, found.checks) == (verdict, "", ())
    assert found.reason == ("all identities hold" if verdict == "verified" else "does not hold: count")
    assert worst is None or found.lead.effect == worst
    assert (found.lead.interval, found.lead.tests) == (None, None)
    both = paper(claim(primary=None, identities=[identity(name="known", at_most=9.0), identity(**fields)]))
    assert (decided(runs, both).verdict, decided(runs, both).reason) == (
        found.verdict, "does not hold: known, count" if worst is None else found.reason,
    )  # fmt: skip


def test_identities_take_no_part_in_the_correction():
    exact = claim("T99-C2", primary=None, identities=[identity(value=4.0)])
    first, second = pair(2.0)
    runs = [first, second, made("c", {"parameters": [4.0]})]
    exact = exact.model_copy(update={"identities": (exact.identities[0].model_copy(update={"variant": "c"}),)})
    alone, verified = decide(paper(claim(), exact), by_name(*runs), "quick")
    assert (alone.verdict, verified.verdict) == ("reproduced", "verified")
    assert alone.lead.tests.above_holm == pytest.approx(math.pi**2 / 6.0 * alone.lead.tests.above)


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


@pytest.mark.parametrize(("where", "verdict"), [("quick", "not tested"), ("bench", "reproduced")])
def test_a_claim_that_nothing_decides_here_says_why(where, verdict):
    found = decided(pair(2.0), paper(claim(not_decided={where: "no such data"})))
    assert found.verdict == verdict
    assert ((found.reason, found.outcomes) == ("no such data", ())) == (verdict == "not tested")


def test_the_evidence_is_that_of_the_first_variant():
    runs = by_name(*pair(2.0))
    (plain,) = decide(paper(claim()), runs, "quick")
    (told,) = decide(paper(claim()), runs, "quick", evidence={"a": "paper's data"})
    assert (plain.evidence, told.evidence) == ("generated", "paper's data")


def test_the_json_entry_carries_what_decided_and_every_row():
    found = decided(pair(2.0), paper(claim(supporting=[primary(name="again")])))
    entry = json.loads(json.dumps(found.to_json()))
    said = [entry[name] for name in ("id", "verdict", "scale", "budget")]
    assert said == ["T99-C1", "reproduced", "quick", "one budget"]
    assert entry["lead"] == entry["comparisons"][0]
    assert [row["name"] for row in entry["comparisons"]] == ["primary", "again"]
    names = ["floor", "room", "control", "tuning", "gap", "doubling", "order"]
    assert [check["name"] for check in entry["checks"]] == names
    assert (entry["supporting"], entry["agreeing"], entry["changed"]) == (1, 1, None)


def entry(verdict, evidence="generated", scale="quick"):
    return {"id": "A", "verdict": verdict, "evidence": evidence, "scale": scale}


ORDERED = [
    entry("not tested", None, "paper_scale"), entry("inconclusive"), entry("inconclusive", "standard data", "bench"),
    entry("reproduced"), entry("refuted", None, "bench"), entry("contradicted", "generated", "paper_scale"),
    entry("contradicted", "standard data"), entry("reproduced", "standard data", "bench"),
    entry("contradicted", "paper's data", "smoke"), entry("reproduced", "paper's data", "paper_scale"),
]  # fmt: skip
"""From the weakest to the strongest."""


def test_decided_comes_before_data_and_data_before_scale():
    for n, best in enumerate(ORDERED):
        for worse in ORDERED[:n]:
            assert better([best, worse]) is better([worse, best]) is best


def test_what_is_measured_is_as_good_as_what_is_generated():
    quick, bench = entry("verified", "measured", "quick"), entry("verified", "generated", "bench")
    assert better([quick, bench]) is bench
    assert better([entry("reproduced", "measured", "bench"), entry("reproduced")])["scale"] == "bench"


@pytest.mark.parametrize(("verdicts", "expected"), [
    (("reproduced", "contradicted"), True),
    (("verified", "refuted"), True),
    (("reproduced", "reproduced"), False),
    (("reproduced", "verified"), False),
    (("contradicted", "inconclusive", "not tested"), False),
])  # fmt: skip
def test_only_decided_verdicts_disagree(verdicts, expected):
    assert disagree([entry(verdict) for verdict in verdicts]) is expected


def test_only_better_data_leave_a_decided_claim_open():
    best = entry("reproduced", "generated", "quick")
    undecided = [entry("inconclusive", data, "bench") for data in ("measured", "generated", "standard data")]
    assert left_open(best, [best, *undecided, entry("not tested", None, "bench")]) == undecided[2:]
    assert left_open(entry("reproduced", "standard data", "bench"), undecided) == []
    assert left_open(entry("inconclusive"), undecided) == []


PARTS = [{"says": "a is better", "by": "primary"}, {"says": "c is better", "by": "second"}]
NO_RUN = {"says": "d, too", "not_tested": "no run"}


@pytest.mark.parametrize(("first", "second", "further", "verdict", "of_parts"), [
    (2.0, 2.0, [], "reproduced", ["reproduced", "reproduced"]),
    (2.0, -2.0, [], "in part", ["reproduced", "contradicted"]),
    (2.0, 0.97, [], "in part", ["reproduced", "inconclusive"]),
    (2.0, 2.0, [NO_RUN], "in part", ["reproduced", "reproduced", "not tested"]),
    (2.0, None, [], "in part", ["reproduced", "not tested"]),
    (0.97, -2.0, [], "contradicted", ["inconclusive", "contradicted"]),
])  # fmt: skip
def test_a_claim_is_reproduced_only_if_all_of_its_parts_are(first, second, further, verdict, of_parts):
    runs = pair(first)
    if second is not None:
        runs += [replace(run, variant=name) for run, name in zip(pair(second), "cd", strict=True)]
    claims = paper(claim(supporting=[primary(name="second", variants=("c", "d"))], parts=PARTS + further))
    found = decided(runs, claims)
    assert (found.verdict, [part.verdict for part in found.parts]) == (verdict, of_parts)
    assert [row.deciding for row in found.outcomes] == [True, True]
    assert second is None or found.outcomes[1].tests.above_holm is not None
    opposite = (found.how, found.reason) == ("opposite", "it is contradicted that c is better")
    assert opposite == (verdict == "contradicted")


def test_what_holds_by_mathematics_is_an_identity():
    found = decided(pair(2.0), paper(claim(by_mathematics="Lemma 2")))
    assert (found.verdict, found.sort) == ("verified", "identity")
    assert decided(pair(-2.0), paper(claim(by_mathematics="Lemma 2"))).verdict == "refuted"


def line(design="same", *, attempt=1, seeds=(1, 2, 3, 4, 5), effects=(), verdict="inconclusive", relevant=1.0, **more):
    return {"claim": "T99-C1", "scale": "quick", "plan": "p", "design": design, "attempt": attempt, "seeds": [*seeds],
            "effects": [*effects], "verdict": verdict, "relevant": relevant, "how": "", "evidence": "generated"
            } | more  # fmt: skip


def with_ledger(runs, *lines):
    ledger = Ledger(lines, {"T99-C1": "p"}, {"T99-C1": "same"})
    return decide(paper(claim()), by_name(*runs), "quick", ledger=ledger)[0]


def test_effects_of_the_same_design_are_pooled_and_those_of_others_stay_beside_it():
    runs, further = pair(2.0), (11, 12, 13, 14, 15)
    low = line(effects=[1.0] * 5, seeds=further)
    other = line("other", attempt=2, effects=[9.0] * 5, verdict="contradicted")
    found = with_ledger(runs, low, other)
    assert (found.lead.effect, found.lead.pooled, found.history.attempt) == (pytest.approx(1.5), 5, 3)
    assert len(found.lead.per_seed) == 5
    entry = found.to_json()
    assert (entry["attempt"], entry["before"]) == (3, ["inconclusive", "contradicted"])
    assert [each["design"] for each in entry["lines"]] == ["other"]
    assert headline([entry | {"design": "same"}])["verdict"] == "mixed"
    assert headline([entry | {"design": "same", "lines": []}])["verdict"] == "reproduced"


def test_a_seed_that_was_run_again_is_one_seed_still_and_void_attempts_do_not_count():
    runs, first = pair(2.0), line(effects=[1.0] * 5, seeds=(1, 2, 3, 4, 5))
    found = with_ledger(runs, first)
    assert (found.lead.effect, found.lead.pooled, found.lead.again) == (pytest.approx(1.5), 0, 5)
    assert with_ledger(runs, first, first | {"void": "wrong gradients"}).lead.effect == pytest.approx(2.0)


def test_the_same_numbers_again_are_the_same_attempt():
    runs = pair(2.0)
    effects_now = [float(f"{value:.10g}") for value in with_ledger(runs).lead.per_seed]
    again = with_ledger(runs, line(effects=[0.0] * 5, seeds=(6, 7, 8, 9, 10)), line(attempt=2, effects=effects_now))
    assert (again.history.attempt, again.lead.pooled) == (2, 5)
    ledger = Ledger([line(attempt=1, effects=effects_now, verdict="reproduced")], {"T99-C1": "p"}, {"T99-C1": "same"})
    entry = with_ledger(runs).to_json() | {"ended": None, "commits": [], "machine": []}
    assert ledger.new_lines([entry]) == []
    (added,) = ledger.new_lines([entry | {"verdict": "inconclusive"}])
    assert (added["attempt"], added["verdict"], added["alone"]) == (1, "inconclusive", "reproduced")


def test_each_attempt_is_tested_at_a_smaller_level():
    """Three and a half standard errors are enough for the first attempt, p = 0.012, and not for the second."""
    runs = pair(3.5 * 4.0 / math.sqrt(5), 4.0)
    assert with_ledger(runs).verdict == "reproduced"
    second = with_ledger(runs, line("other", effects=[0.0] * 5))
    assert (second.verdict, second.history.attempt) == ("inconclusive", 2)
    assert with_ledger(runs, line("other", attempt=None, seeds=(1, 2))).verdict == "reproduced"  # decided nothing


@pytest.mark.parametrize(
    ("effect", "part", "seeds", "cpu", "confirmed"),
    [(2.0, 2.0, range(1001, 1006), "x", "confirmed"), (-2.0, 2.0, range(1001, 1006), "x", "not confirmed"),
     (2.0, -2.0, range(1001, 1006), "x", "not confirmed"),
     (2.0, 2.0, range(1001, 1005), "x", "one run"), (2.0, 2.0, range(1001, 1006), "y", "one run")],
)  # fmt: skip
def test_further_seeds_of_another_day_or_machine_confirm_all_that_was_decided(effect, part, seeds, cpu, confirmed):
    runs = []
    for name, run, again in zip("abcd", pair(2.0) * 2, pair(effect) + pair(part), strict=True):
        later = dict(zip(seeds, again.metrics.values(), strict=False))
        whole = replace(run, variant=name, metrics={**run.metrics, **later})
        made_on = {seed: "y" if seed < 1000 else cpu for seed in whole.seeds}
        vars(whole)["runs"] = {seed: {"cpu": on, "finished": "2026-01-01T00:00:00"} for seed, on in made_on.items()}
        runs.append(whole)
    claims = paper(claim(supporting=[primary(name="second", variants=("c", "d"))], parts=PARTS))
    (found,) = decide(claims, by_name(*runs), "quick", confirming={"T99-C1": [*range(1001, 1006)]})
    assert (found.verdict == "inconclusive", found.confirmed) == (confirmed == "not confirmed", confirmed)
    assert found.lead.seeds == (1, 2, 3, 4, 5)


SIX = tuple("abcdef")


def outcome(effect, spread=0.1, **changes):
    """Of an effect, by default with a standard error of 0.045, where 1 matters."""
    return decided(pair(effect, spread), **changes).lead


@pytest.mark.parametrize(("effect", "changes", "expected"), [
    (2.0, {}, ("reproduced", "")),
    (1.05, {}, ("reproduced", "")),
    (0.95, {}, ("inconclusive", "real, whether it matters is open")),  # above 0, and not clearly below 1
    (0.5, {}, ("contradicted", "real but too small to matter")),
    (0.0, {}, ("contradicted", "no effect that matters")),
    (-0.5, {}, ("contradicted", "opposite")),
    (-2.0, {}, ("contradicted", "opposite")),
    (-2.0, {"kind": "less"}, ("reproduced", "")),
    (2.0, {"kind": "less"}, ("contradicted", "opposite")),
    (0.05, {"relevant": 0.1}, ("inconclusive", "")),
    (0.0, {"kind": "equal"}, ("reproduced", "")),
    (0.85, {"kind": "equal"}, ("reproduced", "")),
    (-0.85, {"kind": "equal"}, ("reproduced", "")),
    (0.95, {"kind": "equal"}, ("inconclusive", "")),
    (-1.05, {"kind": "equal"}, ("inconclusive", "")),
    (1.2, {"kind": "equal"}, ("contradicted", "differs by more than matters")),
    (-1.2, {"kind": "equal"}, ("contradicted", "differs by more than matters")),
    (0.95, {"kind": "equal", "may_be": "greater"}, ("reproduced", "")),
    (1.2, {"kind": "equal", "may_be": "greater"}, ("reproduced", "")),
    (-1.05, {"kind": "equal", "may_be": "greater"}, ("inconclusive", "")),
    (-1.2, {"kind": "equal", "may_be": "greater"}, ("contradicted", "differs by more than matters")),
    (-1.2, {"kind": "equal", "may_be": "less"}, ("reproduced", "")),
    (1.2, {"kind": "equal", "may_be": "less"}, ("contradicted", "differs by more than matters")),
    (4.0, {"scale": "log", "relevant": 1.5}, ("reproduced", "")),
    (0.4, {"scale": "log", "relevant": 1.5}, ("contradicted", "real but too small to matter")),
    (0.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "no effect that matters")),
    (-2.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "opposite")),
    (-2.0, {"scale": "log", "relevant": 1.5, "kind": "less"}, ("reproduced", "")),
    (2.0, {"variants": ("a",), "than": 4.0}, ("reproduced", "")),
    (2.0, {"variants": ("a",), "than": 7.0}, ("contradicted", "opposite")),
    # What every seed repeats is certain, such as a count of operations: its interval has no width.
    (2.0, {"spread": 0.0}, ("reproduced", "")),
    (1.0, {"spread": 0.0}, ("reproduced", "")),
    (0.5, {"spread": 0.0}, ("contradicted", "real but too small to matter")),
    (0.0, {"spread": 0.0}, ("contradicted", "no effect that matters")),
    (-1.0, {"spread": 0.0}, ("contradicted", "opposite")),
])  # fmt: skip
def test_the_table(effect, changes, expected):
    found = outcome(effect, **changes)
    assert (found.verdict, found.how) == expected
    assert "spread" not in changes or found.interval == pytest.approx((effect, effect))


def test_a_correlation_that_is_undefined_in_a_seed_says_so():
    runs = [made(name, {"score": i + UNIT, "other": np.ones(5)}) for i, name in enumerate(SIX)]
    found = decided(runs, kind="correlation", variants=SIX, other="other", relevant=0.3)
    assert (found.verdict, found.lead.effect) == ("inconclusive", None)
    assert found.reason == "score or other is undefined in seed 1, 2, 3, 4, 5"


@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_fewer_than_five_seeds_never_decide(seeds):
    found = decided(pair(50.0, 0.01, seeds=UNIT[:seeds]))
    word = "seed" if seeds == 1 else "seeds"
    assert (found.verdict, found.reason) == ("inconclusive", f"{seeds} {word}, and at least 5 decide")
    assert (found.lead.interval is None) == (seeds == 1)


def test_what_the_outcome_holds():
    lead = decided([*pair(2.0)], paper=3.0).lead
    low, high = stats.t.interval(0.95, 4, 2.0, 0.1 / math.sqrt(5))
    assert lead.interval == pytest.approx((low, high), abs=0.02)
    assert (lead.effect, lead.relevant, lead.paper) == (pytest.approx(2.0), 1.0, 3.0)
    assert lead.per_seed == pytest.approx(2.0 + 0.1 * UNIT)
    assert (lead.sides["a"], lead.sides["b"]) == (pytest.approx(6.0), pytest.approx(4.0))
    assert (lead.seeds, lead.n, lead.drawn_of, lead.deciding) == ((1, 2, 3, 4, 5), None, "", True)
    assert lead.tests.above == pytest.approx(stats.t.sf(2.0 / 0.1 * math.sqrt(5), 4))
    assert lead.tests.below == pytest.approx(stats.t.cdf(1.0 / 0.1 * math.sqrt(5), 4))


def test_on_the_log_scale_ratios_are_shown():
    lead = decided(pair(4.0), scale="log", relevant=1.5, paper=2.5).lead
    low, high = lead.interval
    assert (lead.relevant, lead.paper, lead.unit) == (1.5, 2.5, "")
    assert low < lead.effect < high
    assert lead.effect == pytest.approx(2.0, abs=0.01)
    assert lead.per_seed == pytest.approx((8.0 + 0.1 * UNIT) / 4.0)
