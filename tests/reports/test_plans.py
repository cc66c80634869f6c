"""What a page says of the settings that were tried before a plan was frozen, and whether its runs are of today."""

import json
from types import SimpleNamespace

import pytest

from shared.claims.results import load_results
from shared.reports.document import plain_text
from shared.reports.plans import Frozen, deciding_records, end_of, since_frozen, standing
from tests.synthetic_runs import Variant, build, change_json


@pytest.mark.parametrize(("values", "best", "end"), [
    ([0.1, 0.2, 0.4], 0.2, ""),
    ([0.1, 0.2, 0.4], 0.4, "largest"),
    ([0.4, 0.2, 0.1], 0.1, "smallest"),
    ([0.1, 0.2], None, ""),
    (["linear", "cosine"], "cosine", ""),
    ([False, True], True, ""),
])  # fmt: skip
def test_the_end_of_what_was_tried_is_known(values, best, end):
    assert end_of(values, best) == end


DAYS = [{"commit": "a" * 40, "date": f"2026-01-0{day}T00:00:00+00:00"} for day in (1, 3)]
PLAN = DAYS[1] | {"claims": {"C1": {"frozen": DAYS}, "C2": {"frozen": DAYS[:1]}}}
ON = "the comparison, the floors and the settings are as they were frozen on 2026-01-03"
SOME = "1 of 3 runs that decide had ended by then"
AGAIN = ". It replaced 1 plan, of 2026-01-01"
RUNS = {"first": SimpleNamespace(seeds=(0, 1), runs={0: {"finished": "2026-01-02"}, 1: {"finished": "2026-01-04"}}),
        "second": SimpleNamespace(seeds=(0,), runs={0: {"finished": "2026-01-05"}})}  # fmt: skip


@pytest.mark.parametrize(("plan", "claim", "decided", "expected"), [
    (PLAN, "C1", {"variants": ("first", "second")}, f"{ON}; {SOME}{AGAIN}"),
    (PLAN, "C1", {"variants": ("second",)}, f"{ON}{AGAIN}"),
    # The other seeds of a variant decide another claim.
    (PLAN, "C1", {"variants": ("first", "second"), "seeds": (1,)}, f"{ON}{AGAIN}"),
    (PLAN, "C1", {"variants": ("second",), "doubled": ("first",)}, f"{ON}; {SOME}{AGAIN}"),
    (PLAN | {"claims": {"C1": {"frozen": [DAYS[0] | {"verdict": "inconclusive"}, DAYS[1]]}}}, "C1",
     {"variants": ("second",)}, f"{ON}{AGAIN} (inconclusive)"),
    (PLAN, "C2", {"variants": ("first",), "changed": ("a",)}, "changed since it was frozen on 2026-01-01: a"),
    (None, "C2", {"variants": ("first",)}, "none was frozen before the runs"),
])  # fmt: skip
def test_runs_older_than_the_plan_of_their_claim_are_counted_and_earlier_plans_named(plan, claim, decided, expected):
    lead = SimpleNamespace(variants=decided["variants"], seeds=decided.get("seeds", (0, 1)))
    claim = SimpleNamespace(id=claim, primary=SimpleNamespace(doubled=decided.get("doubled", ())))
    decision = SimpleNamespace(claim=claim, lead=lead, changed=decided.get("changed", ()))
    assert since_frozen(Frozen(plan=plan), decision, deciding_records(decision, RUNS)) == expected


SETTINGS = {"corpus": {"size": 1}, "model": {"width": 2}, "training": {"updates": 3}, "evaluation": {"beam": 4}}


@pytest.fixture
def results(tmp_path):
    build(tmp_path, {"good": Variant("generated", 0.9), "poor": Variant("generated", 0.8)}, examples=5)
    for path in tmp_path.glob("*/train/*/run.json"):
        change_json(path, lambda record: record.update(parameters=SETTINGS, git_commit="abc", git_dirty=False))
    return load_results(tmp_path)


def said(folder, today=None):
    return [plain_text(block.text) for block in standing(load_results(folder), today or {})]


def test_clean_runs_of_todays_settings_are_current(results, tmp_path):
    current = ["✔ Current: all runs are of committed code, with the settings of today."]
    assert said(tmp_path) == said(tmp_path, dict.fromkeys(results, SETTINGS)) == current
    for key in ("corpus", "model", "training"):
        today = {"good": SETTINGS | {key: {}}, "poor": SETTINGS | {"evaluation": {}}}
        assert said(tmp_path, today) == ["⚠ Stale: good had runs with other settings than those of today; train again."]


@pytest.mark.parametrize(("changes", "today", "expected"), [
    ({"git_dirty": True}, {}, ["⚠ Uncommitted: good had runs with changes"]),
    ({"git_commit": None}, {"model": {}}, ["⚠ Of no known commit: good had runs", "⚠ Stale: good had runs with other"]),
    ({"fingerprint": "new"}, {}, ["⚠ Judged before: good were trained again since"]),
    ({"fingerprint": "old"}, {}, ["✔ Current"]),
])  # fmt: skip
def test_a_seed_that_nobody_can_repeat_is_said(results, tmp_path, changes, today, expected):
    change_json(tmp_path / "good" / "train" / "seed2" / "run.json", lambda record: record.update(changes))
    costs = {"fingerprints": {"2": "old"}} if "fingerprint" in changes else {}
    (tmp_path / "good/evaluation/costs.json").write_text(json.dumps(costs))
    found = said(tmp_path, {"good": SETTINGS | today})
    assert [line[: len(start)] for line, start in zip(found, expected, strict=True)] == expected


def test_studies_train_nothing(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "metrics.json").write_text(json.dumps({"variant": "study", "task": "t", "seeds": {"1": {}}}))
    assert said(tmp_path) == []
