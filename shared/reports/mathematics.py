"""Equations in docstrings as MathML, which browsers typeset themselves.

Docstrings write mathematics in one line of Unicode: ``softmax(Q Kᵀ / √d_k) V``, ``α_ij``, ``s_{i-1}``. Only what has
one reading is changed: letters with what stands below, above and over them, roots, quotients of one factor. No
symbol is added or lost, and words of the language stay words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

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
