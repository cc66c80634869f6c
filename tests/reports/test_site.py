"""The pages in a real browser: widths, links, filters, sorting, print, and nothing from elsewhere."""

import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from shared.reports.page import as_one_file
from tests.conftest import ROOT
from tests.reports.drawing import amiss

REPORTS = ROOT / "reports"
PAGES = sorted(
    path.relative_to(REPORTS).as_posix() for path in REPORTS.rglob("index.html") if "comparisons" not in path.parts
)
MAIN = "index.html"
DRAWN_ANEW = [MAIN, *(name for name in PAGES if (ROOT / "runs" / f"{Path(name).parent}.tar.xz").is_file())]
"""Pages of which git has the runs, so that a change of the code that draws them reaches them."""
PHONE, DESK, PAPER = {"width": 390, "height": 800}, {"width": 1280, "height": 900}, {"width": 700, "height": 1000}


@pytest.fixture
def opened(browser):
    """Opens a page of the site; when the test ends, it must have said no error and asked for nothing elsewhere."""
    contexts, errors, asked = [], [], []

    def open_page(name, viewport=DESK, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((REPORTS / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    outside = [url for url in asked if not Path(unquote(urlparse(url).path)).is_relative_to(REPORTS)]
    assert outside == []
    assert all(url.startswith("file:") for url in asked)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("viewport", [PHONE, {"width": 320, "height": 700}], ids=["phone", "small"])
def test_no_page_is_wider_than_a_phone(opened, name, viewport):
    page = opened(name, viewport)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = page.evaluate(
        "Array.from(document.querySelectorAll('main *')).filter(each => !each.closest('pre')"
        " && each.getBoundingClientRect().right > window.innerWidth + 1).map(each => each.outerHTML.slice(0, 120))"
    )
    assert wide == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.parametrize("name", PAGES)
def test_every_cell_of_a_card_says_what_it_is(opened, name):
    page = opened(name, PHONE)
    cells = page.evaluate(
        "Array.from(document.querySelectorAll('.wide:not(.stacked) td')).map(each => "
        "[each.dataset.label, getComputedStyle(each, '::before').content])"
    )
    assert [label for label, shown in cells if shown != f'"{label}"'] == []
    assert cells or name == MAIN


def test_a_phone_leaves_out_what_a_card_has_nothing_to_say_of(opened):
    shown = "Array.from(document.querySelectorAll('.stacked td')).filter(each => each.checkVisibility())"
    count = f"{shown}.filter(each => each.innerText.trim() === '–').length"
    assert opened(MAIN, DESK).evaluate(count) > 0
    assert opened(MAIN, PHONE).evaluate(count) == 0


@pytest.mark.parametrize("name", PAGES)
def test_print_keeps_every_column(opened, name):
    page = opened(name, PAPER)
    page.emulate_media(media="print")
    cut = page.evaluate(
        "Array.from(document.querySelectorAll('table')).filter(each => !each.closest('details:not([open])')"
        " && each.getBoundingClientRect().right > window.innerWidth + 1).map(each => each.tHead.innerText)"
    )
    assert cut == []


@pytest.mark.parametrize("name", DRAWN_ANEW)
def test_no_table_scrolls_sideways_on_a_desk(opened, name):
    page = opened(name, DESK)
    cut = page.evaluate(
        "Array.from(document.querySelectorAll('.table')).filter(each => !each.closest('details:not([open])')"
        " && each.scrollWidth > each.clientWidth + 1).map(each => each.querySelector('thead').innerText)"
    )
    assert cut == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_page_and_a_part_of_it(opened, name):
    page = opened(name)
    ids = {name: set(re.findall(r'\bid="([^"]+)"', (REPORTS / name).read_text(encoding="utf-8"))) for name in PAGES}
    for target in page.evaluate("Array.from(document.links).map(each => each.href)"):
        link = urlparse(target)
        if link.scheme != "file":
            assert link.scheme == "https"
            continue
        path = Path(unquote(link.path))
        assert path.is_file(), target
        assert path.suffix != ".md", target
        if link.fragment:
            assert unquote(link.fragment) in ids[path.relative_to(REPORTS).as_posix()], target


@pytest.mark.parametrize("name", [name for name in PAGES if name != MAIN])
def test_the_badge_of_a_card_is_that_of_its_row(opened, name):
    page = opened(name)
    cards = page.evaluate(
        "Object.fromEntries(Array.from(document.querySelectorAll('.card'))"
        ".map(card => [card.id, card.querySelector('.badge').innerText]))"
    )
    rows = page.evaluate(
        "Object.fromEntries(Array.from(document.querySelector('.stacked tbody').rows)"
        ".map(row => [row.cells[0].innerText, row.querySelector('.badge').innerText]))"
    )
    assert cards == rows
    assert len(cards) > 5


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_is_shown_and_described(opened, name):
    page = opened(name)
    pictures = page.evaluate(
        """() => Promise.all(Array.from(document.images).map(async each => {
            const picture = new Image();
            picture.src = each.src;
            await picture.decode();
            return [each.getAttribute('src'), each.alt, picture.naturalWidth, each.classList.contains('ground')];
        }))"""
    )
    assert all(alt and width for _, alt, width, _ in pictures)
    shown = [source for source, *_, explored in pictures if not explored]  # several models look at one picture
    assert len({*shown}) == len(shown), "a picture is shown once"


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_has_its_place_before_it_is_loaded_and_a_light_ground_in_the_dark(opened, name):
    page = opened(name, color_scheme="dark")
    figures = page.evaluate(
        """() => Promise.all(Array.from(document.querySelectorAll('figure img:not(.ground)')).map(async each => {
            const picture = new Image();
            picture.src = each.src;
            await picture.decode();
            const kept = each.getAttribute('width') / each.getAttribute('height');
            return [kept * picture.naturalHeight / picture.naturalWidth, getComputedStyle(each).backgroundColor];
        }))"""
    )
    assert figures or name == MAIN
    assert all(abs(shape - 1) < 0.02 for shape, _ in figures)
    assert {ground for _, ground in figures} <= {"rgb(255, 255, 255)"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_sent_by_mail_and_has_the_figures_that_it_uses_alone(name):
    assert (REPORTS / name).stat().st_size < 1_000_000
    assert len(as_one_file(REPORTS / name)) < 3_000_000
    assert amiss((REPORTS / name).parent) == []


def test_claims_can_be_chosen(opened):
    page = opened(MAIN)
    count = int(page.inner_text(".filters output").split()[0])
    page.get_by_label("Verdict").select_option("reproduced")
    verdicts = page.evaluate(
        "Array.from(document.querySelectorAll('[data-filters] tr:not([hidden]) .badge'), each => each.innerText)"
    )
    assert 0 < len(verdicts) < count
    assert all("reproduced" in verdict for verdict in verdicts)
    assert page.inner_text(".filters output") == f"{len(verdicts)} of {count}"
    page.get_by_label("Verdict").select_option("")
    assert page.inner_text(".filters output") == f"{count} of {count}"


def test_a_table_is_sorted_by_a_click(opened):
    page = opened("quick/transformer/index.html")
    table = page.locator("main > .table table").nth(3)
    head = table.locator("th.r button").first
    read = (
        "table => Array.from(table.tBodies[0].rows)"
        ".map(row => parseFloat(row.querySelector('td.r').innerText.replace(/,/g, '')))"
    )
    head.click()
    falling = table.evaluate(read)
    assert falling == sorted(falling, reverse=True)
    head.click()
    assert table.evaluate(read) == sorted(falling)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened, scheme):
    """A contrast of 4.5 to 1 for text, by the formula of WCAG 2."""
    page = opened(MAIN, color_scheme=scheme)
    colours = page.evaluate(
        """() => Array.from(document.querySelectorAll('.badge, .cell, main p, main a')).map(each => {
            let ground = each;
            while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)' && ground.parentElement)
                ground = ground.parentElement;
            return [getComputedStyle(each).color, getComputedStyle(ground).backgroundColor];
        })"""
    )
    for pair in {tuple(pair) for pair in colours}:
        light, dark = sorted((luminance(colour) for colour in pair), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, pair


def luminance(colour):
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_reader_sees_what_a_word_attends_to(opened):
    page = opened("quick/bahdanau/index.html")
    explorer = page.locator(".explorer").first
    maps = explorer.evaluate("each => JSON.parse(each.querySelector('script').textContent).maps")
    shade = "spans => spans.map(each => Math.round(100 * parseFloat(each.style.getPropertyValue('--w'))))"
    for chosen in (0, 2):
        explorer.locator(".rows button").nth(chosen).hover()
        assert explorer.locator(".columns span").evaluate_all(shade) == maps[0]["weights"][chosen]
    assert explorer.locator(".columns span").all_inner_texts() == maps[0]["columns"]
    explorer.get_by_label("Sentence").select_option("2")
    assert explorer.locator(".rows button").all_inner_texts() == maps[1]["rows"]
    assert not explorer.locator("img").is_visible(), "the picture is for those without a script"


def test_a_reader_sees_where_in_a_picture_a_word_looks(opened):
    explorer = opened("quick/show_attend_tell/index.html").locator(".explorer").first
    maps = explorer.evaluate("each => JSON.parse(each.querySelector('script').textContent).maps")
    shade = "spans => spans.map(each => Math.round(100 * parseFloat(each.style.getPropertyValue('--w'))))"
    for place in (0, 1):
        explorer.get_by_label("Picture").select_option(maps[place]["choices"]["Picture"])
        explorer.locator(".rows button").nth(1).hover()
        assert explorer.locator(".places span").evaluate_all(shade) == maps[place]["weights"][1]
        name = explorer.locator("img.ground[hidden]").nth(maps[place]["picture"]).get_attribute("src")
        assert explorer.locator(".places img").get_attribute("src") == name
        assert explorer.locator(".places img").is_visible()
