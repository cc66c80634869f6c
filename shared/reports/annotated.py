"""The page of a paper's model: the code that trains, and beside each part its docstring with the equations typeset.

Docstrings write mathematics in one line of Unicode: ``softmax(Q Kᵀ / √d_k) V``, ``α_ij``, ``s_{i-1}``. It becomes
MathML, which browsers typeset themselves. Only what has one reading is changed: letters with what stands below, above
and over them, roots, quotients of one factor. No symbol is added or lost, and words of the language stay words.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from shared.reports import document as doc
from shared.reports.document import link

NAME = "model.html"
LETTERS = re.compile(r"(?:Shape letters|Shapes): (.*?)(?:\n\n|\Z)", re.DOTALL)
BEGINNING = "Imports and names"
SHAPE = re.compile(r"\((?=[^()]*[A-Z…])(?:…|[A-Za-z0-9·+ ′-]{1,9})(?:, (?:…|[A-Za-z0-9·+ ′-]{1,9}))*,?\)")
MARKUP = re.compile(r"``(?P<code>[^`]+)``|:\w+:`~?(?:[\w ]+<)?(?P<role>[\w.]+)>?`")
SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Shape):\s*$", re.MULTILINE)
FUNCTIONS = {
    *("softmax", "tanh", "sigmoid", "exp", "log", "max", "min", "sin", "cos", "diag", "elu", "relu", "ReLU", "Concat"),
    *("LayerNorm", "Dropout", "Sublayer", "Attention", "FFN", "MultiHead", "head", "align", "score", "std", "sign"),
    *("LSTM", "Re", "arg", "det", "mod", "PE"),
}  # fmt: skip
ABOVE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᴼᴴᴷⱽ", "0123456789+−TOHKV")
SCRIPT = r"(?:[_^](?:\{[^}]*\}|[A-Za-z0-9α-ωΑ-Ω]+))"
OVER = "\u0302\u0303\u0304→←"  # hat, tilde and bar that combine, and arrows that touch their letter
MARKS = f"[{''.join(map(chr, (0x2032, *ABOVE)))}]"
ATOM = rf"(?:head(?=_)|[A-Za-zα-ωΑ-Ωℓ])[{OVER}]?(?:(?:{SCRIPT}|{MARKS})+|(?![A-Za-z]))"
WORDS = (
    r"[A-Z]\.\d[\d.]*",  # of an appendix
    r"[A-Za-z][A-Za-z'’]*(?:-[A-Za-z]+)+",
    r"(?!head_)[A-Za-z]{2}\w*_\w+|(?!d_model)[A-Za-z]_[a-z]{3}\w*",  # names of Python
    r"[A-Za-z'’]{2,}+(?![_^])",
)
TOKEN = re.compile(
    rf"(?P<word>{'|'.join(WORDS)})|(?P<atom>{ATOM})|(?P<mark>{MARKS}+)|(?P<number>\d+(?:,\d{{3}})*(?:\.\d+)*)"
    r"|(?P<open>[(\[])|(?P<close>[)\]])|(?P<operator>[=+\-−·∘√Σ∑Π∏∝∈≤≥<>~‖|…±×/∂∇≈⊙])|(?P<pause>[,;])|(?P<space>\s+)"
    r"|(?P<other>.)"
)
STRONG = set("=√Σ∑Π∏∘∝∈≤≥‖±×≈⊙")


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
        return f'<abbr tabindex="0" title="{escape("; ".join(used))}">{match[0]}</abbr>' if used else match[0]

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
            done += _explained(escape(match[0]), letters)
        else:
            name = match["code"] or match["role"].rpartition(".")[2]
            done += f"<code>{escape(name)}</code>"
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


class Token(NamedTuple):
    """A piece of a text: what it is, and its letters."""

    kind: str
    text: str

    @property
    def is_strong(self) -> bool:
        """Whether it makes what stands around it mathematics."""
        if self.kind == "atom":
            return len(self.text) > 1 or "α" <= self.text <= "ω"
        return self.kind == "function" or self.text in STRONG


def with_mathematics(text: str) -> str:
    """A plain text as HTML, with MathML in place of its mathematics."""
    tokens = [Token(match.lastgroup or "", match.group()) for match in TOKEN.finditer(_decomposed(text))]
    tokens = [
        Token("function", each.text) if each.text in FUNCTIONS and after.kind == "open" else each
        for each, after in pairwise([*tokens, Token("end", "")])
    ]
    tokens = [Token("name", each.text) if each == ("word", "std") else each for each in tokens]
    html, plain, at = "", "", 0
    while at < len(tokens):
        end = _end_of_run(tokens, at)
        run = tokens[at:end]
        if any(each.is_strong for each in run):
            formula, _ = _row([each for each in run if each.kind != "space"], 0)
            html, plain = f"{html}{escape(plain)}<math>{formula}</math>", ""
        else:
            end = max(end, at + 1)
            plain += "".join(each.text for each in tokens[at:end])
        at = end
    return html + escape(plain)


def _end_of_run(tokens: Sequence[Token], start: int) -> int:
    """Where the longest part from ``start`` ends that may be one formula: balanced, without words or pauses outside."""
    depth, end, norms = 0, start, 0
    first = tokens[start]
    if first.kind not in ("atom", "number", "function", "open") and first.text not in ("√", "Σ", "∑", "‖", "±", "−"):
        return start
    for place in range(start, len(tokens)):
        kind, text = tokens[place]
        if kind in ("word", "other") or (kind == "pause" and not depth) or (text == "a" and not depth):
            break
        depth += (kind == "open") - (kind == "close")
        if text == "‖":
            depth, norms = depth + 1 - 2 * (norms % 2), norms + 1
        if depth < 0:
            break
        ends_well = kind in ("atom", "number", "close", "mark") or text == "‖"
        if not depth and ends_well:
            end = place + 1
    return end


def _row(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The formula up to a closing bracket or the end, and where it ends."""
    parts: list[str] = []
    product = 0  # where in ``parts`` the factors began that a quotient would have above its line
    while at < len(tokens) and tokens[at].kind != "close":
        text = tokens[at].text
        if text == "/" and len(parts) > product and _is_last_factor(tokens, at + 1):
            below, at = _factor(tokens, at + 1)
            parts[product:] = [f"<mfrac><mrow>{''.join(parts[product:])}</mrow>{below}</mfrac>"]
            continue
        part, at = _factor(tokens, at)
        if at < len(tokens) and tokens[at].kind == "mark":  # over a bracket, as in (K′)ᵀ
            part, at = f"<msup>{part}<mrow>{_marks(tokens[at].text)}</mrow></msup>", at + 1
        parts.append(part)
        if text in "=+-−∝∈≤≥,;<>~≈/" or text in "Σ∑Π∏":
            product = len(parts)
    return "".join(parts), at


def _is_last_factor(tokens: Sequence[Token], at: int) -> bool:
    """Whether no further factor follows the one at ``at``: else it would be unclear what stands below the line."""
    if at >= len(tokens):
        return False
    at += tokens[at].text == "√"
    if at >= len(tokens) or tokens[at].kind not in ("atom", "number"):
        return False
    return at + 1 == len(tokens) or tokens[at + 1].kind in ("close", "pause") or tokens[at + 1].text in "=+-−"


def _factor(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """One letter, number, operator or bracket with its content, and where it ends."""
    kind, text = tokens[at]
    if text == "√" and at + 1 < len(tokens):
        inside, at = _factor(tokens, at + 1)
        return f"<msqrt>{inside}</msqrt>", at
    if kind == "open":
        inside, at = _row(tokens, at + 1)
        closing = tokens[at].text if at < len(tokens) else ""
        group = f"<mrow><mo>{text}</mo>{inside}<mo>{closing}</mo></mrow>"
        return group, at + 1
    if kind == "number":
        return f"<mn>{text}</mn>", at + 1
    if kind in ("function", "name"):
        return _letters(text), at + 1
    if kind == "atom":
        return _atom(text), at + 1
    return f"<mo>{escape(text.replace('-', '−'))}</mo>", at + 1


def _atom(text: str) -> str:
    """A letter with what stands over, below and above it."""
    base = "head" if text.startswith("head") else text[0]
    rest, shown = text[len(base) :], _letters(base)
    if rest and rest[0] in OVER:
        over = {"\u0302": "^", "\u0303": "~", "\u0304": "¯"}.get(rest[0], rest[0])
        rest, shown = rest[1:], f"<mover>{shown}<mo>{over}</mo></mover>"
    shown += "<mo>′</mo>" * rest.count("′")  # which is raised by itself
    below, above, rest = "", "", rest.replace("′", "")
    for mark in re.findall(rf"{SCRIPT}|.", rest):
        if mark[0] == "_":
            below += _script(mark[1:].strip("{}"))
        else:
            above += _script(mark[1:].strip("{}")) if mark[0] == "^" else _marks(mark)
    if "′" in text and (below or above):
        shown = f"<mrow>{shown}</mrow>"
    if below and above:
        return f"<msubsup>{shown}<mrow>{below}</mrow><mrow>{above}</mrow></msubsup>"
    if below or above:
        return f"<m{'sub' if below else 'sup'}>{shown}<mrow>{below or above}</mrow></m{'sub' if below else 'sup'}>"
    return shown


def _marks(text: str) -> str:
    return "".join("<mo>′</mo>" if mark == "′" else _script(mark.translate(ABOVE)) for mark in text)


def _script(text: str) -> str:
    """What stands below or above a letter: letters, numbers, signs; words are upright."""
    if " " in text:
        return f"<mtext>{text.replace(' ', chr(160))}</mtext>"
    if (text.isalpha() and len(text) > 2) or text == "ff":
        return f'<mi mathvariant="normal">{text}</mi>'
    return "".join(_sign(sign) for sign in re.findall(r"\d+|[^\W\d_]|\S", text.replace("-", "−")))


def _sign(text: str) -> str:
    return f"<mn>{text}</mn>" if text.isdigit() else _letters(text) if text.isalpha() else f"<mo>{text}</mo>"


def _decomposed(text: str) -> str:
    """Letters with a mark over them as letter and mark."""
    return "".join(both if (both := unicodedata.normalize("NFD", c))[1:] in OVER else c for c in text)


def _letters(letters: str) -> str:
    upright = ' mathvariant="normal"' if len(letters) > 1 else ""
    return f"<mi{upright}>{letters}</mi>"
