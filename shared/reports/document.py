"""A document as plain data, and its two renderings: Markdown for a code host, one HTML file for offline."""

from __future__ import annotations

import base64
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
SPREAD = "mean over seeds, lowest to highest seed shaded."  # what the captions of most curves say
SYMBOLS = {
    "reproduced": "✔", "contradicted": "✘", "inconclusive": "?", "verified": "✔", "refuted": "✘", "not tested": "–"
}  # fmt: skip
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Strong:
    """Emphasised words."""

    text: str
    kind: ClassVar[str] = "strong"


@dataclass(frozen=True)
class Code:
    """A name or command inside a sentence."""

    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Link:
    """Words that lead to ``target``."""

    text: str
    target: str
    kind: ClassVar[str] = "link"


@dataclass(frozen=True)
class Badge:
    """A verdict."""

    text: str
    kind: ClassVar[str] = "badge"

    @property
    def symbol(self) -> str:
        """A sign that tells the verdicts apart without colour."""
        return SYMBOLS[self.text]


Inline = str | Strong | Code | Link | Badge
Text = Inline | tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """A section's title; level 1 is the page's."""

    text: Text
    level: int = 2
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: Text
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[Text]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True)
class Table:
    """A table; ``align`` has one letter per column: l left, r right, t for running text (left, kept wide).

    On a narrow screen the cells of a row of a ``stacked`` one stand below each other, without the heads of columns.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Text]]
    align: str
    stacked: bool = False
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class CodeBlock:
    """Commands to copy."""

    text: str
    kind: ClassVar[str] = "codeblock"


@dataclass(frozen=True)
class Figure:
    """A picture already drawn to ``path`` (PNG), with its caption."""

    path: Path
    caption: str
    kind: ClassVar[str] = "figure"


@dataclass(frozen=True)
class HeatLine:
    """A text, or one row of attention over it.

    Attributes:
        words: of the text.
        shades: of each word, from 0 (no weight) to 1 (the largest weight of the line).
        marked: positions of the words that are underlined, the evidence.
        title: what stands above, if anything.
        name: what stands before the words, if anything.
    """

    words: Sequence[str]
    shades: Sequence[float]
    marked: frozenset[int] = frozenset()
    title: str = ""
    name: str = ""


@dataclass(frozen=True)
class Heat(Figure):
    """A figure of words on a ground that is the redder, the more weight they have.

    Markdown shows the picture; HTML shows the words themselves.
    """

    lines: Sequence[HeatLine] = ()
    kind: ClassVar[str] = "heat"

    @property
    def marks(self) -> bool:
        """Whether any word is underlined."""
        return any(line.marked for line in self.lines)


@dataclass(frozen=True)
class Details:
    """What is folded away below a line of words until a reader asks for it."""

    summary: str
    blocks: Sequence[Block]
    kind: ClassVar[str] = "details"


Block = Heading | Paragraph | Bullets | Table | CodeBlock | Figure | Details


def render(blocks: Sequence[Block], form: Literal["md", "html"], *, title: str, folder: Path) -> str:
    """The page's text.

    Args:
        blocks: the content.
        form: Markdown or HTML.
        title: of the browser window.
        folder: where the page will lie; Markdown links figures relative to it, HTML carries them inside.
    """
    text = _environment(form).get_template(f"page.{form}.j2").render(blocks=blocks, title=title, folder=folder)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write_page(blocks: Sequence[Block], folder: Path, *, title: str) -> None:
    """Write ``README.md`` and ``index.html`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(render(blocks, "md", title=title, folder=folder), encoding="utf-8")
    (folder / "index.html").write_text(render(blocks, "html", title=title, folder=folder), encoding="utf-8")


def signed(value: float, digits: int) -> str:
    """A difference, always with its sign; see :func:`plain`."""
    return typeset(f"{value:+z,{_form(value, digits)}}")


def plain(value: float | None, digits: int) -> str:
    """A value, or an en dash where there is none.

    Args:
        value: the number.
        digits: after the decimal point; none from 100,000 on. With any, numbers from a thousand million on are
            powers of ten; a whole number (0 digits) is always written out.
    """
    return "–" if value is None else typeset(f"{value:z,{_form(value, digits)}}")


def over_seeds(values: Sequence[float | None], digits: int, *, sign: bool = False) -> str:
    """The mean over seeds, in brackets the lowest and the highest where there are several; None counts for nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return plain(None, digits)
    show = signed if sign else plain
    mean, *ends = (show(value, digits) for value in (statistics.fmean(known), min(known), max(known)))
    return f"{mean} [{f',{SPACE}'.join(ends)}]" if len(known) > 1 else mean


def typeset(number: str) -> str:
    """A formatted number with a true minus sign, and ×10¹⁸ in place of e+18."""
    mantissa, _, power = number.partition("e")
    if power:
        mantissa += f"×10{str(int(power)).translate(SUPERSCRIPT)}"
    return mantissa.replace("-", MINUS)


def _form(value: float, digits: int) -> str:
    if digits and abs(value) >= 1e9:
        return f".{digits}e"
    return f".{digits if abs(value) < 1e5 else 0}f"


@cache
def _environment(form: str) -> Environment:
    environment = Environment(
        loader=PackageLoader("shared.reports"),
        autoescape=form == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"escape_markdown": _escape_markdown, "data_uri": _data_uri, "parts": _parts, "as_html": _as_html}
    environment.filters |= filters
    return environment


def _parts(text: Any) -> tuple[Any, ...]:
    return text if isinstance(text, tuple) else (text,)


def _as_html(target: str) -> str:
    """From one page that was written in both forms to another."""
    return target if "://" in target else re.sub(r"(^|/)README\.md$", r"\1index.html", target)


def _escape_markdown(text: str) -> str:
    """Only what Markdown would take for markup, so that the raw file reads well too."""
    return re.sub(r"([\\`*|]|<(?=[A-Za-z/!])|\](?=\())", r"\\\1", text)


def _data_uri(path: Path) -> Markup:
    return Markup("data:image/png;base64,") + base64.b64encode(path.read_bytes()).decode("ascii")
