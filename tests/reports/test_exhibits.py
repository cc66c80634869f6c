"""Figures as objects: found by paper, and naming what there is."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from shared.config import load_yaml
from shared.errors import ReplicationError
from shared.metrics.registry import known
from shared.reports.document import slug
from shared.reports.exhibits import load_exhibits
from shared.reports.learning_curves import LearningCurves

PAPERS = sorted(path.parent.name for path in (Path(__file__).parents[2] / "replications").glob("*/paper.yaml"))


@pytest.mark.parametrize("paper", PAPERS)
def test_figures_name_variants_and_measures_that_there_are(paper, root):
    variants = set()
    for path in (root / "replications" / paper).rglob("*.yaml"):
        content = load_yaml(path)
        variants |= set(content.get("variants", ())) if isinstance(content, dict) else set()
    exhibits = load_exhibits(paper)
    assert exhibits
    for exhibit in exhibits:
        assert {*exhibit.variants()} <= variants
        assert all(known(name) for name in exhibit.measures())
        assert {column.partition(": ")[0] for column in exhibit.columns()} <= {*exhibit.variants()}


def test_a_paper_may_list_no_figures(monkeypatch):
    default = [LearningCurves()]
    assert load_exhibits("no_such_paper", default) is default
    empty = "replications.bahdanau.report"
    monkeypatch.setitem(sys.modules, empty, ModuleType(empty))
    with pytest.raises(ReplicationError, match=r"replications/bahdanau/report\.py does not define FIGURES"):
        load_exhibits("bahdanau")


def test_titles_become_names_of_files():
    assert slug("One layer, forward and backward.") == "one-layer-forward-and-backward"
