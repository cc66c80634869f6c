"""Texts coloured by attention: what is said of them, and what is drawn."""

import re

import numpy as np
import pytest
from matplotlib.image import imread

from shared.errors import ReplicationError
from shared.reports.explorer import gather_maps
from shared.reports.page import render
from shared.tasks.classification.heat import compare_rows, heat_texts, lines_of_rows, read_texts

RED = np.array([242, 92, 72]) / 255


def kept(path, *lines, rows=1, predicted="good", evidence=None, weights=None):
    """Each line is a text; its row k looks at word k only, unless weights (rows, n) are given."""
    arrays = {}
    for i, line in enumerate(lines):
        words = line.split()
        given = np.eye(rows, len(words)) if weights is None else np.array(weights)
        arrays |= {f"words_{i}": np.array(words), f"weights_{i}": given.astype(np.float32),
                   f"label_{i}": np.array("good"), f"predicted_{i}": np.array(predicted)}  # fmt: skip
        if evidence is not None:
            arrays[f"evidence_{i}"] = np.array(evidence)
    np.savez(path, **arrays)
    return path


def picture(path):
    found = imread(path)[..., :3]
    assert found.shape[1] == 1400
    return found


def share_of_red(path):
    return float((abs(picture(path) - RED).max(axis=-1) < 0.03).mean())


def test_a_words_shade_is_its_mean_weight_over_the_largest(tmp_path):
    source = kept(tmp_path / "a.npz", "one two three", rows=2, weights=[[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
    (heat,) = heat_texts(source, tmp_path / "a.png", "Ours.")
    (line,) = heat.lines
    assert line.shades == pytest.approx([1.0, 0.5, 1.0])
    assert (list(line.words), line.title, line.name) == (["one", "two", "three"], "(a) good ✔", "")
    assert heat.caption == "Ours. Where there are several rows, a word's weight is its mean over them."


def test_a_wrong_answer_and_the_evidence_are_shown(tmp_path):
    source = kept(tmp_path / "a.npz", "one two three", "four five six", predicted="bad", evidence=[2])
    (heat,) = heat_texts(source, tmp_path / "a.png", "Ours.")
    assert [line.title for line in heat.lines] == [f"({letter}) good, predicted bad ✘" for letter in "ab"]
    assert [line.marked for line in heat.lines] == [{2}, {2}]
    assert heat.marks


def test_only_so_many_texts_are_drawn(tmp_path):
    source = kept(tmp_path / "a.npz", *["one two"] * 6)
    (heat,) = heat_texts(source, tmp_path / "a.png", "Ours.")
    assert len(heat.lines) == 4


def test_rows_are_evenly_chosen_and_named(tmp_path):
    text = " ".join(f"w{i}" for i in range(30))
    sources = {"many": kept(tmp_path / "a.npz", text, rows=30), "few": kept(tmp_path / "b.npz", text, rows=3),
               "one": kept(tmp_path / "c.npz", text)}  # fmt: skip
    lines = [line for name, path in sources.items() for line in lines_of_rows(name, read_texts(path)[0])]
    assert [line.name for line in lines] == ["1", "7", "13", "18", "24", "30", "1", "2", "3", "1"]
    assert [line.title for line in lines if line.title] == [
        "many: good ✔, 6 of 30 rows, evenly spread", "few: good ✔, all 3 rows", "one: good ✔, its one row"
    ]  # fmt: skip
    looked_at = [list(line.shades).index(1.0) for line in lines]
    assert looked_at == [0, 6, 12, 17, 23, 29, 0, 1, 2, 0]
    (explorer,) = compare_rows(sources, tmp_path / "a.png", "With and without.")
    assert [(each.choices, len(each.rows)) for each in explorer.maps] == [
        ({"Model": "many"}, 30), ({"Model": "few"}, 3), ({"Model": "one"}, 1)
    ]  # fmt: skip
    _, (*_, explored) = gather_maps({"": [explorer]})
    assert explored.data["maps"][0]["weights"][6].index(100) == 6


@pytest.mark.parametrize(("lengths", "drawn"), [((5, 40, 28, 9), 28), ((50, 35, 44), 35)])
def test_the_rows_are_of_the_longest_text_that_fits_or_the_shortest(tmp_path, lengths, drawn):
    source = kept(tmp_path / "a.npz", *(" ".join(["word"] * n) for n in lengths))
    (explorer,) = compare_rows({"a": source, "b": source}, tmp_path / "a.png", "")
    assert {len(each.columns) for each in explorer.maps} == {drawn}


def test_rows_of_other_texts_are_not_compared(tmp_path):
    sources = {"a": kept(tmp_path / "a.npz", "one two"), "b": kept(tmp_path / "b.npz", "one three")}
    with pytest.raises(ReplicationError, match="b is not of the same texts as that of a"):
        compare_rows(sources, tmp_path / "a.png", "")


def test_nothing_is_drawn_of_models_without_attention(tmp_path):
    source = kept(tmp_path / "a.npz", "one two")
    assert heat_texts(tmp_path / "none.npz", tmp_path / "a.png", "") == []
    assert compare_rows({}, tmp_path / "a.png", "") == []
    assert compare_rows({"a": source, "max": tmp_path / "none.npz"}, tmp_path / "a.png", "") == []
    assert not (tmp_path / "a.png").exists()
    assert len(compare_rows({"a": source}, tmp_path / "a.png", "Alone.")) == 1


def test_the_largest_weight_is_the_reddest(tmp_path):
    """Two texts; in the first one long word has all the weight, in the other it is spread over six."""
    spread, peaked = [[1 / 6] * 6], [[1.0, 0, 0, 0, 0, 0]]
    text = " ".join(["attention"] * 6)
    for name, weights in (("spread", spread), ("peaked", peaked)):
        heat_texts(kept(tmp_path / f"{name}.npz", text, weights=weights), tmp_path / f"{name}.png", "")
    one = share_of_red(tmp_path / "peaked.png")
    assert share_of_red(tmp_path / "spread.png") > 4 * one > 0.0


def test_a_rerun_gives_the_same_bytes(tmp_path):
    source = kept(tmp_path / "a.npz", "one two three", rows=3)
    for name in ("first", "second"):
        heat_texts(source, tmp_path / f"{name}.png", "")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()


def test_what_the_font_lacks_and_what_is_too_long_is_drawn_inside_the_picture(tmp_path):
    """No warning of a missing glyph, no formula between dollars, and a white margin on the right."""
    text = f"costs $5 or $10 in 日本 ﷽\N{ZERO WIDTH SPACE} {'https://' + 'a' * 500} {'mmm ' * 60}"
    (heat,) = heat_texts(kept(tmp_path / "a.npz", text, rows=9), tmp_path / "a.png", "")
    assert "日本" in heat.lines[0].words
    assert (picture(tmp_path / "a.png")[:, -3:] > 0.95).all()


def test_long_texts_get_more_lines(tmp_path):
    heights = []
    for count in (10, 60):
        heat_texts(kept(tmp_path / "a.npz", " ".join(["wonderful"] * count)), tmp_path / "a.png", "")
        heights.append(picture(tmp_path / "a.png").shape[0])
    assert heights[1] - heights[0] > 3 * 30


def test_html_has_the_words_and_markdown_the_picture(tmp_path):
    source = kept(tmp_path / "a.npz", "<b>good</b> R&D plain", evidence=[1])
    heats = heat_texts(source, tmp_path / "a.png", "Ours.")
    html = render(heats, "html", title="t", folder=tmp_path)
    assert '<span style="--w:1.00">&lt;b&gt;good&lt;/b&gt;</span> ' in html
    assert '<span style="--w:0.00"><u>R&amp;D</u></span> <span style="--w:0.00">plain</span></p>' in html
    assert '<p class="title">(a) good ✔</p>' in html
    assert "<u>underlined</u>: evidence" in html
    assert "<img" not in html
    assert not re.search(r"<b>good", html)
    markdown = render(heats, "md", title="t", folder=tmp_path)
    caption = "Ours. Where there are several rows, a word's weight is its mean over them."
    assert markdown == f"![Ours](a.png)\n\n{caption}\n"


def test_without_evidence_the_legend_does_not_speak_of_it(tmp_path):
    heats = heat_texts(kept(tmp_path / "a.npz", "one two"), tmp_path / "a.png", "")
    assert "evidence" not in render(heats, "html", title="t", folder=tmp_path).partition("<main>")[2]
