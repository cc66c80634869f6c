"""How often verdicts and intervals are right, by simulation through ``decide``.

A variant's score in a seed is normal with deviation 1, correlated between the two variants of a pair. Fixed random
numbers: a failure is no accident of one run.
"""

import numpy as np
import pytest

from shared.claims import effects
from shared.claims.attempts import Ledger
from shared.claims.verdicts import decide
from tests.claims.made_runs import by_name, claim, made, paper, primary, with_losses

RELEVANT = 0.3
"""So small that what has no effect is seldom contradicted first, which would hide that it was also reproduced."""
FALSE = 0.05
FAST = {"learned": {"exempt": "nothing was trained"}}


def scores(rng, papers, claims, seeds, correlation=0.0):
    """Scores (2, papers, claims, seeds) of pairs of variants that do not differ."""
    first, other = rng.normal(size=(2, papers, claims, seeds))
    return np.stack((first, correlation * first + np.sqrt(1.0 - correlation**2) * other))


def verdicts(found, relevant=RELEVANT, names="T"):
    """Outcomes of the primary comparisons: papers, each a list; the seeds of every number are 1, 2, …"""
    _, papers, claims, _ = found.shape
    base = claim(primary=primary(relevant=relevant, **FAST))
    judged = []
    for number in range(papers):
        pairs = [(f"a{c}", f"b{c}") for c in range(claims)]
        of_paper = paper(*[
            base.model_copy(update={
                "id": f"{names}{number}-C{c}", "primary": base.primary.model_copy(update={"variants": pair}),
            })
            for c, pair in enumerate(pairs)
        ])  # fmt: skip
        runs = by_name(*[
            made(name, {"score": found[side, number, c]}) for c, pair in enumerate(pairs)
            for side, name in enumerate(pair)
        ])  # fmt: skip
        judged.append(decide(of_paper, runs, "quick"))
    return judged


def share_with(judged, verdict):
    """Share of the papers that have any claim of this verdict."""
    return np.mean([any(decision.lead.verdict == verdict for decision in of_paper) for of_paper in judged])


def at_most(rate, papers):
    """The rate and three standard errors of what so many papers show of it."""
    return rate + 3.0 * np.sqrt(rate * (1.0 - rate) / papers)


def covered(judged, truth):
    intervals = [decision.lead.interval for of_paper in judged for decision in of_paper]
    return np.mean([low <= truth <= high for low, high in intervals])


@pytest.mark.parametrize("seeds", [5, 8, 12])
def test_the_interval_over_seeds_covers_the_effect_95_times_in_100(seeds):
    rates = []
    for correlation in (0.0, 0.5, 0.8):
        found = scores(np.random.default_rng([seeds, int(10 * correlation)]), 500, 1, seeds, correlation)
        found[0] += 0.7
        rates.append(covered(verdicts(found), 0.7))
    assert np.mean(rates) == pytest.approx(0.95, abs=0.02)
    assert rates == pytest.approx([0.95] * 3, abs=0.03)  # three standard errors of 500


def measured(rng, seeds, correlation, *, seed_spread, shared, own, families=None, size=40):
    """One pair's losses on a test set drawn anew, (2, K, E); the true difference is 0.

    Args:
        rng: source.
        seeds: K.
        correlation: of the two variants' seeds.
        seed_spread: deviation of a seed's quality.
        shared: deviation over examples of what all seeds of a variant find hard and the other variant does not.
        own: the same of a single seed.
        families: that the examples are in; None: they are independent.
        size: E.
    """
    quality = seed_spread * scores(rng, 1, 1, seeds, correlation)[:, 0, 0, :, None]
    hard = rng.normal(size=size)  # for both variants: the pairing takes it out
    if families is None:
        of_variant = rng.normal(size=(2, 1, size))
    else:
        of_variant = rng.normal(size=(2, 1, families)).repeat(size // families, axis=2)
    return 5.0 + quality + hard + shared * of_variant + own * rng.normal(size=(2, seeds, size))


def judged_on_examples(rng, repetitions, seeds, correlation, families=None, **spreads):
    judged = []
    for number in range(repetitions):
        losses = measured(rng, seeds, correlation, families=families, **spreads)
        fields = {} if families is None else {"family": [f"f{i * families // 40}" for i in range(40)]}
        one = claim(f"T{number}-C1", primary=primary(kind="less", metric="nll_per_token", **FAST))
        runs = [with_losses(name, rows, **fields) for name, rows in zip("ab", losses, strict=True)]
        judged.append(decide(paper(one), by_name(*runs), "quick"))
    return judged


@pytest.mark.parametrize(("drawn_from", "seeds", "correlation", "more"), [
    (5, 5, 0.8, {"seed_spread": 0.3, "shared": 0.3, "own": 0.3}),
    (8, 8, 0.5, {"seed_spread": 0.02, "shared": 1.0, "own": 1.0}),  # the examples decide
    (12, 12, 0.0, {"seed_spread": 0.2, "shared": 0.0, "own": 1.0}),  # the seeds decide, in part by their examples
    # Few families too, whose bootstrap alone covers it 88 times in 100 for eight.
    *((number, 5, 0.5, {"seed_spread": 0.05, "shared": 1.0, "own": 0.3, "families": number}) for number in (8, 20)),
])  # fmt: skip
def test_the_interval_over_seeds_and_examples_covers_95_times_in_100(drawn_from, seeds, correlation, more, monkeypatch):
    monkeypatch.setattr(effects, "RESAMPLES", 500)
    judged = judged_on_examples(np.random.default_rng(drawn_from), 300, seeds, correlation, **more)
    assert covered(judged, 0.0) == pytest.approx(0.95, abs=0.02)


def test_a_paper_rarely_gets_a_false_verdict():
    """All effects at 0, where none may be reproduced, or all as large as matters, where none may be contradicted."""
    papers, rates = 120, []
    for seeds, claims, correlation in ((5, 8, 0.0), (8, 6, 0.5), (12, 7, 0.8)):
        for effect, false in ((0.0, "reproduced"), (RELEVANT, "contradicted")):
            found = scores(np.random.default_rng([seeds, effect > 0.0]), papers, claims, seeds, correlation)
            found[0] += effect
            rates.append(share_with(verdicts(found), false))
    assert max(rates) <= at_most(FALSE, papers)
    assert np.mean(rates) <= at_most(FALSE / 2.0, len(rates) * papers)  # each on one side, which has half of it


def false_verdicts(judged):
    """Of papers whose claims have no effect and one as large as matters in turns: whether any is judged wrongly."""
    false = ("reproduced", "contradicted")
    return np.array([any(d.lead.verdict == false[i % 2] for i, d in enumerate(of_paper)) for of_paper in judged])


def test_a_paper_of_claims_at_both_bounds_rarely_gets_a_false_verdict():
    papers, claims = 300, 6
    found = scores(np.random.default_rng(66), papers, claims, 5, 0.5)
    found[0, :, 1::2] += RELEVANT
    assert false_verdicts(verdicts(found)).mean() <= at_most(FALSE, papers)


def wrongly_reproduced(papers, attempts, *, new_designs):
    """The share of claims without an effect that are reproduced at any attempt; each ends where one is."""
    found, wrong = scores(np.random.default_rng(58), papers, attempts, 5, 0.5), 0
    for number in range(papers):
        one, lines = claim(f"A{number}-C1", primary=primary(relevant=RELEVANT, **FAST)), []
        for attempt in range(attempts):
            seeds = tuple(range(1 + 5 * attempt, 6 + 5 * attempt))
            runs = [made(name, {"score": found[side, number, attempt]}, seeds=seeds) for side, name in enumerate("ab")]
            design = f"d{attempt if new_designs else 0}"
            ledger = Ledger(lines, {one.id: design}, {one.id: design})
            (decision,) = decide(paper(one), by_name(*runs), "quick", ledger=ledger)
            entry = decision.to_json() | {"ended": None, "commits": [], "machine": []}
            lines += ledger.new_lines([entry])
            if decision.lead.verdict == "reproduced":
                wrong += 1
                break
    return wrong / papers


@pytest.mark.parametrize(
    ("attempts", "new_designs"), [(1, False), (4, False), (4, True)], ids=["one", "new seeds", "new designs"]
)
def test_trying_again_keeps_the_rate_of_false_verdicts(attempts, new_designs, monkeypatch):
    """Seeds or designs are tried until a claim is reproduced, four times at most."""
    monkeypatch.setattr(effects, "RESAMPLES", 20)
    papers = 300
    assert wrongly_reproduced(papers, attempts, new_designs=new_designs) <= at_most(FALSE / 2.0, papers)


@pytest.mark.parametrize(("order", "verdict"), [(1.0, "reproduced"), (-1.0, "contradicted")])
def test_runs_that_repeat_badly_do_not_contradict_a_correlation(order, verdict):
    """Six variants, whose seeds vary more than neighbours differ: a correlation of 1 comes to 0.72 in a run."""
    rng, names, judged = np.random.default_rng(60), tuple("abcdef"), []
    row = primary(kind="correlation", variants=names, other="other", relevant=0.8, **FAST)
    for number in range(30):
        drawn = 1.2 * rng.normal(size=(2, 6, 12)) + np.arange(6.0)[:, None] * np.array([1.0, order])[:, None, None]
        runs = [made(name, {"score": x, "other": y}) for name, x, y in zip(names, *drawn, strict=True)]
        judged.append(decide(paper(claim(f"T{number}-C1", primary=row)), by_name(*runs), "quick"))
    assert np.mean([abs(decision.lead.effect) for (decision,) in judged]) == pytest.approx(0.72, abs=0.05)
    assert share_with(judged, "contradicted") == (1.0 if verdict == "contradicted" else 0.0)
    assert share_with(judged, verdict) >= 0.9


def test_what_chance_does_to_both_measures_of_a_run_is_no_correlation_over_variants():
    """Six variants that are alike, in whose runs both measures are high or low together."""
    rng, names, judged = np.random.default_rng(61), tuple("abcdef"), []
    row = primary(kind="correlation", variants=names, other="other", than=0.5, relevant=0.2, **FAST)
    for number in range(30):
        luck = dict(zip(names, rng.normal(size=(6, 8)), strict=True))
        runs = [made(name, {"score": x, "other": x + 0.2 * rng.normal(size=8)}) for name, x in luck.items()]
        judged.append(decide(paper(claim(f"T{number}-C1", primary=row)), by_name(*runs), "quick"))
    assert all(decision.verdict == "inconclusive" for (decision,) in judged)
    assert all(decision.how == "seeds differ on the order" for (decision,) in judged)


def reproduced(judged):
    return np.mean([decision.verdict == "reproduced" for of_paper in judged for decision in of_paper])


@pytest.mark.parametrize(("deviations", "seeds", "claims"), [(3.6, 5, 6), (1.6, 8, 1), (1.1, 12, 1)])
def test_a_plan_has_the_power_that_it_promises(deviations, seeds, claims):
    """Effects in deviations of a seed's effect, none of them too small to matter."""
    found = scores(np.random.default_rng(seeds), 600 // claims, claims, seeds, 0.5)  # differences of deviation 1
    found[0] += deviations
    assert reproduced(verdicts(found, relevant=0.5 * deviations)) >= 0.8


def test_pairs_of_seeds_that_agree_need_a_smaller_effect():
    found = {}
    for correlation in (0.0, 0.8):
        drawn = scores(np.random.default_rng(11), 200, 1, 5, correlation)
        drawn[0] += 1.4
        found[correlation] = reproduced(verdicts(drawn))
    assert found[0.8] >= 0.8
    assert found[0.0] <= 0.4
