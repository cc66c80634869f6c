"""What a page says of the settings that were tried before a plan was frozen, and whether its runs are of today."""

import json
from types import SimpleNamespace

import pytest

from shared.claims.results import load_results
from shared.reports.document import Bullets, Details, Paragraph, Table, plain_text
from shared.reports.plans import Frozen, end_of, plan_blocks, since_frozen, stale_variants, standing
from tests.synthetic_runs import Variant, build


@pytest.mark.parametrize(
    ("values", "best", "end"),
    [
        ([0.1, 0.2, 0.4], 0.2, ""),
        ([0.1, 0.2, 0.4], 0.4, "largest"),
        ([0.4, 0.2, 0.1], 0.1, "smallest"),
        ([0.1, 0.2], None, ""),
        (["linear", "cosine"], "cosine", ""),
        ([False, True], True, ""),
    ],
)
def test_the_end_of_what_was_tried_is_known(values, best, end):
    assert end_of(values, best) == end


def test_a_best_value_at_an_end_is_called_so():
    trials = [{"value": 0.1, "loss": 2.0}, {"value": 0.2, "loss": 1.0}, {"value": 0.4, "loss": None}]
    variants = {
        "inner": {"best": 0.2, "in_params": 0.2, "trials": trials},
        "outer": {"best": 0.4, "in_params": 0.2, "trials": trials},
    }
    groups = [{"key": "training.optimizer.learning_rate", "values": [0.1, 0.2, 0.4], "variants": variants}]
    used = {("training.optimizer.learning_rate", "inner"): 0.2, ("training.optimizer.learning_rate", "outer"): 0.1}
    reasons = ["outer has a value of its own: a longer trial had it."]
    frozen = Frozen(search={"seeds": [101], "groups": groups}, used=used, reasons=reasons)
    folded = plan_blocks(frozen, ["T99-C1"])[-1]
    assert isinstance(folded, Details)
    [table] = [block for block in folded.blocks if isinstance(block, Table)]
    assert [row[-2] for row in table.rows] == ["0.2", "0.4, the largest tried"]
    assert [row[-1] for row in table.rows] == ["0.2", "0.1"]
    assert [row[-3] for row in table.rows] == ["diverged", "diverged"]
    [said] = [block for block in folded.blocks if isinstance(block, Bullets)]
    assert list(said.items) == reasons


@pytest.mark.parametrize(("updates", "said"), [(1600, "1,600 updates"), (None, "as many updates as a run has")])
def test_the_length_of_the_trials_is_said(updates, said):
    variants = {"model": {"best": 0.1, "in_params": 0.1, "trials": [{"value": 0.1, "loss": 2.0}]}}
    group = {"key": "training.optimizer.learning_rate", "values": [0.1], "variants": variants, "updates": updates}
    folded = plan_blocks(Frozen(search={"seeds": [101], "groups": [group]}), ["T99-C1"])[-1]
    texts = [plain_text(block.text) for block in folded.blocks if isinstance(block, Paragraph)]
    assert f"training.optimizer.learning_rate, in trials of {said}:" in texts


def decided(claim="T99-C1", *variants, changed=(), seeds=(0, 1), doubled=()):
    lead, primary = SimpleNamespace(variants=variants, seeds=seeds), SimpleNamespace(doubled=doubled)
    return SimpleNamespace(
        claim=SimpleNamespace(id=claim, primary=primary), lead=lead if variants else None, changed=changed
    )


def runs(*finished):
    records = {seed: {"finished": when} for seed, when in enumerate(finished)}
    return SimpleNamespace(runs=records, seeds=tuple(records))


def test_runs_that_are_older_than_the_plan_of_their_claim_are_counted_and_earlier_plans_named():
    plans = [{"commit": "a" * 40, "date": f"2026-01-0{day}T00:00:00+00:00"} for day in (1, 3)]
    plan = plans[-1] | {"claims": {"T99-C1": {"frozen": plans}, "T99-C2": {"frozen": plans[:1]}}}
    results = {
        "first": runs("2026-01-02T09:00:00+00:00", "2026-01-04T09:00:00+00:00"), "second": runs("2026-01-05T00:00:00"),
    }  # fmt: skip
    frozen = Frozen(plan=plan)
    kept = "the comparison, the floors and the settings are as they were frozen on 2026-01-03"
    said = since_frozen(frozen, decided("T99-C1", "first", "second"), results)
    assert said == f"{kept}; 1 of 3 runs that decide had ended by then. It replaced 1 plan, of 2026-01-01"
    assert since_frozen(frozen, decided("T99-C1", "second"), results) == f"{kept}. It replaced 1 plan, of 2026-01-01"
    judged = Frozen(plan=plan | {"claims": {"T99-C1": {"frozen": [plans[0] | {"verdict": "inconclusive"}, plans[1]]}}})
    said = since_frozen(judged, decided("T99-C1", "second"), results)
    assert said == f"{kept}. It replaced 1 plan, of 2026-01-01 (inconclusive)"
    of_one = decided("T99-C1", "first", "second", seeds=(1,))  # the other seeds of a variant decide another claim
    assert since_frozen(frozen, of_one, results) == f"{kept}. It replaced 1 plan, of 2026-01-01"
    with_doubled = decided("T99-C1", "second", doubled=("first",))
    assert f"{kept}; 1 of 3 runs that decide had ended by then" in since_frozen(frozen, with_doubled, results)
    changed = "changed since it was frozen on 2026-01-01: the floor of its task"
    second = decided("T99-C2", "first", changed=("the floor of its task",))
    assert since_frozen(frozen, second, results) == changed
    assert since_frozen(Frozen(), decided("T99-C2", "first"), results) == "none was frozen before the runs"
    (both,) = plan_blocks(Frozen(plan=plan, changed={}), ["T99-C1", "T99-C2"])
    assert "on 2026-01-01 and 2026-01-03; each card says when" in plain_text(both.text)


def test_claims_that_have_changed_since_are_named_beside_the_date():
    plan = {"commit": "a" * 40, "date": "2026-01-02T03:04:05+00:00", "claims": {"T99-C1": {}, "T99-C2": {}}}
    changed = {"T99-C1": (), "T99-C2": ("the floor of its task",)}
    (said,) = plan_blocks(Frozen(plan=plan, changed=changed), ["T99-C1", "T99-C2"])
    assert plain_text(said.text).endswith("at commit aaaaaaaaaaaa. Changed since then, as its card says: T99-C2.")


SETTINGS = {"corpus": {"size": 1}, "model": {"width": 2}, "training": {"updates": 3}, "evaluation": {"beam": 4}}


@pytest.fixture
def results(tmp_path):
    build(tmp_path, {"good": Variant("generated", 0.9), "poor": Variant("generated", 0.8)}, examples=5)
    for path in tmp_path.glob("*/train/*/run.json"):
        change(path, parameters=SETTINGS, git_commit="abc", git_dirty=False)
    return load_results(tmp_path)


def change(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def said(results, stale=()):
    return [plain_text(block.text) for block in standing(results, stale)]


def test_clean_runs_of_todays_settings_are_current(results):
    assert stale_variants(results, dict.fromkeys(results, SETTINGS)) == []
    assert said(results) == ["✔ Current: all runs are of committed code, with the settings of today."]


@pytest.mark.parametrize("key", ["corpus", "model", "training"])
def test_other_settings_of_training_are_stale(results, key):
    today = {"good": SETTINGS | {key: {}}, "poor": SETTINGS | {"evaluation": {}}}
    assert stale_variants(results, today) == ["good"]
    assert said(results, ["good"])[0].startswith("⚠ Stale: good had runs with other settings")


def test_one_seed_of_uncommitted_code_is_said(results, tmp_path):
    change(tmp_path / "poor" / "train" / "seed2" / "run.json", git_dirty=True)
    assert said(load_results(tmp_path))[0].startswith("⚠ Uncommitted: poor had runs")
    assert len(said(load_results(tmp_path), ["good", "poor"])) == 2


def test_runs_without_git_are_not_called_current(results, tmp_path):
    change(tmp_path / "good" / "train" / "seed1" / "run.json", git_commit=None, git_dirty=False)
    assert said(load_results(tmp_path))[0].startswith("⚠ Of no known commit: good had runs in a folder without git")


def test_scores_of_an_earlier_training_are_not_called_current(results, tmp_path):
    change(tmp_path / "good" / "train" / "seed2" / "run.json", fingerprint="new")
    assert said(results)[0].startswith("✔ Current")  # what was judged is not known
    costs = tmp_path / "good" / "evaluation" / "costs.json"
    for judged, expected in (("old", "⚠ Judged before: good were trained again since"), ("new", "✔ Current")):
        costs.write_text(json.dumps({"fingerprints": {"2": judged}}))
        assert said(load_results(tmp_path))[0].startswith(expected)


def test_studies_train_nothing(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "metrics.json").write_text(json.dumps({"variant": "study", "task": "t", "seeds": {"1": {}}}))
    assert said(load_results(tmp_path)) == []
