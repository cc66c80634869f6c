"""Characters or bytes as symbols: vocabularies of all that the training text has, for language models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shared.config import Strict
from shared.data.tokenizers import SPECIAL, UNK
from shared.records import read_record

Unit = Literal["character", "byte"]


class CharacterVocabulary:
    """The characters of a text, or the bytes of its UTF-8 form; symbols that training lacks become ``<unk>``.

    A byte that belongs to no character, such as where a file was cut, is represented by a lone surrogate (Python's
    ``surrogateescape``).

    Args:
        codes: ascending code points, or values of bytes.
        unit: which of the two they are.
    """

    def __init__(self, codes: Sequence[int], *, unit: Unit) -> None:
        self.unit: str = unit
        self._codes = np.array(codes, dtype=np.int64)

    @classmethod
    def train(cls, lines: Iterable[str], *, unit: Unit) -> CharacterVocabulary:
        """Collect the characters or bytes of ``lines``."""
        found: set[str] = set()
        for line in lines:
            found.update(line)
        return cls(np.unique(_codes("".join(sorted(found)), unit)).tolist(), unit=unit)

    def __len__(self) -> int:
        return len(SPECIAL) + len(self._codes)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Symbols of each line, without a symbol for the line end."""
        return [self._encode(line).tolist() for line in lines]

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Lines of text; special symbols are written out, and invalid UTF-8 becomes U+FFFD."""
        joined = ["".join(self._strings(line)) for line in symbols]
        if self.unit == "character":
            return joined
        return [line.encode("latin-1").decode("utf-8", "replace") for line in joined]

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """The characters themselves; a byte outside of ASCII, such as 0xe4, as ``<e4>``."""
        strings = self._strings(symbols)
        if self.unit == "character":
            return strings
        return [f"<{ord(text):x}>" if text >= "\x80" else text for text in strings]

    def split(self, line: str) -> list[str]:
        """The words between spaces."""
        return line.split()

    def words(self, symbols: Sequence[int]) -> list[int]:
        """A space belongs to the word before it."""
        spaces = np.array([0, *(text.isspace() for text in self._strings(symbols))][: len(symbols)], dtype=int)
        return [int(word) for word in spaces.cumsum()]

    def save(self, path: Path) -> None:
        """Write JSON."""
        path.write_text(json.dumps({"unit": self.unit, "codes": self._codes.tolist()}), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> CharacterVocabulary:
        """Read what :meth:`save` wrote.

        Raises:
            ReplicationError: the file is missing or damaged.
        """
        state = read_record(path, "run the prepare stage again", {"codes": list, "unit": str})
        return cls(state["codes"], unit=state["unit"])

    def _encode(self, line: str) -> NDArray[np.int64]:
        codes = _codes(line, self.unit)
        places = np.searchsorted(self._codes, codes)
        known = np.append(self._codes, -1)[places] == codes
        return np.where(known, places + len(SPECIAL), UNK)

    def _strings(self, symbols: Sequence[int]) -> list[str]:
        first = len(SPECIAL)
        return [SPECIAL[symbol] if symbol < first else chr(int(self._codes[symbol - first])) for symbol in symbols]


class CharactersConfig(Strict):
    """All characters of the training text, or all bytes."""

    kind: Literal["characters", "bytes"]

    def train(self, lines: Iterable[str]) -> CharacterVocabulary:
        """The vocabulary of ``lines``."""
        return CharacterVocabulary.train(lines, unit="byte" if self.kind == "bytes" else "character")


def _codes(text: str, unit: str) -> NDArray[np.int64]:
    if unit == "byte":
        return np.frombuffer(text.encode("utf-8", "surrogateescape"), dtype=np.uint8).astype(np.int64)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
