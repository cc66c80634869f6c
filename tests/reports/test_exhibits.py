"""Figures as objects: found by paper, and naming what there is."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from shared.reports.curves import LearningCurves
from shared.reports.exhibits import load_exhibits
from tests.refused import assert_refused

PAPERS = sorted(path.parent.name for path in (Path(__file__).parents[2] / "replications").glob("*/paper.yaml"))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_has_the_papers_counterpart_or_none(paper, root):
    """Each is one that the paper's facts name: for nothing else is certain."""
    folder = root / "replications" / paper
    facts = " ".join((folder / name).read_text(encoding="utf-8") for name in ("paper.yaml", "claims.yaml", "README.md"))
    exhibits = load_exhibits(paper)
    named = {exhibit.counterpart for exhibit in exhibits} - {""}
    unknown = [each for each in named if not (each in facts or counterparts(each) <= counterparts(facts))]
    assert unknown == []


def counterparts(text):
    """Figures and tables that a text names by number,."""
    found = re.findall(r"(Figure|Table)s? (\d+(?:(?:, | and )\d+)*)", text)
    named = {f"{kind} {number}" for kind, numbers in found for number in re.findall(r"\d+", numbers)}
    return named or {text}  # never a subset


def test_a_paper_may_list_no_figures(monkeypatch):
    default = LearningCurves()
    assert load_exhibits("no_such_paper", [default]) == [default]
    empty = "replications.bahdanau.report"
    monkeypatch.setitem(sys.modules, empty, ModuleType(empty))
    assert_refused(r"replications/bahdanau/report\.py does not define FIGURES", load_exhibits, "bahdanau")
