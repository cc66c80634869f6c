"""The one explorer of a page: what it gathers, and how a reader uses it in a real browser, by mouse and by keys."""

import random
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from replications.show_attend_tell.report import Overlays
from replications.transformer import figures as transformer
from replications.transformer_xl.texts import AttentionToText
from shared.pipeline.trying import write_tried
from shared.reports.document import Paragraph
from shared.reports.explorer import Attention, Explored, gather_maps
from shared.reports.page import render, write_page
from shared.tasks.examples import read_kept, write_kept
from shared.tasks.translation.report import maps_of_sentences
from shared.tasks.tried import Tried, Weights, by_head
from tests.synthetic_runs import sentences, write_attention, write_heads
from tests.tasks.captioning.synthetic_captioning import Captioner
from tests.tasks.captioning.synthetic_captioning import write_attention as write_pictures
from tests.tasks.in_process import draw_kept

SHADES = "spans => spans.map(each => Math.round(100 * parseFloat(each.style.getPropertyValue('--w'))))"
OFFERED = "select => Array.from(select.options, each => each.value)"


def figure(folder, name, maps, caption="Seen.", **more):
    path = folder / f"{name}.png"
    Image.new("RGB", (40, 20)).save(path)
    return Explored(path, caption, maps=maps, **more)


def one(model, weights=((1.0, 0.0),), **choices):
    return Attention({"Model": model, **choices}, ["a"], ["b", "c"], weights)


def translation(folder):
    rng, rows = random.Random(1), sentences("generated", 40)
    kept = {}
    for name in ("rnn", "base"):
        write_attention(folder / f"{name}.npz", rows, rng)
        kept[name] = read_kept(folder / f"{name}.npz")
    write_heads(folder / "heads.npz", rows, 2, 3)
    stored = read_kept(folder / "heads.npz")
    heads = [figure(folder, kind, transformer.maps_of_sentences("base", stored, kind)) for kind in ("encoder", "cross")]
    return [figure(folder, "both", maps_of_sentences(kept), "Both."), *heads]


def pictures(folder):
    found = []
    for name, mass in (("soft", 0.5), ("hard", 0.9)):
        write_pictures(folder / f"{name}.npz", Captioner(0.5, mass=mass))
        found += draw_kept(Overlays(name, f"Looks {name}."), folder, **{name: folder / f"{name}.npz"})
    return found


def language(folder):
    text = {"symbols": np.array([f"w{k}" for k in range(7)]), "own": np.array(4), "next": np.array("w7"),
            "weights": np.random.default_rng(1).dirichlet(np.ones(7), (2, 2, 3)).astype(np.float32)}  # fmt: skip
    kept = {"recall": 2, "ptb": 1}
    for name, count in kept.items():
        write_kept(folder / f"{name}.npz", [text] * count)
    drawn = (draw_kept(AttentionToText(name, "Seen."), folder, **{name: folder / f"{name}.npz"}) for name in kept)
    return [each for figures in drawn for each in figures]


@pytest.fixture
def shown(opened, tmp_path):
    """Opens a page of these figures."""

    def show(figures, **options):
        explorer = gather_maps(figures)
        write_page([*figures, Paragraph("."), *explorer], tmp_path, title="t")
        return opened(tmp_path, "index.html", **options), explorer[-1].data["maps"] if explorer else []

    return show


def test_maps_of_all_figures_are_in_one_explorer_each_once(tmp_path):
    first = figure(tmp_path, "a", [one("x"), one("y")], "First.", choose="Choose a row:")
    again = figure(tmp_path, "b", [one("y", [[0.0, 1.0]]), one("z")], "Second.")
    explorer = gather_maps([first, again])[-1]
    assert explorer.first == {first.path: 0, again.path: 1}
    data = explorer.data
    assert [(each["choices"]["Model"], each["figure"]) for each in data["maps"]] == [("x", 0), ("y", 0), ("z", 1)]
    assert data["maps"][1]["weights"] == [[100, 0]]
    assert data["figures"] == [
        {"caption": "First.", "choose": "Choose a row:"}, {"caption": "Second.", "choose": "Choose a word:"}
    ]  # fmt: skip


def test_weights_relative_to_the_largest_are_whole_per_cents_of_it(tmp_path):
    small = replace(one("x", [[0.02, 0.01]]), of_largest=True)
    nothing = replace(one("y", [[0.0, 0.0]]), of_largest=True)
    blocks = gather_maps([figure(tmp_path, "a", [small, nothing])])
    assert [each["weights"] for each in blocks[-1].data["maps"]] == [[[100, 50]], [[0, 0]]]


def test_markdown_shows_the_pictures_and_leads_to_the_explorer_if_there_are_maps(tmp_path):
    plain = figure(tmp_path, "a", [])
    assert gather_maps([plain]) == []
    assert "data-map=" not in render([plain], "html", title="t", folder=tmp_path)
    led = figure(tmp_path, "a", [one("x")])
    text = render([led, *gather_maps([led])], "md", title="t", folder=tmp_path)
    assert "![Seen](a.png)" in text
    assert text.endswith("](index.html#attention-word-by-word).\n")


@pytest.mark.parametrize("kind", [translation, pictures, language])
def test_every_choice_leads_to_its_map_alone(shown, tmp_path, kind):
    page, maps = shown(kind(tmp_path))
    explorer = page.locator(".explorer")
    assert explorer.count() == 1
    assert len({each["choices"]["Model"] for each in maps}) == 2
    for number in (0, len(maps) // 2, len(maps) - 1, 1):
        wanted = maps[number]["choices"]
        for name, value in wanted.items():
            select = explorer.get_by_label(name, exact=True)
            if select.is_visible():
                select.select_option(value)
        left = [each for each in maps if each["choices"]["Model"] == wanted["Model"]]
        assert explorer.locator(".rows button").all_inner_texts() == maps[number]["rows"]
        explorer.locator(".rows button").last.hover()
        assert explorer.locator(".columns span, .places span").evaluate_all(SHADES) == maps[number]["weights"][-1]
        last = [*wanted][1]
        offered = explorer.get_by_label(last, exact=True).evaluate(OFFERED)
        assert offered == list(dict.fromkeys(each["choices"][last] for each in left))


def test_a_figure_leads_to_its_weights_and_what_was_chosen_stays_where_it_is_offered(shown, tmp_path):
    page, maps = shown(translation(tmp_path))
    explorer = page.locator(".explorer")
    first = next(each for each in maps if each["choices"]["Attention"] == "to the source, by head")
    page.locator("[data-map]").last.click()
    assert page.url.endswith("#attention-word-by-word")
    assert explorer.locator(".rows button").all_inner_texts() == first["rows"]
    explorer.get_by_label("Model", exact=True).select_option("rnn")
    assert not explorer.get_by_label("Head", exact=True).is_visible(), "this model has no heads to choose from"
    explorer.get_by_label("Sentence", exact=True).select_option("2")
    explorer.get_by_label("Model", exact=True).select_option("base")
    assert explorer.get_by_label("Sentence", exact=True).input_value() == "2"
    explorer.get_by_label("Attention", exact=True).select_option("to the source, by head")
    explorer.get_by_label("Head", exact=True).select_option("3")
    assert "Attention to the source, by head, Sentence 2" in explorer.locator("figcaption").inner_text()
    assert "Head=3" in page.url
    again = page.url
    explorer.get_by_label("Head", exact=True).select_option("1")
    page.goto("about:blank")
    page.goto(again)
    assert explorer.get_by_label("Head", exact=True).input_value() == "3"
    explorer.get_by_label("Attention", exact=True).select_option("within the source, by head")
    assert explorer.get_by_label("Head", exact=True).input_value() == "3"
    explorer.get_by_label("Attention", exact=True).select_option("to the source")
    assert not explorer.get_by_label("Head", exact=True).is_visible()


def test_keys_lead_from_word_to_word_and_what_is_seen_is_said(shown, tmp_path):
    weights = [[0.5, 0.2, 0.0, 0.3], [0.0, 0.0, 0.0, 1.0], [0.0] * 4]
    words = Attention({"Model": "x"}, ["a", "b", "<i>"], ["p", "q", "r", "s"], weights)
    page, _ = shown([figure(tmp_path, "a", [words])])
    buttons, said = page.locator(".explorer .rows button"), page.locator(".explorer output")
    assert page.get_by_role("group", name="Choose a word").count() == 1
    buttons.first.focus()
    assert said.inner_text() == "“a” attends to “p” (50\u202f%), “s” (30\u202f%), “q” (20\u202f%)."
    page.keyboard.press("ArrowRight")
    assert buttons.nth(1).evaluate("each => each === document.activeElement")
    assert said.inner_text().startswith("“b” attends to “s” (100")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # there is none further
    assert said.inner_text().startswith("“<i>” attends to nothing by as much as 1")
    assert buttons.evaluate_all("all => all.map(each => each.tabIndex)") == [-1, -1, 0]
    page.keyboard.press("ArrowLeft")
    pressed = buttons.evaluate_all("all => all.map(each => each.getAttribute('aria-pressed'))")
    assert pressed == ["false", "true", "false"]


def test_places_of_a_picture_are_named_by_row_and_column(shown, tmp_path):
    page, maps = shown(pictures(tmp_path))
    page.locator(".explorer .rows button").nth(2).hover()
    place = max(range(16), key=maps[0]["weights"][2].__getitem__)
    said = f"attends to row {1 + place // 4}, column {1 + place % 4} (100\u202f%)"
    assert said in page.locator(".explorer output").inner_text()
    assert page.locator(".explorer output").inner_text().endswith("; per cents of the largest weight.")


def test_every_control_has_a_name_and_is_large_enough_for_a_finger(shown, tmp_path):
    page, _ = shown(translation(tmp_path), viewport={"width": 390, "height": 800}, has_touch=True)
    page.locator(".explorer").get_by_label("Model", exact=True).select_option("base")
    controls = page.locator(".explorer select:visible, .explorer button")
    assert controls.count() > 5
    for width, height in controls.evaluate_all(
        "all => all.map(each => [each.getBoundingClientRect().width, each.getBoundingClientRect().height])"
    ):
        assert min(width, height) >= 24, "the least of WCAG 2.2"
    assert page.locator(".explorer select:visible").evaluate_all("all => all.every(each => each.labels.length)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_scripts_there_are_the_pictures_and_a_word_about_it(shown, tmp_path):
    page, _ = shown(translation(tmp_path), java_script_enabled=False)
    assert page.locator("main > figure img").count() == 3
    assert page.get_by_text("choosing needs a browser that runs scripts").is_visible()
    assert not page.locator(".explorer").inner_text().strip()


def test_a_page_shows_all_heads_beside_each_other_and_each_leads_to_its_weights(tmp_path, opened):
    mean = Weights("Heads.", ["x", "y"], ["a", "b"], np.full((2, 2), 0.5), "matrix")
    heads = by_head(mean, [[np.eye(2), np.eye(2)[::-1]], [np.eye(2), np.full((2, 2), 0.5)]])
    write_tried(Tried("i", "o", heads), "t", tmp_path / "page.html")
    page = opened(tmp_path, "page.html")
    assert page.locator(".heads button").all_inner_texts() == [
        f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2)
    ]
    page.locator(".heads button").nth(1).click()
    assert "Layer 1, Head 2" in page.locator(".explorer figcaption").inner_text()
    assert "“x” attends to “b” (100" in page.locator(".explorer .said").inner_text()
