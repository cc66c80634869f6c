"""Paragraph-aligned help pages: the same HTML files, with the same paragraph ids, in several languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, by_document, normalise
from shared.errors import ReplicationError

_BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6"}


class HtmlHelpOptions(Strict):
    """Options of the reader ``html_help``.

    Attributes:
        original: the language from which the others were translated.
    """

    original: str


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read the folders ``<language>/`` of HTML files into paragraphs keyed ``file#id``, split by file.

    A text that equals the original counts as untranslated and becomes "". A paragraph without a translation, or equal
    to an earlier paragraph in the same languages, is left out.

    Raises:
        ReplicationError: the options are wrong, a language has no folder, or a file is not UTF-8.
    """
    original = build(HtmlHelpOptions, options, where="options of the reader 'html_help'").original
    if original not in languages:
        raise ReplicationError(f"the reader 'html_help' needs the original language '{original}'.")
    for language in languages:
        if not (raw / language).is_dir():
            raise ReplicationError(f"the help pages of the language '{language}' are missing; fetch them anew.")
    return by_document(_paragraphs(raw, languages, languages.index(original)))


def _paragraphs(raw: Path, languages: Sequence[str], original: int) -> Iterator[tuple[str, Segment]]:
    seen: set[tuple[str, ...]] = set()
    root = raw / languages[original]
    for path in sorted(root.rglob("*.html")):
        name = path.relative_to(root).as_posix()
        pages = [parse(raw / language / name) for language in languages]
        for key, text in pages[original].items():
            source = normalise(text)
            texts = [page.get(key, "") for page in pages]
            kept = tuple(other if i == original or normalise(other) != source else "" for i, other in enumerate(texts))
            if any(c.isalpha() for c in source) and sum(map(bool, kept)) > 1 and kept not in seen:
                seen.add(kept)
                yield name, Segment(kept, key=f"{name}#{key}")


def parse(path: Path) -> dict[str, str]:
    """Return the paragraphs and headings of one page: id to text on one line; empty if the page does not exist.

    Where a page has alternatives (a key on the Mac and elsewhere, a menu in Writer and in Calc), the default is used,
    or the first one if there is no default.
    """
    if not path.is_file():
        return {}
    parser = _Page()
    try:
        parser.feed(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ReplicationError(f"{path} is not UTF-8 text ({error.reason}); fetch it anew.") from None
    parser.close()
    return parser.paragraphs


@dataclass
class _Frame:
    """An open paragraph or span: its text so far or, for a switch, its alternatives."""

    tag: str
    key: str
    is_switch: bool = False
    pieces: list[str] = field(default_factory=list)

    def text(self) -> str:
        return self.pieces[0] if self.is_switch and self.pieces else "".join(self.pieces)


class _Page(HTMLParser):
    """Collects paragraphs and headings with an id."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: dict[str, str] = {}
        self._open: list[_Frame] = []  # a paragraph, then its open spans

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        key = values.get("id") or ""
        if tag in _BLOCKS:
            self._open = [_Frame(tag, key)] if key.startswith(("par_id", "hd_id")) else []
        elif self._open and tag == "span":
            self._open.append(_Frame(tag, key, is_switch=values.get("class") == "switchinline"))
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        if not self._open:
            return
        if tag == "span" and len(self._open) > 1:
            self._close_span()
        elif tag == self._open[0].tag:
            while len(self._open) > 1:
                self._close_span()
            frame = self._open.pop()
            self.paragraphs.setdefault(frame.key, " ".join(frame.text().split()))

    def handle_data(self, data: str) -> None:
        # White space between the alternatives of a switch is only layout.
        if self._open and not self._open[-1].is_switch:
            self._open[-1].pieces.append(data)

    def _close_span(self) -> None:
        frame, parent = self._open.pop(), self._open[-1]
        if parent.is_switch and frame.key.startswith("default"):
            parent.pieces.insert(0, frame.text())  # the first alternative is used
        else:
            parent.pieces.append(frame.text())
