"""The page of a paper's model: the code that trains, and beside each part its docstring with the equations typeset."""

from __future__ import annotations

import ast
import html
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from shared.reports import document as doc
from shared.reports.document import link
from shared.reports.mathematics import with_mathematics

NAME = "model.html"
LETTERS = re.compile(r"(?:Shape letters|Shapes): (.*?)(?:\n\n|\Z)", re.DOTALL)
BEGINNING = "Imports and names"
SHAPE = re.compile(r"\((?=[^()]*[A-Z…])(?:…|[A-Za-z0-9·+ ′-]{1,9})(?:, (?:…|[A-Za-z0-9·+ ′-]{1,9}))*,?\)")
MARKUP = re.compile(r"``(?P<code>[^`]+)``|:\w+:`~?(?:[\w ]+<)?(?P<role>[\w.]+)>?`")
SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Shape):\s*$", re.MULTILINE)


def model_page(
    source: Path, tests: Path, claims: Mapping[str, Sequence[tuple[str, str]]], base: Path
) -> list[doc.Block]:
    """The blocks of the page of a ``model.py``.

    Args:
        source: the file.
        tests: the folder of tests, which are searched for the names that the file defines.
        claims: name of a part to the claims that are about it, each in words and its address.
        base: the folder of the page.
    """
    text = source.read_text(encoding="utf-8")
    tree = ast.parse(text)
    summary, *about = (ast.get_docstring(tree) or "").split("\n\n")
    letters = letters_of_shapes("\n\n".join(about))
    whole = _prose("\n\n".join(part for part in about if not LETTERS.match(part)), letters)
    symbols = "".join(f"<dt>{letter}</dt><dd>{_words(said, {})}</dd>" for letter, said in letters.items())
    coloured = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).split("\n")
    found, parts = users_of(source, tests), list[doc.Block]()
    for piece in pieces(tree, len(text.splitlines())):
        prose = f"{whole}<dl>{symbols}</dl>" if piece.name == BEGINNING else _prose(piece.docstring, letters)
        led = [(f"{path.name}, {case}", doc.relative(path, base)) for path, case in found.get(piece.name, ())]
        code = _code(coloured, piece, letters)
        parts.append(doc.Part(piece.name, Markup(prose), code, claims.get(piece.name, ()), led))
    said = f"The model that trains: {link('model.py', doc.relative(source, base))}, from top to bottom."
    more = "A shape such as (B, D) says what its letters count when it is pointed at."
    title = " ".join(summary.split()).split(" (")[0]
    return [doc.Heading(title, level=1), doc.Paragraph(f"{said} {more}"), *parts]


def letters_of_shapes(text: str) -> dict[str, str]:
    """Letter to what it counts, from the paragraph on shapes of a module's docstring."""
    if (found := LETTERS.search(text)) is None:
        return {}
    listed = re.split(r", (?=[A-Za-z] [^(])", " ".join(found[1].split()).rstrip("."))
    return {each[0]: each[2:] for each in listed if each[1:2] == " "}


class Piece(NamedTuple):
    """A part of a file: what it is called, its docstring, its lines from 1, and which of them the docstring takes."""

    name: str
    docstring: str
    first: int
    last: int
    hidden: range


def pieces(tree: ast.Module, lines: int) -> list[Piece]:
    """The functions and classes of a module, methods apart, and what stands before, between and after them."""
    named: list[tuple[str, ast.FunctionDef | ast.ClassDef]] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            named.append((node.name, node))
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            if methods and methods[0].name == "__init__" and not ast.get_docstring(methods[0]):
                del methods[0]  # it stands with its class, which says what the arguments are
            named += [(f"{node.name}.{each.name}", each) for each in methods]
    body = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    found, end = list[Piece](), lines
    for name, of in reversed(named):
        text, begin = ast.get_docstring(of) or "", min([of.lineno, *(each.lineno for each in of.decorator_list)])
        hidden = range(of.body[0].lineno, (of.body[0].end_lineno or 0) + 1) if text else range(0)
        found.insert(0, Piece(name, text, begin, end, hidden))
        end = begin - 1
    return [Piece(BEGINNING, "", body[0].lineno if body else 1, end, range(0)), *found]


def _code(lines: Sequence[str], piece: Piece, letters: Mapping[str, str]) -> list[tuple[int, Markup]]:
    """Those of a file's coloured lines that are a part's, with their numbers; its docstring stands beside them."""
    shown = [number for number in range(piece.first, piece.last + 1) if number not in piece.hidden]
    while shown and not lines[shown[-1] - 1].strip():
        shown.pop()
    return [(number, Markup(_explained(lines[number - 1], letters))) for number in shown]


def _explained(text: str, letters: Mapping[str, str]) -> str:
    """HTML whose shapes say on hover what their letters count."""

    def shape(match: re.Match[str]) -> str:
        used = [f"{letter}: {letters[letter]}" for letter in dict.fromkeys(match[0]) if letter in letters]
        return f'<abbr tabindex="0" title="{html.escape("; ".join(used))}">{match[0]}</abbr>' if used else match[0]

    comment = re.compile(r'<span class="c1">.*?</span>')
    return comment.sub(lambda match: SHAPE.sub(shape, match[0]), text) if "<span" in text else SHAPE.sub(shape, text)


def _prose(docstring: str, letters: Mapping[str, str]) -> str:
    """A docstring as HTML: paragraphs, and what it says of arguments and results as lists."""
    words = partial(_words, letters=letters)
    parts = SECTION.split(docstring)
    shown = "".join(f"<p>{words(part)}</p>" for part in parts[0].split("\n\n") if part.strip())
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries = re.split(r"\n(?=\S)", "\n".join(line[4:] for line in body.strip("\n").split("\n")))
        items = []
        for entry in entries:
            name, colon, said = entry.partition(": ")
            named = colon and title != "Returns" and re.fullmatch(r"[\w, *]+", name)
            items.append(f"<li><code>{name}</code>: {words(said)}</li>" if named else f"<li>{words(entry)}</li>")
        shown += f"<p>{title}:</p><ul>{''.join(items)}</ul>"
    return shown


def _words(text: str, letters: Mapping[str, str]) -> str:
    """A text of a docstring with its code, names of other parts, shapes and mathematics."""
    text, done = " ".join(text.split()), ""
    kept = re.compile(f"{MARKUP.pattern}|(?P<shape>{SHAPE.pattern})")
    at = 0
    for match in kept.finditer(text):
        done += with_mathematics(text[at : match.start()])
        at = match.end()
        if match["shape"] and not any(letter in letters for letter in match[0]):
            at = match.start() + 1
            done += "("
        elif match["shape"]:
            done += _explained(html.escape(match[0]), letters)
        else:
            name = match["code"] or match["role"].rpartition(".")[2]
            done += f"<code>{html.escape(name)}</code>"
    return done + with_mathematics(text[at:])


def users_of(source: Path, tests: Path) -> dict[str, list[tuple[Path, str]]]:
    """Name that a module defines to the tests that use it: their file, and the first function there."""
    module = ".".join(source.with_suffix("").parts[-3:])
    found: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if module not in text:
            continue
        tree = ast.parse(text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module]
        for name in [each.name for node in imports for each in node.names]:
            functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
            users = [each for each in functions if name in {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}]
            if cases := [each for each in users if each.name.startswith("test_")] or users:
                found[name].append((path, f"line {cases[0].lineno}: {cases[0].name}"))
    return found
