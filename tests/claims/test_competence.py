"""Models that have not learned decide nothing: floors, gaps that close, and twice the updates."""

from dataclasses import replace

import numpy as np
import pytest

from shared.claims.comparisons import Floor
from shared.claims.competence import Check, count_learned, doubling_check, floor_check, gap_check, room_check
from shared.claims.verdicts import decide
from tests.claims.made_runs import by_name, claim, comparison, decided, made, paper, primary, with_losses
from tests.synthetic_runs import write_training

SPREAD = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
GOOD = {"metric": "score", "at_least": 5.0, "because": "chance is 1"}


def pair(first, second, **fields):
    return [made(name, {"score": row}, **fields) for name, row in (("a", first), ("b", second))]


def check_of(decision, name):
    (found,) = [check for check in decision.checks if check.name == name]
    return found


CEILING = {"metric": "score", "at_most": 5.0, "because": "the entropy is 4"}


@pytest.mark.parametrize(("floor", "first", "second", "said", "verdict"), [
    (GOOD, [5, 6, 7, 8, 4.9], [9] * 5, "a: 4 of 5 learned, b: 5 of 5 learned", ""),
    (GOOD, [5, 6, 7, 4, 4.9], [9] * 5, "a: 3 of 5 learned, b: 5 of 5 learned", "a did not learn"),
    (GOOD, [9] * 5, [9] * 5, "a: 5 of 5 learned, b: 5 of 5 learned", ""),
    (CEILING, [5, 4, 4, 4, 5.1], [6] * 5, "a: 4 of 5 learned, b: 0 of 5 learned", "b did not learn"),
    (GOOD | {"exempt": {"b": "x"}}, [9] * 5, [1] * 5, "a: 5 of 5 learned, b: 0 of 5 learned (exempt)", ""),
])  # fmt: skip
def test_four_in_five_seeds_must_reach_the_floor_but_of_a_variant_that_is_exempt(floor, first, second, said, verdict):
    counts = count_learned({"made": Floor(**floor)}, pair(first, second), (1, 2, 3, 4, 5))
    check = floor_check(comparison(), counts, ())
    assert (check.passed, check.said, check.verdict) == ("no" if verdict else "yes", said, verdict)


def test_a_seed_without_the_number_has_not_reached_the_floor():
    run = replace(pair([9] * 5, [9] * 5)[0], metrics={seed: {} for seed in range(1, 6)})
    (count,) = count_learned({"made": Floor(**GOOD)}, [run], run.seeds)
    assert (count.reached, count.enough) == (0, False)
    (count,) = count_learned({"made": Floor(**GOOD)}, pair([float("nan")] * 5, [1])[:1], (1, 2, 3, 4, 5))
    assert count.reached == 0


def test_only_the_compared_seeds_must_have_learned():
    """Three more seeds of one side alone are good; of the five that decide two are not."""
    floors = {"made": Floor(**GOOD)}
    runs = pair([6.2, 6.1, 6.3, 1.9, 2.0, 9, 9, 9], [5.1, 5.0, 5.2, 0.8, 1.0])
    decision = decided(runs, floors=floors, relevant=0.5)
    assert [(each.reached, each.seeds) for each in decision.learned] == [(3, 5), (3, 5)]
    assert (decision.verdict, decision.how) == ("inconclusive", "a and b did not learn")


def test_every_side_has_the_floor_of_its_own_task():
    runs = [made("a", {"score": 9 + SPREAD}, task="easy"), made("b", {"score": 3 + SPREAD}, task="hard")]
    floors = {"easy": Floor(**GOOD), "hard": Floor(**GOOD | {"at_least": 2.0})}
    assert decided(runs, floors=floors).verdict == "reproduced"
    floors["hard"] = Floor(**GOOD)
    assert decided(runs, floors=floors).how == "b did not learn"
    del floors["hard"]
    assert [each.variant for each in decided(runs, floors=floors).learned] == ["a"]


@pytest.mark.parametrize(("effect", "as_measured"), [(2.0, "reproduced"), (-2.0, "contradicted")])
def test_the_floor_binds_either_verdict(effect, as_measured):
    runs = pair(4 + effect + SPREAD, 4 - 2 * SPREAD)
    assert decided(runs).verdict == as_measured
    found = decided(runs, floors={"made": Floor(**GOOD | {"at_least": 9.0})})
    assert (found.verdict, found.how) == ("inconclusive", "a and b did not learn")
    assert found.reason == f"the effect by itself would be {as_measured}, but a and b did not learn"
    assert found.lead.verdict == as_measured


def test_a_task_without_a_floor_asks_for_none():
    found = decided(pair(6 + SPREAD, 4 - SPREAD), floors={"other": Floor(**GOOD | {"at_least": 9.0})})
    assert found.verdict == "reproduced"
    assert check_of(found, "floor") == Check("floor", "not asked", "the task has no floor")
    assert found.learned == ()
    untrained = pair([5] * 5, [4] * 5)
    for run in untrained:
        vars(run)["runs"] = {seed: {"updates": 0} for seed in run.seeds}
    assert floor_check(comparison(), (), untrained).said == "nothing is trained"


def write_curves(folder, half, end, *, updates=400):
    """Validation losses of the seeds 1, 2, … at a quarter, half, three quarters and the end."""
    for seed, (middle, last) in enumerate(zip(half, end, strict=True), start=1):
        curve = []
        for quarter, loss in enumerate((9.0, middle, (middle + last) / 2, last), start=1):
            step = quarter * updates // 4
            curve += [[step, "train", "loss", 0.0], [step, "valid", "loss", loss]]
        write_training(folder / "train" / f"seed{seed}", {}, curve)


def trained(folder, name, score, half, end):
    write_curves(folder / name, half, end)
    return made(name, {"score": score}, folder=folder / name)


def curved(folder, half, end, scores=(6.0, 4.0)):
    """Two sides whose validation losses differ by ``half`` and ``end``, about one seed by seed."""
    first = trained(folder, "a", scores[0] + SPREAD, 2.0 + SPREAD, 1.0 + SPREAD)
    return [first, trained(folder, "b", scores[1] - SPREAD, 2.0 + half - SPREAD, 1.0 + end - SPREAD)]


@pytest.mark.parametrize(("half", "end", "passed"), [
    (0.5, 0.45, "yes"),
    (0.5, 0.26, "yes"),
    (0.5, 0.24, "no"),
    (0.5, -0.4, "no"),
    (-0.5, -0.1, "yes"),  # away from the other verdict
    (-0.5, 0.4, "yes"),
    (0.5, 1.5, "yes"),
    (0.01, 0.0, "cannot be told"),
    (0.0, 0.0, "cannot be told"),
])  # fmt: skip
def test_a_gap_that_has_shrunk_by_more_than_half_is_closing(tmp_path, half, end, passed):
    check = gap_check(comparison(), "reproduced", curved(tmp_path, half, end))
    said = f"the gap at half of the updates, {-half or 0:g}, cannot be told from none; it ended at 0"
    if passed != "cannot be told":
        said = f"at the end the gap is {end / half:.2f} times that at half of the updates"
    assert (check.passed, check.said) == (passed, said)
    assert check.verdict == ("still closing" if passed == "no" else "")


def test_a_closing_gap_binds_either_verdict(tmp_path):
    for sign, scores, as_measured in ((1.0, (6.0, 4.0), "reproduced"), (-1.0, (4.0, 6.0), "contradicted")):
        found = decided(curved(tmp_path / as_measured, sign * 0.5, sign * 0.1, scores))
        assert (found.verdict, found.how) == ("inconclusive", "still closing")
        closing = "the gap between the sides was still closing when training ended"
        assert found.reason == f"the effect by itself would be {as_measured}, but {closing}"


def test_equality_suffers_from_a_closing_gap_only_where_it_is_contradicted(tmp_path):
    runs = curved(tmp_path, 0.5, 0.1)
    equal = comparison(kind="equal", relevant=5.0)
    assert gap_check(equal, "reproduced", runs).said == "a gap that closes is no objection to equality"
    assert gap_check(equal, "contradicted", runs).passed == "no"
    assert check_of(decided(runs, kind="equal", relevant=5.0), "gap").passed == "not asked"
    assert decided(runs, kind="equal", relevant=0.5).how == "still closing"


def test_a_trend_is_judged_by_its_ends(tmp_path):
    first, last = curved(tmp_path, 0.5, 0.1)
    middle = trained(tmp_path, "c", 5.0 + SPREAD, 9.0 + SPREAD, 0.1 + SPREAD)
    trend = comparison(kind="falls", variants=("a", "c", "b"))
    assert gap_check(trend, "reproduced", [first, middle, last]).said.startswith("at the end the gap is 0.20 times")
    assert gap_check(trend, "reproduced", [first, last, middle]).said.startswith("at the end the gap is -0.13 times")


def test_gaps_are_of_the_seeds_that_both_have_curves_of(tmp_path):
    first, last = curved(tmp_path, 0.5, 0.1)
    for seed in (1, 2, 3, 4):
        (last.folder / "train" / f"seed{seed}" / "curve.csv").unlink()
    check = gap_check(comparison(), "reproduced", [first, last])
    assert (check.passed, check.said) == ("not asked", "no two curves of validation were recorded")


SIX = tuple("abcdef")


@pytest.mark.parametrize(("changes", "said"), [
    ({"learned": {"exempt": "late"}}, "late; at the end the gap is 0.20 times that at half of the updates"),
    ({"variants": ("a",), "than": 1.0, "learned": {"exempt": "one side"}}, "one side"),
    ({"variants": ("a",), "than": 1.0}, "there are no two sides"),
    ({"kind": "correlation", "variants": SIX, "other": "x", "relevant": 0.3}, "there are no two sides"),
    ({"metric": "alignment_accuracy", "relevant": 0.1}, "Alignment accuracy is not what training makes better"),
])  # fmt: skip
def test_the_gap_is_not_asked_for_where_it_means_nothing(tmp_path, changes, said):
    row = comparison(**changes)
    runs = curved(tmp_path, 0.5, 0.1)[: len(row.variants)]
    assert gap_check(row, "reproduced", runs) == Check("gap", "not asked", said)


EQUAL, LOG = {"kind": "equal"}, {"scale": "log", "relevant": 1.1}


@pytest.mark.parametrize(("effect", "verdict", "by_seed", "passed", "changes"), [
    (2.0, "reproduced", [1.9, 2.0, 2.1], "yes", {}),
    (2.0, "reproduced", [1.0, 1.0, 1.1], "yes", {}),
    (2.0, "reproduced", [0.9, 1.0, 1.0], "no", {}),  # loses more than half
    (2.0, "reproduced", [-2.0, -2.0, -2.0], "no", {}),  # changes sides
    (2.0, "reproduced", [9.0, 9.0, 9.0], "yes", {}),
    (0.1, "contradicted", [0.2, 0.3, 0.1], "yes", {}),
    (0.1, "contradicted", [1.0, 1.1, 1.2], "no", {}),  # what matters comes with more updates
    (-2.0, "contradicted", [-0.1, -0.1, -0.1], "yes", {}),  # no effect that matters still
    (-2.0, "contradicted", [2.0, 2.0, 2.0], "no", {}),
    (0.1, "reproduced", [0.5, 0.6, 0.7], "yes", EQUAL),
    (0.1, "reproduced", [-1.5, -1.6, -1.7], "no", EQUAL),
    (0.1, "contradicted", [-1.5, -1.6, -1.7], "yes", EQUAL),
    (0.1, "contradicted", [0.5, 0.6, 0.7], "no", EQUAL),
    (np.log(4.0), "reproduced", np.log([2.1, 2.1, 2.1]), "yes", LOG),  # half of a ratio is its root
    (np.log(4.0), "reproduced", np.log([1.9, 1.9, 1.9]), "no", LOG),
    (2.0, "reproduced", [-2.0, -2.0], "not asked", {}),
])  # fmt: skip
def test_twice_the_updates_of_three_seeds_must_agree(effect, verdict, by_seed, passed, changes):
    row = comparison(doubled=("a2", "b2"), **changes)
    check = doubling_check(row, effect, verdict, np.asarray(by_seed, dtype=float))
    shown = np.exp(np.mean(by_seed)) if changes == LOG else np.mean(by_seed)
    said = "2 seeds with twice the updates: too few" if len(by_seed) == 2 else f"the effect is {shown:.3g} (3 seeds)"
    assert (check.passed, check.said) == (passed, said)
    assert check.verdict == ("depends on the budget" if passed == "no" else "")


def test_what_was_not_doubled_says_that_there_was_one_budget():
    skipped = replace(made("b2", {"score": [1.0]}), metrics={}, not_run="too long")
    sides = [made(name, {"score": [mean + seed / 10 for seed in range(5)]}) for name, mean in (("a", 6.0), ("b", 4.0))]
    for changes, more in (({}, []), ({"doubled": ["a2", "b2"]}, [made("a2", {"score": [1.0]}), skipped])):
        decision = decided([*sides, *more], **changes)
        assert check_of(decision, "doubling").said == "nothing was trained with twice the updates"
        assert decision.budget == "one budget"


@pytest.mark.parametrize(
    ("scores", "twice", "as_measured"),
    [((6.0, 4.0), (4.5, 4.0), "reproduced"), ((3.0, 4.0), (6.0, 4.0), "contradicted")],
)
def test_twice_the_updates_bind_either_verdict(scores, twice, as_measured):
    runs = pair(scores[0] + SPREAD, scores[1] - SPREAD)
    later = [made(f"{name}2", {"score": score + SPREAD[:3]}) for name, score in zip("ab", twice, strict=True)]
    plain = decided(runs)
    assert (plain.verdict, plain.budget) == (as_measured, "one budget")
    found = decided([*runs, *later], doubled=("a2", "b2"))
    assert (found.verdict, found.how, found.budget) == ("inconclusive", *["depends on the budget"] * 2)
    same = [replace(run, variant=f"{run.variant}2") for run in runs]
    survived = decided([*runs, *same], doubled=("a2", "b2"))
    assert (survived.verdict, survived.budget) == (as_measured, "survives doubling")


def test_twice_the_updates_are_judged_on_the_test_examples():
    scores = np.random.default_rng(3).normal(1.0, 0.1, (5, 40))
    named = {"a": scores, "b": scores + 1.0, "a2": scores[:3], "b2": scores[:3] + 0.9}
    runs = [with_losses(name, of) for name, of in named.items()]
    found = decided(runs, kind="less", metric="nll_per_token", relevant=0.5, doubled=("a2", "b2"))
    assert (found.verdict, check_of(found, "doubling").said) == ("reproduced", "the effect is 0.9 (3 seeds)")


def test_all_that_failed_is_said(tmp_path):
    found = decided(curved(tmp_path, 0.5, 0.1), floors={"made": Floor(**GOOD | {"at_least": 9.0})})
    closing = "the gap between the sides was still closing when training ended"
    assert found.reason == f"the effect by itself would be reproduced, but a and b did not learn; {closing}"


def test_a_correlation_is_over_models_of_any_quality():
    correlation = {"kind": "correlation", "variants": list("abcdef"), "other": "other", "relevant": 0.2}
    counts = count_learned({"made": Floor(**GOOD)}, pair([1] * 5, [9] * 5), (1, 2, 3, 4, 5))
    assert floor_check(comparison(**correlation), counts, ()).passed == "not asked"


@pytest.mark.parametrize(("changes", "values", "passed"), [
    ({"kind": "greater"}, (99.9, 99.8), "no"),
    ({"kind": "greater"}, (90.1, 90.0), "yes"),
    ({"kind": "less"}, (0.1, 0.2), "no"),
    ({"kind": "less"}, (29.9, 30.0), "yes"),
    ({"kind": "greater"}, (79.8, 99.8), "not asked"),  # the opposite
    ({"kind": "greater", "scale": "log", "relevant": 1.1}, (99.9, 99.8), "no"),
    ({"kind": "greater", "scale": "log", "relevant": 1.1}, (50.1, 50.0), "yes"),
    ({"kind": "less", "scale": "log", "relevant": 1.1}, (0.1, 0.1), "not asked"),  # a ratio has no least value
    ({"kind": "rises", "variants": ("a", "b", "c")}, (99.0, 99.0, 99.0), "no"),
    ({"kind": "rises", "variants": ("a", "b", "c")}, (90.0, 90.0, 90.0), "yes"),
    ({"kind": "greater", "metric": "score"}, (9.1, 9.0), "not asked"),  # of which no best value is known
])  # fmt: skip
def test_where_the_rival_leaves_no_room_no_missing_effect_is_told(changes, values, passed):
    metric = changes.get("metric", "chrf")
    runs = [made(name, {metric: value + 0.01 * SPREAD}) for name, value in zip("abc", values, strict=False)]
    found = decided(runs, **{"metric": "chrf"} | changes)
    assert check_of(found, "room").passed == passed
    assert ("no room is left" in f"{found.how}; {found.reason}") == (passed == "no")


def test_no_perplexity_is_below_one():
    row = comparison(kind="less", scale="log", relevant=1.1, metric="perplexity")
    near, far = ({"a": value, "b": value} for value in (1.06, 1.2))
    assert [room_check(row, "no effect that matters", sides).passed for sides in (near, far)] == ["no", "yes"]


@pytest.mark.parametrize(
    ("shown", "verdict", "how"),
    [(2.0, "contradicted", "no effect that matters"), (0.0, "inconclusive", "the positive control shows no effect"),
     ("not run", "inconclusive", "the positive control was not run"),
     (None, "inconclusive", "there is no positive control")],
)  # fmt: skip
def test_an_effect_is_missing_only_where_a_positive_control_shows_one(shown, verdict, how):
    not_run = replace(made("c", {"score": [1.0]}), metrics={}, not_run="hours")
    third = not_run if shown == "not run" else made("c", {"score": 4 + (shown or 0.0) + SPREAD})
    runs = [*pair(4 + SPREAD, 4 - SPREAD), third]
    control = {"name": "known", "kind": "greater", "metric": "score", "variants": ("c", "b"), "relevant": 1.0}
    named = {} if shown is None else {"control": "known", "supporting": [control]}
    found = decided(runs, paper(claim(primary=primary(), **named)))
    assert (found.verdict, found.how) == (verdict, how)
    equal = claim(primary=primary(kind="equal"), **named)  # that two are equal is an effect that is missing, too
    assert decided(runs, paper(equal)).verdict == ("reproduced" if verdict == "contradicted" else "inconclusive")


@pytest.mark.parametrize(("kind", "untuned", "published", "how"), [
    ("greater", {}, None, "opposite"),
    ("greater", {"b": "one pilot seed"}, None, "opposite"),  # the rival's
    ("greater", {"a": "one pilot seed"}, None, "a was not tuned as the paper's side deserves"),
    ("less", {"a": "one pilot seed"}, None, "opposite"),  # that a has less of what is good says that b is better
    ("less", {"b": "one pilot seed"}, None, "b was not tuned as the paper's side deserves"),
    ("greater", {}, 5.0, "a was not tuned as the paper's side deserves"),
    ("greater", {}, 3.5, "opposite"),
])  # fmt: skip
def test_no_claim_is_contradicted_before_the_side_of_the_paper_is_tuned(kind, untuned, published, how):
    metric, worse = "chrf", -1.0 if kind == "greater" else 1.0
    runs = [made(name, {metric: value + SPREAD}) for name, value in (("a", 5.0 + worse), ("b", 5.0 - worse))]
    floor = {} if published is None else {"made": Floor(metric=metric, at_least=1.0, because="x", published=published)}
    claims = paper(claim(primary=primary(kind=kind, metric=metric)), floors=floor)
    (found,) = decide(claims, by_name(*runs), "quick", untuned=untuned)
    assert (found.verdict, found.how) == ("contradicted" if how == "opposite" else "inconclusive", how)


def test_of_a_reproduced_claim_it_is_said_that_the_rival_was_not_tuned():
    runs = by_name(*pair(9 + SPREAD, 6 + SPREAD))
    for untuned, passed in (({"a": "why"}, "not asked"), ({"b": "why"}, "cannot be told"), (None, "not asked")):
        (found,) = decide(paper(claim()), runs, "quick", untuned=untuned)
        (check,) = (each for each in found.checks if each.name == "tuning")
        assert (found.verdict, check.passed, "b: why" in check.said) == ("reproduced", passed, passed != "not asked")


@pytest.mark.parametrize(("reached", "sort"), [(4.0, "demonstration"), (6.0, "experiment")])
def test_what_a_side_that_is_exempt_cannot_do_is_a_demonstration(reached, sort):
    floors = {"made": Floor(**GOOD, exempt={"b": "has one vector"})}
    assert decided(pair(9 + SPREAD, reached + SPREAD), floors=floors).sort == sort


@pytest.mark.parametrize(("metric", "kind", "sides", "saturated"), [
    ("accuracy", "equal", (99.5, 99.9), True), ("accuracy", "equal", (97.0, 99.9), False),
    ("bits", "equal", (0.3, 0.0), True), ("bits", "equal", (1.3, 1.3), False),
    ("score", "equal", (0.0, 0.0), False), ("accuracy", "greater", (99.9, 99.5), False),
])  # fmt: skip
def test_an_equality_is_saturated_where_both_sides_are_near_the_best_value(metric, kind, sides, saturated):
    outcome = decided(pair([9] * 5, [9] * 5)).lead
    named = dict(zip("ab", sides, strict=True))
    assert replace(outcome, metric=metric, kind=kind, sides=named, relevant=1.0).saturated == saturated


def test_an_equality_of_sides_that_both_do_the_task_is_a_demonstration():
    found = decided(pair(9 + SPREAD, 9 + SPREAD), kind="equal")
    assert found.sort == "experiment"
    near = replace(found.lead, metric="accuracy", sides={"a": 99.9, "b": 99.8})
    assert replace(found, outcomes=(near,)).sort == "demonstration"


def test_no_floor_is_asked_of_a_study_of_the_task():
    runs = pair([1] * 5, [9] * 5)
    vars(runs[0])["runs"] = {seed: {"updates": 0} for seed in (1, 2, 3, 4, 5)}
    counts = count_learned({"made": Floor(**GOOD)}, runs, (1, 2, 3, 4, 5))
    assert [each.variant for each in counts] == ["b"]
