"""The two renderings of a doc."""

import base64
import re

import pytest

from shared.reports import document as doc
from shared.reports.explorer import Attention, Explored, gather_maps
from shared.reports.page import LARGEST_VECTOR, Place, as_one_file, render, write_page
from tests.refused import assert_refused

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture
def picture(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.png").write_bytes(PIXEL)
    return tmp_path / "figures" / "a.png"


@pytest.fixture
def blocks(picture):
    folded = doc.Details("Seeds & more", [doc.Paragraph("a < b"), doc.Table(("Seed",), [["1"]], "r")])
    return [
        doc.Heading("Title", level=1),
        doc.Paragraph(f"See {doc.link('this', 'https://example.org')}, {doc.code('a|b')} and {doc.strong('that')}."),
        doc.Bullets(["one", f"two {doc.code('three')}"]),
        doc.Table(("Name", "Value"), [["x", "1"], [doc.badge("contradicted"), "a | b"]], "lr"),
        doc.CodeBlock("dvc repro"),
        doc.Figure(picture, "A <caption>"),
        folded,
        doc.Heading("After"),
    ]


def test_both_forms_say_the_same(blocks, tmp_path):
    assert render(blocks, "md", title="t", folder=tmp_path) == (
        "# Title\n\n"
        "See [this](https://example.org), `a|b` and **that**.\n\n"
        "* one\n* two `three`\n\n"
        "| Name | Value |\n| --- | ---: |\n| x | 1 |\n| ✘ **contradicted** | a \\| b |\n\n"
        "```sh\ndvc repro\n```\n\n"
        "![A \\<caption>](figures/a.png)\n\nA \\<caption>\n\n"
        "<details>\n<summary>Seeds &amp; more</summary>\n\na < b\n\n| Seed |\n| ---: |\n| 1 |\n\n</details>\n\n"
        "## After\n"
    )
    html = render(blocks, "html", title="t", folder=tmp_path)
    inside = html.split("<details>")[1].split("</details>")[0]
    assert "<h1>Title</h1>" in html
    assert '<span class="badge contradicted"><span aria-hidden="true">✘ </span>contradicted</span>' in html
    assert "A &lt;caption&gt;" in html
    assert "<summary>Seeds &amp; more</summary>" in inside
    assert '<td class="r" data-label="Seed">1</td>' in inside
    assert '<h2 id="after">After' not in inside
    assert not re.search(r'<script src|<link|src="http|url\(', html)


@pytest.mark.parametrize(("drawn", "shown"), [
    ("<svg/>", "a.svg"),
    (f"<svg>{' ' * LARGEST_VECTOR}</svg>", "a.png"),
    ('<svg><image href="data:image/png;base64,"/></svg>', "a.png"),
])  # fmt: skip
def test_html_shows_a_small_vector_without_pixels_and_markdown_the_pixels(blocks, tmp_path, drawn, shown):
    (tmp_path / "figures/a.svg").write_text(drawn)
    html = render(blocks, "html", title="t", folder=tmp_path)
    assert re.findall(r'<img src="([^"]+)" alt="[^"]+" width="1" height="1"', html) == [f"figures/{shown}"]
    assert re.findall(r'href="([^"]+)" download', html) == ["figures/a.png", "figures/a.svg"]


def test_a_page_can_be_one_file(blocks, tmp_path):
    (tmp_path / "figures/a.svg").write_text("<svg/>")
    near = Place((("All", "../README.md"),), following=("Next", "../b/README.md"))
    write_page([*blocks, doc.Paragraph(doc.link("numbers", "claims.json"))], tmp_path, title="t", place=near)
    text = as_one_file(tmp_path / "index.html")
    (inside,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert base64.b64decode(inside) == b"<svg/>"
    assert set(re.findall(r'<a [^>]*href="([^"]+)"', text)) == {"#content", "#after", "https://example.org"}
    assert "<p>numbers</p>" in text
    (tmp_path / "figures" / "a.svg").unlink()
    assert_refused(r"a\.svg cannot be read; make the report first", as_one_file, tmp_path / "index.html")


def test_no_words_of_the_data_become_markup_in_any_block(picture, tmp_path):
    """Sentences, captions and texts of data stand in all of these."""
    script = "</script></title><script>alert(1)</script><img src=x onerror=alert(1)> &lt;script>"
    attention = Attention({script: script}, [script, "b"], [script, "b"], [[0.5, 0.5], [1.0, 0.0]])
    explored = Explored(picture, script, maps=[attention], choose=script)
    heat = doc.HeatLine([script, "b"], [1.0, 0.5], title=script, name=script)
    inner = [
        doc.Paragraph(f"{script}{doc.strong(script)}{doc.code(script)}{doc.link(script, 'a')}"),
        doc.Bullets([script]),
        doc.Table((script, "b"), [[script, doc.badge("contradicted")]], "lr", filters=(script,)),
        doc.CodeBlock(script),
        doc.Figure(picture, script, alt=script),
        doc.Heat(picture, script, lines=[heat]),
        explored,
        gather_maps([explored])[-1],
    ]
    tile = doc.Tile("T-C1", "inconclusive", script, "#T-C1")
    blocks = [
        doc.Heading(script), doc.Details(script, inner), doc.Card("T-C1", "reproduced", script, script, inner),
        doc.Grid([doc.GridRow(script, script, script, "a", [tile])]), doc.Columns([(script, inner)]),
        doc.Details("folded", inner, section=True),
    ]  # fmt: skip
    html = render(blocks, "html", title=script, folder=tmp_path)
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert html.count("</script>") == html.count("<script")
    markdown = render(blocks, "md", title=script, folder=tmp_path)
    outside_of_code = re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<(script|img src=x)", outside_of_code)
    plain_words = render([doc.Paragraph("a*b* [x](y) `c` <b>d</b> 1 < 2")], "md", title="t", folder=tmp_path)
    assert plain_words == "a\\*b\\* [x\\](y) \\`c\\` \\<b>d\\</b> 1 < 2\n"


def test_numbers_are_legible():
    with_signs = [doc.signed(value, 2) for value in (1.0, -1.0, 0.0, -4.1e17, 2.5e5)]
    assert with_signs == ["+1.00", "−1.00", "+0.00", "−4.10×10¹⁷", "+250,000"]
    assert [doc.plain(value, 2) for value in (1234.56, -2.0, None, 99_999.5, 123_456.78, 3.3e18, -1.25e9)] == [
        "1,234.56", "−2.00", "–", "99,999.50", "123,457", "3.30×10¹⁸", "−1.25×10⁹"
    ]  # fmt: skip
    assert doc.plain(1_500_000_000, 0) == "1,500,000,000"  # a count is written out
    assert [*map(doc.typeset, ("1e-05", "-0.5", "inf", "2e+20"))] == ["1×10⁻⁵", "−0.5", "inf", "2×10²⁰"]


@pytest.mark.parametrize(("values", "digits", "expected"), [
    ((16.154, 16.838, 17.81), 3, "16.9 [16.2, 17.8]"),
    ((29.453, 29.741), 3, "29.60 [29.45, 29.74]"),
    ((0.5, 0.50001), 3, "0.500 [0.500, 0.500]"),
    ((80.0, 80.0), 1, "80.0 [80.0, 80.0]"),
    ((100.0, 1250.0), 2, "675 [100, 1,250]"),
    ((1.25, None), 2, "1.25"),
    ((None,), 2, "–"),
])  # fmt: skip
def test_a_range_over_seeds_has_two_digits_of_what_they_differ_by(values, digits, expected):
    assert doc.over_seeds(values, digits).replace(doc.SPACE, " ") == expected
