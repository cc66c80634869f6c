"""Figures as objects: found by paper, and naming what there is."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from shared.config import load_yaml
from shared.errors import ReplicationError
from shared.metrics.registry import known
from shared.reports.curves import LearningCurves
from shared.reports.exhibits import NO_COUNTERPART, load_exhibits

PAPERS = sorted(path.parent.name for path in (Path(__file__).parents[2] / "replications").glob("*/paper.yaml"))


@pytest.mark.parametrize("paper", PAPERS)
def test_figures_name_variants_and_measures_that_there_are(paper, root):
    variants = set()
    for path in (root / "replications" / paper).rglob("*.yaml"):
        content = load_yaml(path)
        variants |= set(content.get("variants", ())) if isinstance(content, dict) else set()
    exhibits = load_exhibits(paper)
    assert exhibits
    for exhibit in (placed.exhibit for placed in exhibits):
        borrowed = {name for name in exhibit.variants() if "/" in name}  # of other papers
        assert {*exhibit.variants()} - borrowed <= variants
        for other, _, variant in (name.partition("/") for name in borrowed):
            assert variant in load_yaml(root / "replications" / other / "variants.yaml")["variants"]
        assert all(known(name) for name in exhibit.measures())
        assert {column.partition(": ")[0] for column in exhibit.columns()} <= {*exhibit.variants()}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_has_the_papers_counterpart_or_none(paper, root):
    """Each is one that the paper's facts name: for nothing else is certain."""
    folder = root / "replications" / paper
    facts = " ".join((folder / name).read_text(encoding="utf-8") for name in ("paper.yaml", "claims.yaml", "README.md"))
    exhibits = load_exhibits(paper)
    named = {exhibit.counterpart for exhibit in exhibits} - {NO_COUNTERPART}
    unknown = [each for each in named if not (each in facts or counterparts(each) <= counterparts(facts))]
    assert unknown == []


def counterparts(text):
    """Figures and tables that a text names by number,."""
    found = re.findall(r"(Figure|Table)s? (\d+(?:(?:, | and )\d+)*)", text)
    return {f"{kind} {number}" for kind, numbers in found for number in re.findall(r"\d+", numbers)} or {
        text
    }  # never a subset


def test_a_paper_may_list_no_figures(monkeypatch):
    default = LearningCurves()
    assert load_exhibits("no_such_paper", [default]) == [default]
    empty = "replications.bahdanau.report"
    monkeypatch.setitem(sys.modules, empty, ModuleType(empty))
    with pytest.raises(ReplicationError, match=r"replications/bahdanau/report\.py does not define FIGURES"):
        load_exhibits("bahdanau")
