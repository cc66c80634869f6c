"""Diagrams of mechanisms: every one that ships, in a browser, and descriptions that are wrong."""

import pytest

from shared.reports.page import render
from shared.reports.paper import Paper
from tests.refused import assert_refused
from tests.test_house_rules import PAPERS

OUTSIDE = """boxes => boxes.flatMap(text => {
    const inside = text.getBBox(), all = [...text.ownerSVGElement.querySelectorAll('rect')].map(rect => rect.getBBox());
    return all.some(box => box.x <= inside.x && box.x + box.width >= inside.x + inside.width
        && box.y <= inside.y && box.y + box.height >= inside.y + inside.height) ? [] : [text.textContent];
})"""


@pytest.mark.parametrize("width", [360, 1200])
def test_the_words_of_every_diagram_stand_in_its_boxes(width, opened, tmp_path):
    diagrams = [Paper.load(folder / "paper.yaml").diagram for folder in PAPERS]
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
