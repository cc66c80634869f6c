"""Verdicts of every kind of comparison on made-up runs with known effects."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from scipy.stats import spearmanr

from shared.claims.results import load_results
from shared.claims.schema import Claim
from shared.claims.verdicts import decide
from shared.errors import ReplicationError
from tests.synthetic_runs import Variant, build, skip, study, write_metrics

VARIANTS = {
    "low": Variant("generated", 0.5),
    "middle": Variant("generated", 0.7, attention=0.5),
    "high": Variant("generated", 0.9, attention=0.92),
    "twin": Variant("generated", 0.9),
    "twin2": Variant("generated", 0.9),
    "twin3": Variant("generated", 0.9),
    "weak": Variant("generated", 0.3),
    "falling": Variant("generated", 0.98, 0.04),
    "elsewhere": Variant("corpus", 0.9),
}


@cache
def results():
    folder = build(Path(mkdtemp()) / "runs", VARIANTS, examples=240)
    skip(folder, "skipped", "generated", "needs a GPU")
    return load_results(folder)


def claim(*deciding, also=(), **fields):
    comparisons = [{"name": f"c{i}", "metric": "bleu"} | row for i, row in enumerate(deciding)]
    extra = [{"name": f"a{i}", "metric": "bleu"} | row for i, row in enumerate(also)]
    content = {"id": "T99-C1", "statement": "s", "where": "w", "effect_in_paper": {"text": "+1"}}
    return Claim.model_validate(content | {"deciding": comparisons, "also": extra} | fields)


def verdict(*deciding, runs=None, **more):
    (decision,) = decide([claim(*deciding, **more)], runs or results(), "quick")
    return decision


def pair(kind, first, second, **more):
    return {"kind": kind, "variants": [first, second], **more}


def correlation(**more):
    variants = ["low", "middle", "falling", "high", "weak"]
    base = {"kind": "rank_correlation", "variants": variants, "other": "perplexity", "sign": "negative"}
    return base | more


BINS = {"bins": [[3, 7], [8, 11], [12, 15]]}


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (pair("greater", "high", "low"), "reproduced"),
        (pair("greater", "low", "high"), "contradicted"),
        (pair("greater", "high", "twin"), "inconclusive"),
        (pair("greater", "high", "low", margin=95.0), "contradicted"),
        (pair("less", "low", "high"), "reproduced"),
        (pair("less", "high", "low", metric="nll_per_token"), "reproduced"),
        (pair("greater", "high", "low", metric="chrf"), "reproduced"),
        (pair("equal", "high", "twin", margin=30.0), "reproduced"),
        (pair("equal", "high", "low", margin=5.0), "contradicted"),
        (pair("equal", "high", "twin", margin=0.01), "inconclusive"),
        (pair("ratio_at_least", "high", "low", bound=1.5), "reproduced"),
        (pair("ratio_at_least", "high", "twin", bound=1.5), "contradicted"),
        ({"kind": "above", "variant": "high", "metric": "alignment_accuracy", "bound": 0.8}, "reproduced"),
        (
            {"kind": "above", "variant": "middle", "metric": "alignment_accuracy", "bound": 0.8},
            "contradicted",
        ),
        ({"kind": "below", "variant": "high", "metric": "aer", "bound": 0.2}, "reproduced"),
        ({"kind": "ladder", "variants": ["low", "middle", "high"]}, "reproduced"),
        ({"kind": "ladder", "variants": ["low", "high", "middle"]}, "contradicted"),
        ({"kind": "ladder", "variants": ["low", "high", "twin"]}, "inconclusive"),
        ({"kind": "declines", "variant": "falling", **BINS}, "reproduced"),
        ({"kind": "declines", "variant": "falling", "margin": 20.0, **BINS}, "contradicted"),
        ({"kind": "no_decline", "variant": "falling", **BINS}, "contradicted"),
        ({"kind": "no_decline", "variant": "high", "against": "falling", "share": 0.8, **BINS}, "reproduced"),
        (
            {"kind": "no_decline", "variant": "falling", "against": "falling", "share": 0.3, **BINS},
            "contradicted",
        ),
        (pair("greater", "high", "low", where={"source_length": [10, 15]}), "reproduced"),
        (correlation(bound=0.5), "reproduced"),
        (correlation(bound=0.5, metric="perplexity", other="chrf"), "reproduced"),
        (correlation(bound=0.5, sign="positive"), "contradicted"),
        (correlation(bound=0.5, other="exact_match", sign="positive"), "reproduced"),
        (correlation(bound=0.5, variants=["high", "twin", "twin2", "twin3"]), "inconclusive"),
    ],
)
def test_every_kind(comparison, expected):
    decision = verdict(comparison)
    assert decision.verdict == expected
    (outcome,) = decision.outcomes
    low, high = outcome.interval
    assert low <= outcome.effect <= high
    assert 0.0 < outcome.p_value <= 1.0
    assert (outcome.p_value < 0.05) == (expected != "inconclusive")  # of the test that decided


def test_a_weak_step_of_a_ladder_is_the_one_shown():
    (outcome,) = verdict({"kind": "ladder", "variants": ["low", "high", "middle"]}).outcomes
    assert outcome.effect < -20.0


def test_a_rank_correlation_is_that_of_the_means():
    comparison = correlation(bound=0.5)
    (outcome,) = verdict(comparison).outcomes
    means = [[results()[name].mean[metric] for name in comparison["variants"]] for metric in ("bleu", "perplexity")]
    assert outcome.effect == pytest.approx(-spearmanr(*means).statistic)
    assert (outcome.n, outcome.seeds, outcome.variance, outcome.unit) == (200, 3, "examples+seeds", "")
    assert outcome.variants == tuple(comparison["variants"])


def test_a_rank_correlation_of_numbers_that_only_runs_have(tmp_path):
    """Without examples only seeds vary; one seed alone shows nothing."""
    for seeds, expected in (((1, 2), ("reproduced", "seeds", None)), ((1,), ("inconclusive", "none", None))):
        for i, name in enumerate("abcd"):
            scores = {seed: {"speed": i + 0.01 * seed, "loss": 5.0 - i - 0.01 * seed} for seed in seeds}
            (tmp_path / name).mkdir(exist_ok=True)
            write_metrics(tmp_path / name, name, "count", scores)
        comparison = correlation(bound=0.5, metric="speed", other="loss", variants=list("abcd"))
        (outcome,) = verdict(comparison, runs=load_results(tmp_path)).outcomes
        assert (outcome.verdict, outcome.variance, outcome.n) == expected
        assert outcome.effect == pytest.approx(1.0)


def test_a_rank_correlation_with_a_constant_is_none():
    comparison = correlation(bound=0.5, other="constant")
    runs = {name: replace(run, metrics={k: {**m, "constant": 1.0} for k, m in run.metrics.items()})
            for name, run in results().items()}  # fmt: skip
    with pytest.raises(ReplicationError, match="undefined on some resamples"):
        verdict(comparison, runs=runs)


def test_a_claim_needs_all_its_deciding_comparisons():
    shown, open_, wrong = (pair("greater", *names) for names in (("high", "low"), ("high", "twin"), ("low", "high")))
    assert verdict(shown, open_).verdict == "inconclusive"
    assert verdict(shown, open_, wrong).verdict == "contradicted"
    assert verdict(shown, also=[wrong]).verdict == "reproduced"


def test_comparisons_that_were_not_run_are_left_out_and_named():
    decision = verdict(pair("greater", "high", "low"), pair("greater", "high", "skipped"))
    assert decision.verdict == "reproduced"
    assert "c1 (skipped: needs a GPU)" in decision.reason
    alone = verdict(pair("greater", "high", "never-made"))
    assert alone.verdict == "not tested"
    assert "never-made was not run at this scale" in alone.reason
    assert alone.to_json()["effect"] is None


def test_a_claim_that_cannot_be_tested_says_why():
    decision = verdict(not_tested="no such system here")
    assert (decision.verdict, decision.reason) == ("not tested", "no such system here")


def test_holm_runs_over_the_deciding_comparisons_of_all_claims():
    first = claim(pair("greater", "high", "low"), also=[pair("greater", "middle", "low")])
    second = claim(pair("greater", "high", "twin")).model_copy(update={"id": "T99-C2"})
    decisions = decide([first, second], results(), "quick")
    shown, supporting = decisions[0].outcomes
    assert shown.p_holm == pytest.approx(2 * shown.p_value)
    assert supporting.p_holm is None
    assert decisions[1].outcomes[0].p_holm == pytest.approx(decisions[1].outcomes[0].p_value)


def test_a_verdict_that_holm_takes_back_says_so():
    above = {"kind": "above", "variant": "high", "metric": "alignment_accuracy"}
    low, high = verdict(above | {"bound": 0.5}).outcomes[0].interval
    # the draws depend on names only, so the interval clears this bound, but not by enough for three tests
    narrow = above | {"bound": low - 0.05 * (high - low)}
    assert verdict(narrow).reason == "of 1 deciding comparison: 1 reproduced"
    decision = verdict(narrow, narrow, narrow)
    assert decision.verdict == "reproduced"
    assert decision.reason.endswith("does not survive Holm's correction: c0, c1, c2")


def test_a_single_seed_says_that_only_examples_vary(tmp_path):
    runs = load_results(build(tmp_path, {k: VARIANTS[k] for k in ("low", "high")}, seeds=(7,), examples=100))
    (outcome,) = verdict(pair("greater", "high", "low"), runs=runs).outcomes
    assert (outcome.variance, outcome.seeds, outcome.verdict) == ("examples", 1, "reproduced")
    (scalar,) = verdict(pair("greater", "high", "low", metric="chrf"), runs=runs).outcomes
    assert (scalar.variance, scalar.verdict, scalar.interval) == ("none", "inconclusive", None)


def test_a_count_needs_no_second_run(tmp_path):
    for name, operations in (("base", 1.00e12), ("rival", 0.98e12)):
        study(tmp_path, name, "generated", {"training_operations": operations})
    runs = load_results(tmp_path)
    for bound, expected in ((0.95, "reproduced"), (0.99, "contradicted")):
        ratio = {"kind": "ratio_at_least", "variants": ["rival", "base"], "metric": "training_operations"}
        assert verdict(ratio | {"bound": bound}, runs=runs).verdict == expected


def test_values_of_the_record_are_compared_exactly_and_by_exponent(tmp_path):
    lengths = (256, 512, 1024)
    counted = {"parameter_count": 80_401_000}
    scores = {k: counted | {f"s{n}": 1e-6 * n**2 + k * 1e-4 for n in lengths} for k in (1, 2, 3)}
    (tmp_path / "big").mkdir()
    write_metrics(tmp_path / "big", "big", "count", scores)
    runs = load_results(tmp_path)
    count = {"kind": "exact", "variant": "big", "metric": "parameter_count", "value": 80_401_000}
    points = {n: f"s{n}" for n in lengths}
    growth = {"kind": "exponent", "variant": "big", "metric": "seconds", "points": points}
    assert verdict(count, runs=runs).verdict == "reproduced"
    assert verdict(count | {"value": 80_400_000}, runs=runs).verdict == "contradicted"
    assert verdict(count | {"value": 80_400_000, "tolerance": 1e4}, runs=runs).verdict == "reproduced"
    assert verdict(growth | {"at_least": 1.5}, runs=runs).verdict == "reproduced"
    assert verdict(growth | {"at_most": 1.3}, runs=runs).verdict == "contradicted"


@pytest.mark.parametrize(("found", "expected"), [((4.0, 4.0), "reproduced"), ((4.0, 3.5), "contradicted")])
def test_an_exact_effect_is_the_number_itself_as_is_the_paper_s(tmp_path, found, expected):
    (tmp_path / "kept").mkdir()
    write_metrics(tmp_path / "kept", "kept", "count", {seed: {"growth": x} for seed, x in enumerate(found)})
    comparison = {"kind": "exact", "variant": "kept", "metric": "growth", "value": 4.0, "paper": 4.0}
    (outcome,) = verdict(comparison | {"tolerance": 0.25}, runs=load_results(tmp_path)).outcomes
    assert (outcome.verdict, outcome.effect, outcome.interval) == (expected, found[1], None)


def test_examples_of_different_test_sets_are_not_compared():
    other = dict(results())
    high = other["high"]
    rows = {seed: [row | {"id": f"other-{row['id']}"} for row in rows] for seed, rows in high.examples.items()}
    changed = replace(high)
    vars(changed)["examples"] = rows
    other["high"] = changed
    with pytest.raises(ReplicationError, match=r"high, seed 1, cannot be paired"):
        verdict(pair("greater", "low", "high"), runs=other)


@pytest.mark.parametrize(
    ("comparison", "message"),
    [
        (pair("greater", "high", "low", where={"split": "nowhere"}), "no test example"),
        (pair("greater", "high", "low", metric="alignment_accuracy"), "carry nothing"),
        (pair("greater", "high", "low", metric="blue"), "no 'blue'"),
        ({"kind": "declines", "variant": "high", "bins": [[3, 5], [30, 40]]}, "fewer than two bins"),
        ({"kind": "declines", "variant": "high", "metric": "chrf", "bins": 3}, "slope needs a metric"),
    ],
)
def test_comparisons_that_cannot_be_made_say_why(comparison, message):
    with pytest.raises(ReplicationError, match=message):
        verdict(comparison)


def test_the_digits_are_the_same_on_every_run():
    first, second = (verdict(pair("greater", "high", "middle")).to_json() for _ in range(2))
    assert first == second


def test_the_json_entry_carries_the_leading_comparison():
    decision = verdict(pair("greater", "high", "skipped"), pair("greater", "high", "low", paper=8.93))
    entry = json.loads(json.dumps(decision.to_json()))
    keys = {
        "id",
        "statement",
        "verdict",
        "reason",
        "comparisons",
        "effect",
        "interval",
        "seeds",
        "n",
        "metric",
    }
    assert keys | {"variants", "scale"} <= entry.keys()
    assert entry["variants"] == ["high", "low"]
    assert (entry["seeds"], entry["n"], entry["metric"], entry["scale"]) == (3, 200, "bleu", "quick")
    assert entry["comparisons"][1]["paper"] == 8.93
    assert entry["comparisons"][1]["variance"] == "examples+seeds"
