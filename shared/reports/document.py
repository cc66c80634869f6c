"""A document as plain data, which page.py writes as Markdown and as HTML; and how numbers are written."""

from __future__ import annotations

import math
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
SPREAD = "mean over seeds, lowest to highest seed shaded."  # what the captions of most curves say
SYMBOLS = {
    "reproduced": "✔", "in part": "◐", "mixed": "±", "contradicted": "✘", "inconclusive": "?", "verified": "✔",
    "refuted": "✘", "not tested": "–",
}  # fmt: skip
HASH_SHOWN = 12
TELLING = 40  # letters that a picture's description has at least, where its caption has as many
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Words with a mark are a text like any other: "\uFDD0<mark>\uFDD1<target>\uFDD1<words>\uFDD2". Unicode keeps these
# codes for such internal use, so no words of data can be taken for marks, and none has to be escaped before it is
# written.
MARKED = re.compile("\ufdd0(\\w+)\ufdd1([^\ufdd1]*)\ufdd1([^\ufdd2]*)\ufdd2")
Text = str
"""Words of a page, some of them marked."""


def strong(words: str) -> str:
    """Emphasised words."""
    return f"\ufdd0strong\ufdd1\ufdd1{words}\ufdd2"


def code(words: str) -> str:
    """A name or command inside a sentence."""
    return f"\ufdd0code\ufdd1\ufdd1{words}\ufdd2"


def badge(verdict: str) -> str:
    """A verdict."""
    return f"\ufdd0badge\ufdd1\ufdd1{verdict}\ufdd2"


def link(words: str, target: str) -> str:
    """Words that lead to ``target``."""
    return f"\ufdd0link\ufdd1{target}\ufdd1{words}\ufdd2"


def parts(text: Text) -> list[tuple[str, str, str]]:
    """A text as mark, target and words of each of its parts; plain words have no mark."""
    plain, *rest = MARKED.split(text)
    found = [("", "", plain)]
    for place in range(0, len(rest), 4):
        mark, target, words, after = rest[place : place + 4]
        found += [(mark, target, words), ("", "", after)]
    return found


def plain_text(text: Text) -> str:
    """The words of a text without marks."""
    return MARKED.sub(r"\3", text)


@dataclass(frozen=True)
class Heading:
    """A section's title; level 1 is the page's, and sections of level 2 are in its contents."""

    text: Text
    level: int = 2

    @property
    def id(self) -> str:
        """What links lead to: its words, with hyphens."""
        return slug(plain_text(self.text))


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: Text


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Table:
    """A table, whose rows are cards on a narrow screen: its cells stand below each other there.

    Attributes:
        columns: their heads.
        rows: cells.
        align: one letter per column: l left, r right, t for running text (left, kept wide); by default the first
            column is left and the others right.
        filters: columns by whose first words a reader can choose rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Text]]
    align: str = ""
    filters: Sequence[str] = ()

    @property
    def letters(self) -> str:
        """The letter of every column."""
        return self.align or "l".ljust(len(self.columns), "r")


@dataclass(frozen=True)
class CodeBlock:
    """Commands to copy."""

    text: str


@dataclass(frozen=True)
class Figure:
    """A picture already drawn to ``path``.

    Attributes:
        path: of the PNG.
        caption: what stands below it.
        alt: what is seen, for who cannot see it; without one how the caption begins.
    """

    path: Path
    caption: str
    alt: str = ""

    @property
    def seen(self) -> str:
        """What stands in place of the picture."""
        first, *more = re.split(r"(?<=[.;])\s", self.caption)
        while more and len(first) < TELLING:
            first = f"{first} {more.pop(0)}"
        return self.alt or first.rstrip(".;")

    @property
    def finding(self) -> str:
        """What the numbers in the picture come to: sentences, a space after each; nothing where the caption says it."""
        return ""


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

    @property
    def finding(self) -> str:
        """How much of the weight lies on marked words; where none is marked, the word with the most of each text."""
        shares = [sum(of.shades[at] for at in of.marked) / (sum(of.shades) or 1.0) for of in self.lines if of.marked]
        if shares:
            return f"On the mean {100 * statistics.fmean(shares):.0f} % of the weight lies on the underlined words. "
        most = dict.fromkeys(line.words[line.shades.index(max(line.shades))] for line in self.lines)
        return f"Most weight has {', '.join(f'“{word}”' for word in most)}. "


@dataclass(frozen=True)
class Explorer:
    """What a reader explores with the page's script; Markdown leads to it.

    Attributes:
        data: for the script.
        pictures: which it shows.
        first: picture of a figure of the page that leads to it, to the place of the first of the figure's maps in it.
    """

    data: Mapping[str, Any]
    pictures: Sequence[Path] = ()
    first: Mapping[Path, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Details:
    """What is folded away below a line of words until a reader asks for it.

    Attributes:
        summary: the line of words.
        blocks: what is folded away.
        section: whether the line is the title of a section of the page, which its contents lead to.
    """

    summary: str
    blocks: Sequence[Block]
    section: bool = False

    @property
    def id(self) -> str:
        """What links to a section lead to."""
        return slug(self.summary)


@dataclass(frozen=True)
class Columns:
    """What stands side by side where there is room, and below each other on a phone.

    Attributes:
        parts: the title of each column, "" for none, and what stands in it.
        first: how many times as wide as each other column the first one is.
    """

    parts: Sequence[tuple[Text, Sequence[Block]]]
    first: float = 1.0


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
    verdict: str
    how: str
    title: Text
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Part:
    """A part of a program beside what it says of itself; HTML alone shows it, as a code host shows the program itself.

    Attributes:
        name: of the function or class.
        prose: its docstring as HTML.
        code: its lines as HTML, each with its number.
        claims, tests: what it leads to: words and address.
    """

    name: str
    prose: str
    code: Sequence[tuple[int, str]]
    claims: Sequence[tuple[str, str]] = ()
    tests: Sequence[tuple[str, str]] = ()

    @property
    def id(self) -> str:
        """What links lead to."""
        return self.name.replace(" ", "-")


Box = tuple[float, float, float, float, Sequence[tuple[float, str]], bool]
"""Middle, top, width, height; its lines of words, each below its y, none of a free place; and whether it is new."""


@dataclass(frozen=True)
class Drawing:
    """Boxes and arrows in the colours of the page, which HTML alone shows; in pixels of a phone.

    Attributes:
        size: width and height.
        boxes: as :data:`Box`.
        arrows: x and y of where each begins, and of where it ends.
        label: what is seen.
    """

    size: tuple[float, float]
    boxes: Sequence[Box]
    arrows: Sequence[tuple[float, float, float, float]]
    label: str


@dataclass(frozen=True)
class Tile:
    """A claim in :class:`Grid`, in words, and its verdict; it leads to its card."""

    claim: str
    verdict: str
    words: str
    target: str


@dataclass(frozen=True)
class GridRow:
    """A paper: what it is cited as, its title, a sentence on it, its page, and its claims."""

    short: str
    title: str
    said: str
    target: str
    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Grid:
    """All papers with all of their claims."""

    rows: Sequence[GridRow]


Block = (
    Heading | Paragraph | Bullets | Table | CodeBlock | Figure | Explorer | Details | Columns | Card | Drawing
    | Part | Grid
)  # fmt: skip


def table_of(*columns: tuple[str, str, Sequence[Text]]) -> Table:
    """A table by its columns: of each the head, the letter of its alignment, and the cells."""
    heads, letters, cells = zip(*columns, strict=True)
    return Table(heads, [*zip(*cells, strict=True)], "".join(letters))


def relative(path: Path, base: Path) -> str:
    """A path as a link from a page in the folder ``base`` has it."""
    return Path(os.path.relpath(path, base)).as_posix()


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


def _form(value: float, digits: int) -> str:
    if digits and abs(value) >= 1e9:
        return f".{digits}e"
    return f".{digits if abs(value) < 1e5 else 0}f"


def number(value: float | None) -> str:
    """Format a number that is not a registered measure: counts below 10⁹ in full, others to four digits, below 1 or
    with a power of ten to three.
    """
    if value and not 1e-4 <= abs(value) < 1e9:
        return typeset(f"{value:.2e}")
    if not value or float(value).is_integer():
        return plain(value, 0)
    magnitude = math.floor(math.log10(abs(value)))
    return plain(value, max(0, 3 - magnitude) if magnitude >= 0 else 2 - magnitude)


def extremes(what: str, values: Mapping[str, float]) -> str:
    """Which of the values is the lowest and which the highest, a sentence with a space after it; empty without any."""
    ordered = [(name, number(value)) for name, value in sorted(values.items(), key=lambda item: item[1])]
    if len({shown for _, shown in ordered}) < 2:
        return f"{what}: {ordered[0][1]}{' for all' * (len(ordered) > 1)}. " if ordered else ""
    (low, least), *_, (high, most) = ordered
    return f"{what}: lowest for {low} ({least}), highest for {high} ({most}). "


def with_ends(shown: str, ends: Iterable[str]) -> str:
    """A number, and in brackets the ends of its interval or range."""
    return f"{shown} [{f',{SPACE}'.join(ends)}]"


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
    return with_ends(mean, ends) if len(known) > 1 else mean


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
