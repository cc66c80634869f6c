"""The pages in a real browser: widths, links, filters, sorting, print, and nothing from elsewhere."""

import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from shared.reports.page import as_one_file
from tests.conftest import ROOT
from tests.reports.test_explorer import SHADES
from tests.reports.test_naming import contrast

REPORTS = ROOT / "reports"
MAIN = "index.html"
PAPERS = sorted(path.parent.name for path in REPORTS.glob("*/model.html"))
PAGES = [MAIN, *(f"{paper}/{name}" for paper in PAPERS for name in ("index.html", "model.html"))]
MAPS = "each => JSON.parse(each.querySelector('script').textContent).maps"
PHONE, SMALL, PAPER, DESK = (390, 800), (320, 700), (700, 1000), (1280, 900)
WIDE = """() => {
    document.querySelectorAll('details').forEach(each => each.open = true);
    const scrolls = document.documentElement.scrollWidth > window.innerWidth;
    return Array.from(document.querySelectorAll('main *'))
        .filter(each => !each.closest('pre') && each.getBoundingClientRect().right > window.innerWidth + 1)
        .filter(each => !(each.matches('figure img') && getComputedStyle(each.closest('figure')).overflowX === 'auto'))
        .map(each => each.outerHTML.slice(0, 120)).concat(scrolls ? ['the page'] : []);
}"""
# What nothing on a page may be, in a window of this size: a script that lists what is.
FAULTS = {
    "wider than a phone": (PHONE, WIDE),
    "wider than a small phone": (SMALL, WIDE),
    "a cell of a card that does not say what it is": (PHONE, """
        Array.from(document.querySelectorAll('.wide:not(.verdicts) td'))
        .filter(each => getComputedStyle(each, '::before').content !== `"${each.dataset.label}"`)
        .map(each => each.outerHTML)"""),
    "an empty cell that a phone shows": (PHONE, """
        Array.from(document.querySelectorAll('.verdicts tr:has(.badge) td'))
        .filter(each => each.checkVisibility() && each.innerText.trim() === '–').map(each => each.outerHTML)"""),
    "a table that paper cuts": (PAPER, """
        Array.from(document.querySelectorAll('table')).filter(each => !each.closest('details:not([open])')
        && each.getBoundingClientRect().right > window.innerWidth + 1).map(each => each.tHead.innerText)"""),
    "a table that scrolls sideways": (DESK, """
        Array.from(document.querySelectorAll('.table')).filter(each => !each.closest('details:not([open])')
        && each.scrollWidth > each.clientWidth + 1).map(each => each.querySelector('thead').innerText)"""),
    "a figure that is higher than a screen": (DESK, """
        Array.from(document.querySelectorAll('figure img, .heat')).filter(each => each.clientHeight > 900)
        .map(each => each.outerHTML.slice(0, 120))"""),
    "a picture without a description, or shown twice": (DESK, """
        Array.from(document.images).filter(each => !each.alt || !each.classList.contains('ground') &&
        document.querySelectorAll(`img:not(.ground)[src="${each.getAttribute('src')}"]`).length > 1)
        .map(each => each.outerHTML)"""),
    "a figure that cannot be drawn, moves the page, or is dark in the dark": (DESK, """
        Promise.all(Array.from(document.querySelectorAll('figure img')).map(async each => {
            const picture = new Image();
            picture.src = each.src;
            await picture.decode();
            const kept = each.checkVisibility() && !each.clientHeight ? 0 :
                each.getAttribute('width') / each.getAttribute('height');
            const ground = getComputedStyle(each).backgroundColor;
            const moves = Math.abs(kept * picture.naturalHeight / picture.naturalWidth - 1) >= 0.02;
            const framed = !moves && ground === 'rgb(255, 255, 255)' || each.classList.contains('ground');
            return framed && picture.naturalWidth ? '' : each.outerHTML;
        })).then(found => found.filter(each => each))"""),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("fault", FAULTS)
def test_no_page_has(opened, name, fault):
    (width, height), script = FAULTS[fault]
    scheme = "dark" if "dark" in fault else "light"
    page = opened(REPORTS, name, viewport={"width": width, "height": height}, color_scheme=scheme)
    page.emulate_media(media="print" if "paper" in fault else "screen")
    assert page.evaluate(script) == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_page_and_a_part_of_it(opened, name):
    page = opened(REPORTS, name)
    ids = {name: set(re.findall(r'\bid="([^"]+)"', (REPORTS / name).read_text(encoding="utf-8"))) for name in PAGES}
    for target in page.evaluate("Array.from(document.links).map(each => each.href)"):
        link = urlparse(target)
        if link.scheme != "file":
            assert link.scheme == "https"
            continue
        path = Path(unquote(link.path))
        assert path.is_file(), target
        assert path.suffix != ".md" or not path.is_relative_to(REPORTS), target
        if link.fragment:
            assert unquote(link.fragment) in ids[path.relative_to(REPORTS).as_posix()], target


@pytest.mark.parametrize("paper", PAPERS)
def test_a_tile_of_the_main_page_has_the_verdict_of_its_card(opened, paper):
    links = f"a[href^='{paper}/index.html#']"
    tiles = opened(REPORTS, MAIN).locator(f"{links}.tile")
    cards = opened(REPORTS, f"{paper}/index.html").locator(".card")
    verdict = "tiles => tiles.map(each => [each.hash.slice(1), each.textContent.split(': ').pop().trim()])"
    shown = "cards => cards.map(each => [each.id, each.querySelector('.head .badge').lastChild.textContent])"
    assert cards.evaluate_all(shown) == tiles.evaluate_all(verdict)
    assert cards.count() > 3


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_sent_by_mail(name):
    assert (REPORTS / name).stat().st_size < 1_000_000
    assert len(as_one_file(REPORTS / name)) < 6_000_000


def test_claims_can_be_chosen(opened):
    page = opened(REPORTS, MAIN)
    said = page.locator(".filters output").last  # the first is of attentions
    count = int(said.inner_text().split()[0])
    page.get_by_label("Verdict").select_option("reproduced")
    verdicts = page.evaluate(
        "Array.from(document.querySelectorAll('[data-filters] tr:not([hidden]) .badge'), each => each.innerText)"
    )
    assert 0 < len(verdicts) < count
    assert all("reproduced" in verdict for verdict in verdicts)
    assert said.inner_text() == f"{len(verdicts)} of {count}"
    page.get_by_label("Verdict").select_option("")
    assert said.inner_text() == f"{count} of {count}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened, scheme):
    """A contrast of 4.5 to 1 for text, by the formula of WCAG 2."""
    page = opened(REPORTS, MAIN, color_scheme=scheme)
    colours = page.evaluate(
        """() => Array.from(document.querySelectorAll('.badge, .tile, main p, main a')).map(each => {
            let ground = each;
            while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)' && ground.parentElement)
                ground = ground.parentElement;
            return [getComputedStyle(each).color, getComputedStyle(ground).backgroundColor];
        })"""
    )
    for pair in {tuple(pair) for pair in colours}:
        assert contrast(*map(channels, pair)) >= 4.5, pair


def channels(colour):
    """Red, green and blue of ``rgb(…)``, 0 to 1."""
    return tuple(int(value) / 255 for value in re.findall(r"\d+", colour)[:3])


@pytest.mark.parametrize("paper", {"show_attend_tell"} & {*PAPERS})
def test_a_reader_sees_where_in_a_picture_a_word_looks(opened, paper):
    explorer = opened(REPORTS, f"{paper}/index.html").locator(".explorer").first
    maps = explorer.evaluate(MAPS)
    for place in (0, 1):
        explorer.get_by_label("Picture").select_option(maps[place]["choices"]["Picture"])
        explorer.locator(".rows button").nth(1).hover()
        assert explorer.locator(".places span").evaluate_all(SHADES) == maps[place]["weights"][1]
        name = explorer.locator("img.ground[hidden]").nth(maps[place]["picture"]).get_attribute("src")
        assert explorer.locator(".places img").get_attribute("src") == name
        assert explorer.locator(".places img").is_visible()
