"""Constituency trees in the Penn Treebank's bracketed files, linearised for sequence models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import Field

from shared.config import Strict, build
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


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read sentences keyed ``section/file:number`` and their trees, as `linearise` writes them.

    Raises:
        ReplicationError: the languages or options are wrong; while reading: a section has no ``.mrg`` file, or the
            brackets of a file do not match.
    """
    if list(languages) != ["words", "tree"]:
        raise ReplicationError("the reader 'treebank' has the languages words and tree, in this order.")
    chosen = build(TreebankOptions, options, where="options of the reader 'treebank'")
    return {split: _segments(raw / chosen.folder, sections) for split, sections in chosen.sections.items()}


def _segments(folder: Path, sections: Sequence[str]) -> Iterator[Segment]:
    for section in sections:
        paths = sorted(path for path in (folder / section).glob("*") if path.suffix.lower() == ".mrg")
        if not paths:
            raise ReplicationError(f"{folder.name}/{section} holds no .mrg file; give the whole treebank.")
        for path in paths:
            try:
                for number, tree in enumerate(parse(path.read_text(encoding="utf-8"))):
                    words, symbols = linearise(tree)
                    yield Segment((" ".join(words), " ".join(symbols)), key=f"{section}/{path.name}:{number}")
            except ValueError as error:
                raise ReplicationError(f"{folder.name}/{section}/{path.name}: {error}.") from None


def parse(text: str) -> Iterator[Tree]:
    """Yield the trees of a text.

    Raises:
        ValueError: the brackets do not match, or there is text outside of the trees.
    """
    opened: list[Tree] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            opened.append([])
        elif not opened:
            raise ValueError(f"'{token}' stands outside of the trees")
        elif token != ")":
            opened[-1].append(token)
        elif len(opened) == 1:
            yield opened.pop()
        else:
            opened[-2].append(opened.pop())
    if opened:
        raise ValueError("the last tree is not closed")


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
