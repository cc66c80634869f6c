"""A document as plain data, which page.py writes as Markdown and as HTML; and how numbers are written."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
SPREAD = "mean over seeds, lowest to highest seed shaded."  # what the captions of most curves say
SYMBOLS = {
    "reproduced": "✔", "contradicted": "✘", "inconclusive": "?", "verified": "✔", "refuted": "✘", "not tested": "–"
}  # fmt: skip
HASH_SHOWN = 12
NARROW = 3  # columns that a phone shows beside each other
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
    """A section's title; level 1 is the page's, and sections of level 2 are in its contents."""

    text: Text
    level: int = 2
    kind: ClassVar[str] = "heading"

    @property
    def id(self) -> str:
        """What links lead to: its words, with hyphens."""
        return slug(plain_text(self.text))


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
    """A table, whose rows are cards on a narrow screen: its cells stand below each other there.

    Attributes:
        columns: their heads.
        rows: cells.
        align: one letter per column: l left, r right, t for running text (left, kept wide).
        stacked: whether cells say what they are, so that cards leave the heads of columns out.
        filters: columns by whose first words a reader can choose rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Text]]
    align: str
    stacked: bool = False
    filters: Sequence[str] = ()
    kind: ClassVar[str] = "table"

    @property
    def wide(self) -> bool:
        """Whether a narrow screen cannot show it as it is."""
        return len(self.columns) > NARROW or self.align.count("t") > 1


@dataclass(frozen=True)
class CodeBlock:
    """Commands to copy."""

    text: str
    kind: ClassVar[str] = "codeblock"


@dataclass(frozen=True)
class Figure:
    """A picture already drawn to ``path``.

    Attributes:
        path: of the PNG.
        caption: what stands below it.
        alt: what is seen, for who cannot see it; without one the caption's first sentence.
    """

    path: Path
    caption: str
    alt: str = ""
    kind: ClassVar[str] = "figure"

    @property
    def seen(self) -> str:
        """What stands in place of the picture."""
        return self.alt or re.split(r"(?<=[.:;])\s", self.caption, maxsplit=1)[0].rstrip(".:;")


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
class Explorer:
    """What a reader explores with the page's script; Markdown leads to it.

    Attributes:
        data: for the script.
        pictures: which it shows.
    """

    data: Mapping[str, Any]
    pictures: Sequence[Path] = ()
    kind: ClassVar[str] = "explorer"


@dataclass(frozen=True)
class Details:
    """What is folded away below a line of words until a reader asks for it."""

    summary: str
    blocks: Sequence[Block]
    kind: ClassVar[str] = "details"


@dataclass(frozen=True)
class Card:
    """What belongs to one claim, in a frame; links lead to its ``id``.

    Attributes:
        id: of the claim.
        verdict: on it.
        how: what kind of contradicted or inconclusive it is, if anything is to be said.
        title: the claim.
        blocks: the rest.
    """

    id: str
    verdict: Badge
    how: str
    title: Text
    blocks: Sequence[Block]
    kind: ClassVar[str] = "card"


@dataclass(frozen=True)
class Cell:
    """A claim in a :class:`Grid`."""

    claim: str
    verdict: Badge
    title: str
    target: str


@dataclass(frozen=True)
class Grid:
    """All claims of all papers as lettered cells: a row of cells for each paper, its link in front."""

    rows: Sequence[tuple[Link, Sequence[Cell]]]
    kind: ClassVar[str] = "grid"

    @property
    def widest(self) -> range:
        """A place for each cell of the longest row."""
        return range(max(len(cells) for _, cells in self.rows))


Block = Heading | Paragraph | Bullets | Table | CodeBlock | Figure | Explorer | Details | Card | Grid


def listed(names: Iterable[Sequence[Inline]]) -> list[Inline]:
    """Names with commas between them."""
    return [part for name in names for part in (", ", *name)][1:]


def parts(text: Text) -> tuple[Inline, ...]:
    """A text as its parts."""
    return text if isinstance(text, tuple) else (text,)


def plain_text(text: Text) -> str:
    """The words of a text without markup."""
    return "".join(part if isinstance(part, str) else part.text for part in parts(text))


def sentence(said: str) -> str:
    """A reason as a sentence of its own: a capital first, one full stop last."""
    return f"{said[:1].upper()}{said[1:].rstrip('. ')}."


def slug(title: str) -> str:
    """A title as part of a file name or an address: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


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
    """The mean over seeds, in brackets the lowest and the highest where there are several; None counts for nothing.

    At most ``digits`` follow the decimal point, and no more than show two digits of what the seeds differ by.
    """
    known = [value for value in values if value is not None]
    if not known:
        return plain(None, digits)
    if (spread := max(known) - min(known)) > 0.0:
        digits = min(digits, max(0, 1 - math.floor(math.log10(spread))))
    show = signed if sign else plain
    mean, *ends = (show(value, digits) for value in (statistics.fmean(known), min(known), max(known)))
    return f"{mean} [{f',{SPACE}'.join(ends)}]" if len(known) > 1 else mean


def typeset(number: str) -> str:
    """A formatted number with a true minus sign, and ×10¹⁸ in place of e+18."""
    mantissa, _, power = number.partition("e")
    if power:
        mantissa += f"×10{str(int(power)).translate(SUPERSCRIPT)}"
    return mantissa.replace("-", MINUS)


def hash_text(name: str) -> str:
    """A hash by its first letters; of a commit also what is said of it, as ``with uncommitted changes``."""
    digits, _, said = name.partition(" ")
    return f"{digits[:HASH_SHOWN]} {said}".strip()


def _form(value: float, digits: int) -> str:
    if digits and abs(value) >= 1e9:
        return f".{digits}e"
    return f".{digits if abs(value) < 1e5 else 0}f"
