"""The forms of a page: Markdown for a code host and the terminal, HTML for a folder that needs no network.

A third, ``page.json``, has the blocks as data: what the report of a scale leaves for the page of its paper.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image
from rich.console import Console
from rich.markdown import Markdown

from shared.errors import ReplicationError
from shared.reports import document, explorer
from shared.reports.document import SYMBOLS, Block, Card, Columns, Details, Figure, Heading, parts, plain_text, relative

Form = Literal["md", "html"]
FORMS: dict[Form, str] = {"md": "README.md", "html": "index.html"}
LARGEST_VECTOR = 200_000
"""Bytes of an SVG that HTML shows: larger ones have thousands of lines, which take time to draw."""
MARKUP = re.compile(r"([\\`*|]|<(?=[A-Za-z/!])|\](?=\()|&(?=#?\w+;))")
"""What Markdown would take for markup, and no more, so that the raw file reads well too."""
PAGE = re.compile(r"(^|/)README\.md(?=$|#)")
"""A page that was written in both forms, in a link from another."""
TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
DATA = "page.json"
Target = tuple[str, str]
"""What a page is called, and where it lies."""


@dataclass(frozen=True)
class Place:
    """Where a page is among the others.

    Attributes:
        trail: the pages above it, the main one first.
        previous, following: its neighbours, if any.
        more: what stands at the foot of the page: code, documents, licence.
        contents: whether the sections are listed beside the page.
    """

    trail: Sequence[Target] = ()
    previous: Target | None = None
    following: Target | None = None
    more: Sequence[Target] = ()
    contents: bool = True


def render(blocks: Sequence[Block], form: Form, *, title: str, folder: Path, place: Place | None = None) -> str:
    """The page's text.

    Args:
        blocks: the content.
        form: Markdown or HTML.
        title: of the browser window.
        folder: where the page will lie; figures are linked relative to it.
        place: where it is among the others.

    Raises:
        ValueError: two cards or sections have the same id.
    """
    template, contents = _environment(form).get_template(f"page.{form}.j2"), _contents(blocks)
    first = next((each.first for each in blocks if isinstance(each, document.Explorer)), {})
    values = {"title": title, "folder": folder, "place": place or Place(), "contents": contents, "first": first}
    text = template.render(blocks=blocks, **values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write_page(
    blocks: Sequence[Block], folder: Path, *, title: str, place: Place | None = None, html: Sequence[Block] = ()
) -> None:
    """Write ``README.md`` and ``index.html`` into ``folder``; the second of other blocks where they are given."""
    folder.mkdir(parents=True, exist_ok=True)
    for form, name in FORMS.items():
        shown = html or blocks if form == "html" else blocks
        (folder / name).write_text(render(shown, form, title=title, folder=folder, place=place), encoding="utf-8")


def fill(template: str, **values: Any) -> str:
    """The text of a template that is no page of blocks."""
    return _environment("html" if ".html" in template else "md").get_template(template).render(**values)


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print a page's words, lists and tables; figures stay with the page."""
    console.print(Markdown(render([*_unfolded(blocks)], "md", title="", folder=Path())))


def _unfolded(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Details):
            yield Heading(block.summary, level=3)
            yield from _unfolded(block.blocks)
        elif not isinstance(block, Figure):
            yield block


def _contents(blocks: Sequence[Block]) -> list[tuple[Heading, list[Card]]]:
    """The sections of a page with their cards, each with an id of its own."""
    sections: list[tuple[Heading, list[Card]]] = []
    for block in _beside(blocks):
        if isinstance(block, Details) and block.section:
            sections.append((Heading(block.summary), []))
        elif isinstance(block, Heading) and block.level == 2:
            sections.append((block, []))
        elif isinstance(block, Card) and sections:
            sections[-1][1].append(block)
    names = [name for heading, cards in sections for name in (heading.id, *(card.id for card in cards))]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two parts of a page have the id '{min(twice)}'")
    return sections


def _beside(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, and in place of columns what stands in them."""
    for block in blocks:
        yield from (each for _, part in block.parts for each in part) if isinstance(block, Columns) else (block,)


def templates(package: str, **options: Any) -> Environment:
    """The templates of a package, in which a name that nothing has is an error."""
    loader = PackageLoader(package)
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)


def fill_template(template: str, **values: Any) -> str:
    """The text of a template of ``shared/pipeline``: a file of a new paper, or a page of ``docs``."""
    return templates("shared.pipeline", keep_trailing_newline=True).get_template(template).render(**values)


@cache
def _environment(form: Form) -> Environment:
    environment = templates("shared.reports", autoescape=form == "html")
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # readers choose in the order of the data
    environment.filters |= {
        "kind": lambda block: type(block).__name__, "parts": parts, "words": plain_text,
        "as_html": lambda target: target if "://" in target else PAGE.sub(r"\1index.html", target),
        "escape_markdown": lambda text: MARKUP.sub(r"\\\1", text), "shown": _shown, "vector": _vector, "size": _size,
        "relative_to": relative,
    }  # fmt: skip
    environment.globals |= {"EXPLORER": Heading(explorer.TITLE).id, "SYMBOLS": SYMBOLS}
    return environment


def _size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, so that a page does not move while its pictures are loaded."""
    with Image.open(path) as picture:
        return picture.size


def _vector(path: Path) -> Path | None:
    """The same drawing without pixels, where there is one."""
    drawn = path.with_suffix(".svg")
    return drawn if drawn.is_file() else None


def _shown(path: Path) -> Path:
    """The drawing that HTML shows: sharp at any size where that takes few bytes and it has no pixels inside."""
    drawn = _vector(path)
    if drawn is None or drawn.stat().st_size > LARGEST_VECTOR or b"<image" in drawn.read_bytes():
        return path
    return drawn


def as_one_file(page: Path) -> str:
    """An HTML page that carries its pictures inside and leads nowhere else in the folder, so that it can be sent.

    Args:
        page: as :func:`write_page` wrote it.

    Raises:
        ReplicationError: it or one of its pictures is not there.
    """

    def inside(match: re.Match[str]) -> str:
        path = page.parent / html.unescape(match[1])
        return f'src="data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode("ascii")}"'

    try:
        text = re.sub(r'src="([^":]+\.(?:png|svg))"', inside, page.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReplicationError(f"{error.filename} cannot be read; make the report first.") from None
    text = re.sub(r' <a href="[^"]*" download>[^<]*</a>', "", text)
    text = re.sub(r"<header>.*?</header>\n", "", text, flags=re.DOTALL)
    return re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", text)


@dataclass(frozen=True)
class ScaleCard:
    """What a scale says of a claim.

    Attributes:
        intro: what the paper says.
        evidence: what was found, and what a reader must know beside it.
        exhibits: figures and tables of the claim.
        decided: how; nothing where nothing was tested.
    """

    intro: Sequence[Block]
    evidence: Sequence[Block]
    exhibits: Sequence[Block] = ()
    decided: Sequence[Block] = ()


@dataclass(frozen=True)
class ScalePart:
    """What a scale has of the page of a paper.

    Attributes:
        standing: whether its runs are of today, and when its plan was frozen.
        cards: claim to what is said of it.
        rest: the sections that follow, each with its heading of level 2.
    """

    standing: Sequence[Block]
    cards: Mapping[str, ScaleCard]
    rest: Sequence[Block] = field(default_factory=list)


_NAMED = (*vars(document).values(), *vars(explorer).values(), ScaleCard, ScalePart)
KINDS = {kind.__name__: kind for kind in _NAMED if isinstance(kind, type) and is_dataclass(kind)}
KIND, PATH = "@", "@path"
"""Keys of objects that stand for a block, and for a path."""


def write_part(part: ScalePart, folder: Path) -> None:
    """Write ``page.json``; paths in it are relative to the folder."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return {PATH: Path(os.path.relpath(value, folder)).as_posix()}
        if is_dataclass(value):
            inside = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
            return {KIND: type(value).__name__} | inside
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, (set, frozenset)):
            return sorted(value)
        return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

    text = json.dumps(plain(part), ensure_ascii=False, indent=0)
    (folder / DATA).write_text(text + "\n", encoding="utf-8")


def read_part(folder: Path) -> ScalePart:
    """Read what :func:`write_part` wrote.

    Raises:
        ReplicationError: it cannot be read.
    """

    def whole(value: dict[str, Any]) -> Any:  # the innermost objects come first
        if PATH in value:
            return folder / value[PATH]
        return KINDS[value.pop(KIND)](**value) if KIND in value else value

    try:
        return json.loads((folder / DATA).read_text(encoding="utf-8"), object_hook=whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReplicationError(f"{folder / DATA} cannot be read ({error}); run its report stage again.") from None
