"""A page says whether its runs are of committed code and of today's settings."""

import json

import pytest

from shared.claims.results import load_results
from shared.reports.document import plain_text
from shared.reports.plans import stale_variants, standing
from tests.synthetic_runs import Variant, build

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
