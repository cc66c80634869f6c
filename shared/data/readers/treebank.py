"""Constituency trees in the Penn Treebank's bracketed files, linearised for sequence models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from shared.config import Strict
from shared.data.opening import listed, read_text, reading
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

_TOKEN = re.compile(r"[()]|[^()\s]+")
_EMPTY = "-NONE-"  # the tag of a trace
_ROOTS = {"", "TOP", "ROOT", "S1"}  # labels of the root, which is not a constituent
Tree: TypeAlias = "list[str | Tree]"
"""Label and children, or tag and word; the root of a sentence may lack the label."""


class TreebankOptions(Strict):
    """Options of the reader ``treebank``.

    Attributes:
        folder: the raw folder; it has a subfolder of ``.mrg`` files per section.
        sections: split name to its sections in order.
    """

    folder: str
    sections: dict[str, tuple[str, ...]] = Field(min_length=1)


def read_treebank(raw: Path, languages: Sequence[str], options: TreebankOptions) -> Corpus:
    """Constituency trees in the Penn Treebank's bracketed files, linearised as :func:`linearise` says.

    Sentences are keyed ``section/file:number``.

    Raises:
        ReplicationError: while reading: a section has no ``.mrg`` file, or the brackets of a file do not match.
    """
    return {split: _segments(raw / options.folder, sections) for split, sections in options.sections.items()}


def _segments(folder: Path, sections: Sequence[str]) -> Iterator[Segment]:
    for section in sections:
        paths = [path for path in listed(folder / section) if path.suffix.lower() == ".mrg"]
        if not paths:
            raise ReplicationError(f"{folder.name}/{section} holds no .mrg file; give the whole treebank.")
        for path in paths:
            with reading(name := f"{folder.name}/{section}/{path.name}"):
                for number, tree in enumerate(parse(read_text(path, name))):
                    words, symbols = linearise(tree)
                    yield Segment((" ".join(words), " ".join(symbols)), key=f"{section}/{path.name}:{number}")


def parse(text: str) -> Iterator[Tree]:
    """Yield the trees of a text.

    Raises:
        ValueError: the brackets do not match, or there is text outside of the trees; names the line.
    """
    opened: list[Tree] = []
    begin = 0
    for found in _TOKEN.finditer(text):
        token, inside = found[0], opened[-1] if opened else []
        tagged = len(inside) == 2 and isinstance(inside[1], str)
        if token == "(" and not tagged:
            begin = begin if opened else found.start()
            opened.append([])
        elif token == ")" and (inside or len(opened) == 1):
            if len(opened) == 1:
                yield opened.pop()
            else:
                opened[-2].append(opened.pop())
        elif token not in "()" and (inside == [] or (len(inside) == 1 and isinstance(inside[0], str))) and opened:
            inside.append(token)  # a label, or the word behind a tag
        else:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"'{token}' in line {line} stands outside of the trees, or is a word without a tag")
    if opened:
        line = text.count("\n", 0, begin) + 1
        raise ValueError(f"the tree that begins in line {line} is not closed")


def linearise(tree: Tree) -> tuple[list[str], list[str]]:
    """Return the words of a tree, and its symbols in the form of Vinyals et al. (2015): ``(NP XX )NP``.

    Traces are left out, and then constituents without words. A label is reduced to its category: ``NP-SBJ-1`` to
    ``NP``, ``PRT|ADVP`` to ``PRT``. All tags, including those of punctuation, become ``XX``. The root is left out.
    """
    match tree:
        case [str(tag), str(word)]:
            return ([], []) if tag == _EMPTY else ([word], ["XX"])
        case [str(label), *children]:
            pass
        case children:
            label = ""
    words: list[str] = []
    symbols: list[str] = []
    for child in children:
        if isinstance(child, str):
            raise ValueError(f"the word '{child}' has no tag")
        more_words, more_symbols = linearise(child)
        words += more_words
        symbols += more_symbols
    category = re.split("[-=|]", label)[0]
    if not words or category in _ROOTS:
        return words, symbols
    return words, [f"({category}", *symbols, f"){category}"]
