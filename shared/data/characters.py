"""Characters of other people's texts: in a normal form of Unicode, and as a terminal may be shown them."""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import Literal

# Python sorts the marks of a letter by insertion: 200,000 of them in an hour. So many signs in a row are sorted before.
_MANY = 1_000
_SIGNS = re.compile(rf"[^\w\s]{{{_MANY},}}")


def composed(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    """A text in a normal form of Unicode, in a time that grows with its length, however many marks a letter has."""
    return unicodedata.normalize(form, text if len(text) < _MANY else _SIGNS.sub(_in_order, text))


def _in_order(signs: re.Match[str]) -> str:
    """The same signs, the marks between two others sorted as they will be."""
    single = (part for sign in signs[0] for part in unicodedata.normalize("NFD", sign))
    runs = itertools.groupby(single, lambda sign: unicodedata.combining(sign) > 0)
    return "".join("".join(sorted(run, key=unicodedata.combining)) for _, run in runs)


def visible(text: str) -> str:
    """A text as it is, but for what cannot be seen or a terminal would obey, which is as Python writes it."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
