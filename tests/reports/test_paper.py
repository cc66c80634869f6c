"""What a paper brings to its reports: paper.yaml, its diagram in a browser, its figures; and what is refused."""

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from shared.reports.curves import LearningCurves
from shared.reports.exhibits import load_exhibits
from shared.reports.page import render
from shared.reports.paper import Paper
from tests.refused import assert_refused

ROOT = Path(__file__).parents[2]
PAPERS = sorted(ROOT.glob("replications/*/paper.yaml"))
BAHDANAU = ROOT / "replications/bahdanau/paper.yaml"

PROGRAM = {"item": "i", "program": "p", "file": "owner/name@44781ed/a/file.py", "here": "h", "known": "read"}


def changed(path, change):
    content = yaml.safe_load(BAHDANAU.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.parent.name)
def test_every_shipped_file_loads(path):
    paper = Paper.load(path)
    assert paper.tables
    assert paper.hyperparameters
    for attention in paper.attentions:
        file, _, name = attention.code.partition(":")
        module = import_module(file.removesuffix(".py").replace("/", "."))
        assert isinstance(getattr(module, name), type)
    assert paper.attentions


def test_the_training_set_of_bahdanau_is_one_and_the_same():
    """80 sentences an update: all five rows of Table 2 give 10.5 to 10.7 million pairs per epoch."""
    table = next(table for table in Paper.load(BAHDANAU).tables if table.id == "t2")
    pairs = [float(row.updates_1e5) * 1e5 * 80 / float(row.epochs) for row in table.rows]
    assert len(pairs) == 5
    assert all(10.4e6 < count < 10.8e6 for count in pairs)


def test_the_claimed_differences_are_those_of_table_1():
    table = next(table for table in Paper.load(BAHDANAU).tables if table.id == "t1")
    scores = {row.label: (row.all, row.no_unk) for row in table.rows}

    def gain(first, second):
        return tuple(round(a - b, 2) for a, b in zip(scores[first], scores[second], strict=True))

    assert gain("RNNsearch-50", "RNNencdec-50") == (8.93, 7.45)
    assert gain("RNNsearch-30", "RNNencdec-30") == (7.57, 7.25)
    assert gain("RNNsearch-30", "RNNencdec-50") == (3.68, 4.73)
    assert gain("RNNsearch-50*", "RNNsearch-50") == (1.70, 1.99)
    assert gain("RNNsearch-50*", "Moses") == (-4.85, 0.52)


@pytest.mark.parametrize(("change", "message"), [
    (lambda c: c["tables"][0]["rows"][0].pop("all"), "RNNencdec-30"),
    (lambda c: c["parameter_counts"]["totals"].update(RNNsearch=1), "add up to 80401000"),
    (lambda c: c["parameter_counts"]["parts"][0].update(more=7), "must have exactly the keys part, "),
    (lambda c: c["tables"][0]["rows"][0].update(metrics={"some": "chrf"}), "has no column 'some'"),
    (lambda c: c.update(program=[PROGRAM | {"file": "owner/repository/file.py"}]), "program.0.file"),
])  # fmt: skip
def test_wrong_facts_are_refused(tmp_path, change, message):
    assert_refused(message, Paper.load, changed(tmp_path / "paper.yaml", change))


OUTSIDE = """boxes => boxes.flatMap(text => {
    const inside = text.getBBox(), all = [...text.ownerSVGElement.querySelectorAll('rect')].map(rect => rect.getBBox());
    return all.some(box => box.x <= inside.x && box.x + box.width >= inside.x + inside.width
        && box.y <= inside.y && box.y + box.height >= inside.y + inside.height) ? [] : [text.textContent];
})"""


@pytest.mark.parametrize("width", [360, 1200])
def test_the_words_of_every_diagram_stand_in_its_boxes(width, opened, tmp_path):
    diagrams = [Paper.load(path).diagram for path in PAPERS]
    drawings = [each.drawing() for each in diagrams]
    (tmp_path / "page.html").write_text(render(drawings, "html", title="t", folder=tmp_path))
    page = opened(tmp_path, "page.html", viewport={"width": width, "height": 800})
    assert page.locator("svg.diagram").count() == len(PAPERS)
    assert page.locator("svg.diagram text").evaluate_all(OUTSIDE) == []
    assert page.locator("svg.diagram").first.bounding_box()["width"] <= width
    said = page.locator("svg.diagram").first.get_attribute("aria-label")
    assert len(said.split("; ")) == len(diagrams[0].arrows)


@pytest.mark.parametrize(("wrong", "said"), [
    ({"arrows": ["a z"]}, "no box 'z'"), ({"arrows": ["a"]}, "must be two names"), ({"new": ["z"]}, "no box 'z'"),
])  # fmt: skip
def test_an_arrow_or_a_box_that_is_none_is_named(wrong, said, root, tmp_path):
    text = (root / "replications" / "shaw" / "paper.yaml").read_text().split("diagram:")[0]
    path = tmp_path / "paper.yaml"
    path.write_text(f"{text}diagram: { ({'rows': [{'a': 'b'}]} | wrong) }\n")
    assert_refused(said, Paper.load, path)


@pytest.mark.parametrize("paper", [path.parent.name for path in PAPERS])
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
