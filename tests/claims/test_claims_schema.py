"""claims.yaml: what is refused, in one sentence that says where; and runs read back, whole and damaged."""

import json
import shutil

import pytest
import yaml

from shared.claims.comparisons import Exact, Sides
from shared.claims.results import RunResults, load_results
from shared.claims.schema import load_claims
from tests.claims.made_runs import content, primary
from tests.refused import assert_refused, sentence_of
from tests.synthetic_runs import Variant, build, change_json, rewrite_examples, skip

PRIMARY = primary(variants=["a", "b"])
SIX = list("abcdef")
CORRELATION = PRIMARY | {"kind": "correlation", "variants": SIX, "other": "loss", "relevant": 0.3}
IDENTITY = {"name": "count", "variant": "a", "metric": "parameters", "value": 4}
FLOOR = {"metric": "bleu", "at_least": 20.0, "because": "published systems reach 25"}


def load(tmp_path, *claims, scale="quick", **fields):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": list(claims), **fields}), encoding="utf-8")
    return load_claims(path, scale)


def decided(tmp_path, at_scale="quick", **changes):
    """The primary comparison with these changes, as it is read."""
    return load(tmp_path, content(primary=PRIMARY | changes), scale=at_scale).claims[0].primary


def refusal(tmp_path, *claims, **fields):
    return sentence_of(load, tmp_path, *claims, **fields).removeprefix(f"{tmp_path / 'claims.yaml'}: ")


def without(fields, *names):
    return {key: value for key, value in fields.items() if key not in names}


LOG = PRIMARY | {"scale": "log", "relevant": 1.1}
TWO = "'primary': give two 'variants', or one and the number to compare it with as 'than'."


@pytest.mark.parametrize(("comparison", "message"), [
    (without(PRIMARY, "because"), "'primary': it decides, and must say why 'relevant' matters, as 'because'."),
    (without(PRIMARY, "relevant"), "primary.relevant is missing; give the smallest effect that matters"),
    (PRIMARY | {"than": 1.0}, TWO),
    (PRIMARY | {"variants": ["a"]}, TWO),
    (PRIMARY | {"variants": ["a", "a"]}, "'primary': the variants that are compared must differ."),
    (PRIMARY | {"scale": "log"}, "'primary': on the log scale 'relevant' is a ratio above 1, not 1."),
    (LOG | {"variants": ["a"], "than": 0.0}, "'primary': on the log scale 'than' must be positive."),
    (LOG | {"over": {"bins": 3}}, "'primary': 'over' and 'scale: log' do not go together."),
    (PRIMARY | {"over": {"bins": [[1, 5]]}}, "'primary.over': a slope needs at least two bins."),
    (PRIMARY | {"doubled": ["a"]}, "'primary': 'doubled' must name as many variants as 'variants': 2."),
    (CORRELATION | {"than": 0.7}, "'primary': no correlation is 1 or more; lower 'than' or 'relevant'."),
    (CORRELATION | {"variants": [*SIX, "a"]}, "'primary': the variants that are compared must differ."),
    (CORRELATION | {"over": {"bins": 3}}, "'primary': a correlation has neither 'scale: log' nor 'over'."),
    (PRIMARY | {"learned": {"exempt": ""}}, "'primary.learned.exempt': string should have at least 1 character"),
    (PRIMARY | {"at": {"huge": {}}}, "primary.at: 'huge' is no scale."),
    (PRIMARY | {"at": {"all": {}}}, "primary.at: 'all' is no scale."),
    (PRIMARY | {"kind": "bigger"}, "'greater', 'less', 'equal', 'rises', 'falls', 'correlation'"),
    (PRIMARY | {"kind": "rises"}, "at least 3"),
    (CORRELATION | {"variants": SIX[:5]}, "at least 6"),
    (PRIMARY | {"variants": [*SIX]}, "at most 2"),
])  # fmt: skip
def test_a_comparison_that_cannot_decide_is_refused(tmp_path, comparison, message):
    found = refusal(tmp_path, content(primary=comparison))
    assert found.startswith("T99-C1: ")
    assert message in found


NOTHING = "give 'primary' or 'identities', or under not_decided.all why nothing decides it."
BARE = without(IDENTITY, "value")
BARELY = without(PRIMARY, "because") | {"name": "x"}


def test_what_is_different_at_a_scale_is_said_there_alone(tmp_path):
    said = content(primary=PRIMARY, different_here={"bench": "It is big.", "all": "It is a toy."})
    found = {scale: load(tmp_path, said, scale=scale).claims[0].different_here for scale in ("quick", "bench")}
    assert found == {"quick": "It is a toy.", "bench": "It is a toy. It is big."}
    assert load(tmp_path, said | {"different_here": {"bench": "It is big."}}).claims[0].different_here is None


@pytest.mark.parametrize(("changes", "message"), [
    ({"in_short": "word " * 13}, "in_short is 13 words long; say it in at most 12."),
    ({"identities": [IDENTITY]}, "give 'primary' or 'identities', not both."),
    ({"primary": None}, NOTHING),
    ({"primary": None, "not_decided": {"quick": "too small"}}, NOTHING),
    ({"not_decided": {"huge": "too big"}}, "not_decided: 'huge' is no scale."),
    ({"different_here": {"huge": "It is big."}}, "different_here: 'huge' is no scale."),
    ({"different_here": {"quick": ""}}, "different_here.quick: give a sentence, not ''."),
    ({"supporting": [without(PRIMARY, "name")]}, "every supporting comparison and identity needs a 'name'."),
    ({"supporting": [PRIMARY | {"name": "x"}] * 2}, "the names of a claim's comparisons must differ."),
    ({"supporting": [PRIMARY]}, "the names of a claim's comparisons must differ."),
    ({"primary": None, "identities": [BARE]}, "'identities.0': give either 'value' or 'at_most'."),
    ({"primary": None, "identities": [IDENTITY, "count"]}, "'identities.1': a mapping is needed"),
    ({"supporting": [PRIMARY | {"name": "x", "at": {"huge": {}}}]}, "supporting.at: 'huge' is no scale."),
    ({"parts": [{"says": "so"}]}, "'parts.0': give 'by', the name of a comparison, or 'not_tested', why"),
    ({"supporting": [BARELY], "parts": [{"says": "so", "by": "x"}]}, "'x': it decides, and must say why"),
    ({"parts": [{"says": "so", "by": "primry"}]}, "it has no comparison 'primry' (did you mean 'primary'?)."),
    ({"parts": [{"says": "so", "by": {"bnch": "primary"}}]}, "parts: there is no scale 'bnch' (did you mean"),
    ({"control": "primry"}, "it has no comparison 'primry' (did you mean 'primary'?)."),
])  # fmt: skip
def test_a_claim_that_does_not_say_what_decides_it_is_refused(tmp_path, changes, message):
    assert refusal(tmp_path, content(**({"primary": PRIMARY} | changes))).startswith(f"T99-C1: {message}")


@pytest.mark.parametrize(("floor", "message"), [
    (without(FLOOR, "at_least"), "'floors.words': give either 'at_most' or 'at_least'."),
    (FLOOR | {"at_most": 30.0}, "'floors.words': give either 'at_most' or 'at_least'."),
    (FLOOR | {"at": {"huge": None}}, "floors.words.at: 'huge' is no scale."),
])  # fmt: skip
def test_floors_that_say_too_little_are_refused(tmp_path, floor, message):
    assert refusal(tmp_path, content(primary=PRIMARY), floors={"words": floor}) == message


def test_two_claims_may_not_share_an_id(tmp_path):
    twice = content("T99-C2", primary=PRIMARY)
    expected = "every claim needs an id of its own, got T99-C1, T99-C2, T99-C2."
    assert refusal(tmp_path, content(primary=PRIMARY), twice, twice) == expected


@pytest.mark.parametrize("text", ["- just a list\n", "claims: 3\n", "claims: []\n", "claims: [3]\n"])
def test_a_file_without_claims_is_refused(tmp_path, text):
    path = tmp_path / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    assert_refused(r"claims\.yaml", load_claims, path, "quick")


def test_a_comparison_changes_with_the_scale(tmp_path):
    at = {"bench": {"relevant": 0.5, "doubled": ["a2", "b2"]}}
    assert (decided(tmp_path, at=at).relevant, decided(tmp_path, at=at).doubled) == (1.0, ())
    found = decided(tmp_path, "bench", at=at)
    assert (found.relevant, found.doubled, found.variants) == (0.5, ("a2", "b2"), ("a", "b"))


def test_what_matters_may_be_said_for_one_scale_alone(tmp_path):
    row = without(PRIMARY, "relevant") | {"at": {"bench": {"relevant": 0.5}}}
    assert load(tmp_path, content(primary=row), scale="bench").claims[0].primary.relevant == 0.5
    assert "primary.relevant is missing" in refusal(tmp_path, content(primary=row), scale="quick")


def test_a_floor_changes_with_the_scale_or_does_not_count(tmp_path):
    floors = {"words": FLOOR | {"at": {"smoke": None, "bench": {"at_least": 30.0}}}}
    scales, one = ("smoke", "quick", "bench"), content(primary=PRIMARY)
    found = {scale: load(tmp_path, one, scale=scale, floors=floors).floors for scale in scales}
    assert found["smoke"] == {}
    assert (found["quick"]["words"].at_least, found["bench"]["words"].at_least) == (20.0, 30.0)


def test_every_row_may_change_with_the_scale(tmp_path):
    changed = {"at": {"bench": {"metric": "loss"}}}
    supported = content(primary=PRIMARY, supporting=[PRIMARY | {"name": "x"} | changed])
    identities = content("T99-C2", primary=None, identities=[IDENTITY | changed])
    for scale, metrics in (("quick", ["score", "parameters"]), ("bench", ["loss", "loss"])):
        first, second = load(tmp_path, supported, identities, scale=scale).claims
        assert [first.supporting[0].metric, second.identities[0].metric] == metrics


def test_what_decides_comes_first(tmp_path):
    supporting = [PRIMARY | {"name": "x"}, IDENTITY | {"kind": "exact"}]
    claim = load(tmp_path, content(primary=PRIMARY, supporting=supporting)).claims[0]
    assert [row.name for row in claim.rows()] == ["primary", "x", "count"]
    assert [type(row) for row in claim.rows()] == [Sides, Sides, Exact]


def test_a_scale_at_which_nothing_decides_says_why(tmp_path):
    some, none = {"quick": "too small"}, {"all": "no such data"}
    claim = load(tmp_path, content(primary=PRIMARY, not_decided=some)).claims[0]
    assert [claim.undecided_at(scale) for scale in ("quick", "bench")] == ["too small", None]
    claim = load(tmp_path, content(primary=None, not_decided=none | some)).claims[0]
    assert [claim.undecided_at(scale) for scale in ("quick", "bench")] == ["too small", "no such data"]


def test_a_part_may_have_another_comparison_at_another_scale(tmp_path):
    row = without(PRIMARY, "at") | {"name": "loss", "at": {"bench": {"name": "bits"}}}
    said = content(primary=PRIMARY, supporting=[row], parts=[{"says": "so", "by": {"all": "loss", "bench": "bits"}}])
    found = {scale: load(tmp_path, said, scale=scale).claims[0] for scale in ("quick", "bench")}
    assert {scale: claim.parts[0].by for scale, claim in found.items()} == {"quick": "loss", "bench": "bits"}
    assert all(claim.parts[0].by == claim.supporting[0].name for claim in found.values())


def test_examples_are_those_of_the_test_split_unless_said(tmp_path):
    assert decided(tmp_path).where == {"split": "test"}
    where = {"source_length": [11, 15], "unknown": False}
    assert decided(tmp_path, where=where).where == {"split": "test", "source_length": (11.0, 15.0), "unknown": False}
    assert decided(tmp_path, where={"split": "long"}).where == {"split": "long"}


def test_a_correlation_is_shown_within_what_there_is(tmp_path):
    ranks = decided(tmp_path, **without(CORRELATION, "name"), than=0.2)
    assert [ranks.shown(effect) for effect in (-3.0, 0.5, 1.1)] == [-1.2, 0.5, 0.8]


TWO_RUNS = {"a": Variant("generated", 0.9, attention=0.9), "b": Variant("generated", 0.6)}


@pytest.fixture
def runs(tmp_path):
    return build(tmp_path / "runs", TWO_RUNS, examples=12)


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
