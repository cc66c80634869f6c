"""Reading runs back, whole and damaged."""

import json
import shutil

import pytest

from shared.claims.results import RunResults, load_results
from tests.refused import assert_refused
from tests.synthetic_runs import Variant, build, change_json, rewrite_examples, skip

TWO = {"a": Variant("generated", 0.9, attention=0.9), "b": Variant("generated", 0.6)}


@pytest.fixture
def runs(tmp_path):
    return build(tmp_path / "runs", TWO, examples=12)


def test_everything_is_read_back(runs):
    result = RunResults.load(runs / "a")
    assert (result.variant, result.task, result.seeds, result.token) == ("a", "generated", (1, 2, 3), "word")
    assert [len(rows) for rows in result.examples.values()] == [12, 12, 12]
    assert result.runs[2]["seed"] == 2
    assert result.curve(1).exists()


def test_seeds_are_ordered_as_numbers(runs):
    seeds = {"10": {"bleu": 1.0}, "9": {"bleu": 2.0}}
    change_json(runs / "a" / "metrics.json", lambda content: content.update(seeds=seeds))
    assert RunResults.load(runs / "a").seeds == (9, 10)


def test_a_variant_that_was_not_run(runs):
    skip(runs, "c", "corpus", "needs a GPU")
    results = load_results(runs)
    assert sorted(results) == ["a", "b", "c"]
    assert results["c"].not_run == "needs a GPU"
    assert results["c"].seeds == ()


def test_what_a_variant_that_is_no_more_has_left_is_passed_over(runs):
    assert sorted(load_results(runs, {"c": "too long"}, ["a", "c"])) == ["a", "c"]
    assert_refused("no evaluated variant", load_results, runs, None, ["c"])


@pytest.mark.parametrize(("change", "said"), [
    (lambda rows: rows[:5] + rows[6:], "a, seed 2 cannot be paired: example 5 is 'test-6', not 'test-5'"),
    (lambda rows: rows[:-2], "there are 10, not 12"),
])  # fmt: skip
def test_seeds_with_other_examples_are_refused(runs, change, said):
    rewrite_examples(runs / "a/evaluation/seed2/examples.jsonl.gz", change)
    assert_refused(said, getattr, RunResults.load(runs / "a"), "examples")


def test_seeds_with_data_of_their_own_may_have_other_examples(runs):
    rewrite_examples(runs / "a/evaluation/seed3/examples.jsonl.gz", lambda rows: rows[:-2])
    costs = {"parameters": {"corpus": {"draws": "each_seed"}}}
    (runs / "a/evaluation/costs.json").write_text(json.dumps(costs))
    run = RunResults.load(runs / "a")
    assert [len(rows) for rows in run.examples.values()] == [12, 12, 10]


def test_a_broken_file_says_which(runs):
    path = runs / "a/evaluation/seed1/examples.jsonl.gz"
    path.write_bytes(path.read_bytes()[:200])
    assert_refused(r"seed1/examples\.jsonl\.gz cannot be read", getattr, RunResults.load(runs / "a"), "examples")


@pytest.mark.parametrize("content", ["[]", '{"task": "t"}', '{"variant": "a", "task": "t", "seeds": [1]}'])
def test_broken_metrics_are_refused(runs, content):
    (runs / "a" / "metrics.json").write_text(content)
    assert_refused(r"metrics\.json", RunResults.load, runs / "a")


@pytest.fixture
def ensemble(runs):
    """Variant a, its seeds 2 and 3 judged together as well."""

    def join(content):
        del content["seeds"]["1"]
        content["ensemble"] = {"bleu": 99.0}

    change_json(runs / "a" / "metrics.json", join)
    shutil.copytree(runs / "a/evaluation/seed3", runs / "a/evaluation/ensemble")
    return load_results(runs)["a-ensemble"]


def test_an_ensemble_is_a_variant_judged_once(ensemble, runs):
    assert sorted(load_results(runs)) == ["a", "a-ensemble", "b"]
    assert (ensemble.variant, ensemble.task, ensemble.members) == ("a-ensemble", "generated", (2, 3))
    assert (dict(ensemble.metrics), ensemble.mean) == ({0: {"bleu": 99.0}}, {"bleu": 99.0})
    (rows,) = ensemble.examples.values()
    assert rows == RunResults.load(runs / "a").examples[3]
    assert ensemble.judged(0, "attention.npz") == runs / "a/evaluation/ensemble/attention.npz"


def test_an_ensemble_was_not_trained(ensemble, runs):
    shutil.copytree(runs / "a/train/seed2", runs / "a/train/seed0")  # not its own
    assert ensemble.runs == {}
    assert not ensemble.curve(0).exists()
