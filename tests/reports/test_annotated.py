"""The page of a model beside its equations: nothing lost, parts in order, links, and how a browser shows it."""

import ast
import re
import unicodedata
from html import unescape

import pytest

from shared.reports.annotated import ABOVE, letters_of_shapes, model_page, pieces, users_of, with_mathematics
from shared.reports.page import render
from shared.reports.paper import Paper
from tests.conftest import ROOT


def letters_of(text: str) -> list[str]:
    """The letters, digits and signs of a text or of MathML without its tags, sorted; roots and quotients are tags."""
    bare = unicodedata.normalize("NFKD", unescape(re.sub(r"</?m[^>]*>", "", text)).translate(ABOVE).replace("-", "−"))
    return sorted(c for c in bare if c not in "_^{}~¯√/\u0302\u0303\u0304" and not c.isspace())


MODELS = sorted((ROOT / "replications").glob("*/model.py"))


def docstrings(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [said for node in nodes if isinstance(node, kinds) and (said := ast.get_docstring(node))]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.parent.name)
def test_no_letter_of_a_docstring_is_lost_or_added(path):
    found = [(said, with_mathematics(said)) for said in docstrings(path)]
    assert [said for said, html in found if letters_of(said) != letters_of(html)] == []
    assert any("<math>" in html for _, html in found)


@pytest.mark.parametrize(("text", "expected"), [
    ("the weights α_ij of", "the weights <math><msub><mi>α</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub></math> of"),
    ("√d_k", "<math><msqrt><msub><mi>d</mi><mrow><mi>k</mi></mrow></msub></msqrt></math>"),
    ("1 / √K", "<math><mfrac><mrow><mn>1</mn></mrow><msqrt><mi>K</mi></msqrt></mfrac></math>"),
    ("x = d / b c", "<math><mi>x</mi><mo>=</mo><mi>d</mi><mo>/</mo><mi>b</mi><mi>c</mi></math>"),
    ("Aᵀ", "<math><msup><mi>A</mi><mrow><mi>T</mi></mrow></msup></math>"),
    ("a word, section 3.2 and equation (4)", "a word, section 3.2 and equation (4)"),
    ("init_std of w_keys & more", "init_std of w_keys &amp; more"),
    ("x < y", "x &lt; y"),
])  # fmt: skip
def test_only_what_has_one_reading_becomes_mathematics(text, expected):
    assert with_mathematics(text) == expected


def test_the_letters_of_shapes_are_read():
    text = "Shape letters: B batch, S source length (end included), K width\n(d_k), V value width or, of logits, words."
    assert letters_of_shapes(text) == {
        "B": "batch", "S": "source length (end included)", "K": "width (d_k)", "V": "value width or, of logits, words"
    }  # fmt: skip


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.parent.name)
def test_every_line_but_docstrings_stands_on_the_page_once(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = [n for each in pieces(ast.parse("\n".join(lines)), len(lines)) for n in range(each.first, each.last + 1)]
    assert shown == sorted({*shown})
    assert lines[shown[0] - 1].startswith("from __future__")
    assert shown[-1] == len(lines)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.parent.name)
def test_claims_name_parts_that_there_are(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    facts = Paper.load(path.with_name("paper.yaml"))
    assert {part for parts in facts.code.values() for part in parts} <= {each.name for each in pieces(tree, 9999)}


def test_users_of_a_part_are_found():
    found = users_of(ROOT / "replications/bahdanau/model.py", ROOT / "tests")
    assert any(path.name == "test_bahdanau_model.py" and "test_" in case for path, case in found["RNNsearch"])


def test_a_reader_sees_equations_shapes_and_links(opened, tmp_path):
    claims = {"attention": [("attention helps (reproduced)", "index.html#V17-C1")]}
    blocks = model_page(ROOT / "replications/transformer/model.py", ROOT / "tests", claims, tmp_path)
    (tmp_path / "model.html").write_text(render(blocks, "html", title="t", folder=tmp_path), encoding="utf-8")
    page = opened(tmp_path, "model.html", viewport={"width": 1440, "height": 900})
    part = page.locator("#attention")
    code, prose = (part.locator(each).bounding_box() for each in ("pre", "div"))
    assert code["x"] > prose["x"] + prose["width"]
    fraction = part.locator("mfrac").first.bounding_box()
    assert fraction["height"] > 1.5 * part.locator("math mi").first.bounding_box()["height"], "the browser typesets it"
    assert "B: batch; H: heads; T: target length" in part.locator("abbr").first.get_attribute("title")
    assert part.get_by_role("link", name="attention helps").get_attribute("href") == "index.html#V17-C1"
    assert page.locator("pre").first.evaluate("each => each.innerText.includes('import torch')")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
