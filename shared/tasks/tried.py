"""What a trained model makes of one input that a reader gives it, whatever the kind of task; to be shown.

The function ``try_input`` of each kind's ``trial.py`` makes it. Only the command ``try`` uses these modules, so no
change of them touches what is trained, judged or reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shared.claims.words import number_of
from shared.config import MOST_SHOWN
from shared.data.tokenizers import EOS, SPECIAL, UNK, Tokenizer
from shared.errors import ReplicationError

Floats = NDArray[np.float64]
Pixels = NDArray[np.uint8]
Layout = Literal["matrix", "text", "map"]
"""How weights are shown: a cell for each pair; the words that are looked at, shaded; a map of the places of a picture
for each word."""
NO_ATTENTION = "The model gives no weights of attention to show."
UNSEEN = (185, 203, 224)
"""The colour of pixels that are not given; no shade of grey."""
TEST = "test:"
"""What stands before the number of a test picture, where a picture is asked for."""


@dataclass(frozen=True)
class Weights:
    """How much each of R outputs has looked at each of C inputs.

    Attributes:
        caption: what looks at what, a sentence.
        rows: (R,) names of what looks.
        columns: (C,) names of what is looked at; empty for places of a picture.
        values: (R, C) weights from 0 to 1.
        layout: see :data:`Layout`.
        grid: rows and columns of the places of a picture; None for words.
        picture: (H, W, 3) what is looked at, if it is a picture.
        choices: by what a page lets its reader choose them, such as ``Head`` to ``2``; those of one layer or head are
            shown there alone.
    """

    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Floats
    layout: Layout
    grid: tuple[int, int] | None = None
    picture: Pixels | None = None
    choices: Mapping[str, str] = field(default_factory=dict)

    def shades(self) -> Floats:
        """(R, C) from 0 to 1, the largest weight of every row."""
        largest = self.values.max(axis=1, keepdims=True, initial=0.0)
        return self.values / np.where(largest > 0.0, largest, 1.0)

    def strongest(self, row: int, count: int) -> str:
        """The inputs with the largest weights of a row: ``word 62 %, other 20 %``."""
        order = np.argsort(-self.values[row], kind="stable")[:count]
        return ", ".join(f"{self.columns[i]} {self.values[row, i]:.0%}".replace("%", " %") for i in order)


@dataclass(frozen=True)
class Tried:
    """What came of one input.

    Attributes:
        input: the text that was read, or what the picture is.
        output: what the model says.
        weights: where it looked; none if it gives none.
        shares: classes or symbols with their probabilities, the largest first.
        pictures: what was read and drawn, by title: (H, W, 3) RGB.
        lines: further sentences, such as how the answer was searched for.
    """

    input: str
    output: str
    weights: Sequence[Weights] = ()
    shares: Sequence[tuple[str, float]] = ()
    pictures: Mapping[str, Pixels] = field(default_factory=dict)
    lines: Sequence[str] = ()


def not_empty(asked: str, expected: str) -> str:
    """The input without the white space around it.

    Args:
        asked: the input.
        expected: what an input is, as a clause after "give".

    Raises:
        ReplicationError: nothing is left, or the command line had bytes that are not UTF-8.
    """
    text = asked.strip()
    if not text or text != text.encode(errors="ignore").decode():
        raise ReplicationError(f"the input is {'not UTF-8 text' if text else 'empty'}; give {expected}.")
    return text


def quoted(text: str) -> str:
    """An input as an error shows it: on one line, and only the begin of a long one."""
    return repr(text) if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]!r}…"


def unknown_words(symbols: Sequence[int], names: Sequence[str], like: str) -> list[str]:
    """A sentence on the words that the vocabulary does not know, if there are any.

    Args:
        symbols: of the input.
        names: what each symbol is of.
        like: an input that the model knows, for the error.

    Raises:
        ReplicationError: all of them are unknown.
    """
    unknown = [name for name, symbol in zip(names, symbols, strict=True) if symbol == UNK]
    if len(unknown) == len(symbols):
        raise ReplicationError(
            f"the model's vocabulary knows no word of the input; the words of its task are those of '{like}'."
        )
    if not unknown:
        return []
    are, of = "is" if len(unknown) == 1 else "are", number_of(len(symbols), "word")
    named = ", ".join(dict.fromkeys(unknown))
    return [f"{len(unknown)} of {of} {are} unknown to the model and read as {SPECIAL[UNK]}: {named}."]


def not_longer(length: int, longest: int, what: str) -> None:
    """Refuse an input that is longer than all texts of the task.

    Raises:
        ReplicationError: says both lengths, in symbols.
    """
    if length > longest:
        raise ReplicationError(
            f"the input has {number_of(length, 'symbol')}, but {what} of the task has {longest}; give a shorter input."
        )


def whole_words(
    tokenizer: Tokenizer, symbols: Sequence[int], line: str | None = None, *, end: str = SPECIAL[EOS]
) -> tuple[list[str], list[int]]:
    """The words that symbols are pieces of, and the number of the word of each symbol; end symbols are words, too.

    Args:
        tokenizer: of the symbols.
        symbols: (n,) of any text.
        line: the text itself if it is known, of which unknown words are shown as they stand there.
        end: how an end symbol is shown.
    """
    if line is not None and tokenizer.unit == "word":
        spoken = tokenizer.split(line)[: len(symbols)]
        return spoken, list(range(len(symbols)))
    words: list[str] = []
    numbers: list[int] = []
    begin = 0
    for place in [*(place for place, symbol in enumerate(symbols) if symbol == EOS), len(symbols)]:
        part = list(symbols[begin:place])
        own = tokenizer.words(part)
        numbers += [len(words) + int(number) for number in own]
        joined = [""] * (int(max(own, default=-1)) + 1)
        for number, piece in zip(own, tokenizer.pieces(part), strict=True):
            joined[number] += piece.replace("▁", "")
        words += [word.strip() or "␣" for word in joined]
        if place < len(symbols):
            numbers.append(len(words))
            words.append(end)
        begin = place + 1
    return words, numbers


def by_head(mean: Weights, heads: Sequence[Sequence[Floats]]) -> list[Weights]:
    """The means of all heads, and each head's weights, by layer, where there are several."""
    if sum(map(len, heads)) < 2:
        return [mean]
    every = [
        replace(mean, values=values, choices={"Layer": str(layer), "Head": str(head)})
        for layer, of_layer in enumerate(heads, 1)
        for head, values in enumerate(of_layer, 1)
    ]
    return [mean, *every]


def ranked(shares: Mapping[str, float], most: int = 10) -> list[tuple[str, float]]:
    """The names with the largest probabilities, the largest first."""
    return sorted(shares.items(), key=lambda item: -item[1])[:most]


def numbered(asked: str, count: int) -> int | None:
    """The number of the test example that ``test:<number>`` asks for; None if something else is asked for.

    Raises:
        ReplicationError: there are only ``count``.
    """
    if not asked.startswith(TEST):
        return None
    number = asked.removeprefix(TEST)
    # Python refuses to read a number of some thousand digits.
    if not number.isdecimal() or len(number.lstrip("0")) > len(str(count)) or int(number) >= count:
        raise ReplicationError(
            f"there is no test example {quoted(asked)}; the numbers go from {TEST}0 to {TEST}{count - 1}."
        )
    return int(number)


@contextmanager
def reading_picture(path: Path, expected: str) -> Iterator[None]:
    """Say in a sentence why an image file cannot be read inside, and what to give: ``expected``.

    Raises:
        ReplicationError: the file is missing, no picture, or far too large a one, or its name is no path.
    """
    try:
        yield
    except FileNotFoundError:
        raise ReplicationError(f"there is no file {quoted(str(path))}; give {expected}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReplicationError(
            f"{quoted(str(path))} cannot be read as a picture ({reason}); give {expected}."
        ) from None
