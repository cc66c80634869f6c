"""Tokenisers: word vocabularies as in the papers of 2015, SentencePiece subwords, and characters or bytes.

Every vocabulary begins with the same four special symbols, which models, batches and decoders rely on.
"""

from __future__ import annotations

import collections
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shared.config import Strict
from shared.errors import ReplicationError

PAD, UNK, BOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
Unit = Literal["character", "byte"]


class WordVocabulary:
    """The most frequent words; every other word is ``<unk>`` (Bahdanau et al. 2015, section 4.1).

    Args:
        words: the known words, most frequent first.
        split: "space" for tokenised text, "13a" for the standard tokeniser of sacreBLEU.
    """

    unit = "word"

    def __init__(self, words: Sequence[str], *, split: str = "space") -> None:
        self._split_name, self.split = split, _splitter(split)  # a line to its words, one for each symbol
        self._strings = [*SPECIAL, *words]
        # The special symbols are excluded, so that the string "</s>" in a text does not end the sentence.
        self._index = {word: i for i, word in enumerate(words, start=len(SPECIAL))}

    def __len__(self) -> int:
        return len(self._strings)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the symbols of each line; unknown words become ``UNK``."""
        return [[self._index.get(word, UNK) for word in self.split(line)] for line in lines]

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Return the words joined by spaces."""
        return [" ".join(self.pieces(line)) for line in symbols]

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """Return the word of each symbol."""
        return [self._strings[symbol] for symbol in symbols]

    def words(self, symbols: Sequence[int]) -> list[int]:
        """Return 0, 1, 2, …, because every symbol is one word."""
        return list(range(len(symbols)))

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON."""
        state = {"kind": "words", "split": self._split_name, "words": self._strings[len(SPECIAL) :]}
        path.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")


_UNKNOWN = "\uffff"  # stands for "<unk>" in a text, and is in no vocabulary
_APART = re.compile(f"{_UNKNOWN}|[^{_UNKNOWN}]+")
# SentencePiece writes a space as "▁", reads a NUL as an end, leaves training lines with "▅" out without a word, learns
# no "\x1f" and takes "\r" off the end of a line.
_ESCAPES = {character: f"\ue000{number}" for number, character in enumerate("\ue000▁▅\0\uffff\x1f\r")}
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}
_ESCAPE = str.maketrans(_ESCAPES)
_LONGEST = 1 << 30  # bytes of a line; SentencePiece would leave out all beyond 4,192 without a word


class SentencePieceTokenizer:
    """Byte-pair or unigram pieces; whatever has no unknown character comes back as it was, spaces included."""

    unit = "piece"

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the pieces of each line; ``<unk>`` in a text is one unknown symbol, as is a run of such characters."""
        known = [line.translate(_ESCAPE).replace(SPECIAL[UNK], _UNKNOWN) for line in lines]
        encoded: list[list[int]] = self._processor.encode(known)
        # SentencePiece makes one symbol of all unknown characters that touch, "<unk><unk>" included.
        for at, line in enumerate(known):
            if _UNKNOWN in line:
                pieces = zip(encoded[at], self._processor.encode(line, return_type=str), strict=True)
                runs = ([symbol] * (len(_APART.findall(text)) if symbol == UNK else 1) for symbol, text in pieces)
                encoded[at] = [symbol for run in runs for symbol in run]
        return encoded

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Return the text."""
        lines = (str(self._processor.decode(list(line))) for line in symbols)
        return [re.sub("\ue000[0-6]", lambda found: _UNESCAPED[found[0]], line) for line in lines]

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """Return the piece strings; ``▁`` marks the beginning of a word."""
        return [str(self._processor.id_to_piece(int(symbol))) for symbol in symbols]

    def split(self, line: str) -> list[str]:
        """Return the words between spaces; no other white space parts words, as it parts no pieces."""
        return [word for word in line.split(" ") if word]

    def words(self, symbols: Sequence[int]) -> list[int]:
        """Return the index of the word of each piece; spaces belong to the word behind them, or to the last one."""
        pieces = self.pieces(symbols)
        spaces = np.array([False, *(not piece.strip("▁") for piece in pieces)])
        starts = np.array([piece.startswith("▁") for piece in pieces], dtype=bool) & ~spaces[:-1]
        numbers = starts.cumsum() - 1
        return list(np.clip(numbers, 0, numbers[~spaces[1:]].max(initial=0)))

    def save(self, path: Path) -> None:
        """Write the model in the format of SentencePiece."""
        path.write_bytes(self._model)


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

    def _encode(self, line: str) -> NDArray[np.int64]:
        codes = _codes(line, self.unit)
        places = np.searchsorted(self._codes, codes)
        known = np.append(self._codes, -1)[places] == codes
        return np.where(known, places + len(SPECIAL), UNK)

    def _strings(self, symbols: Sequence[int]) -> list[str]:
        first = len(SPECIAL)
        return [SPECIAL[symbol] if symbol < first else chr(int(self._codes[symbol - first])) for symbol in symbols]


def _codes(text: str, unit: str) -> NDArray[np.int64]:
    if unit == "byte":
        return np.frombuffer(text.encode("utf-8", "surrogateescape"), dtype=np.uint8).astype(np.int64)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


Tokenizer: TypeAlias = WordVocabulary | SentencePieceTokenizer | CharacterVocabulary
"""Symbols are ints; sequences have neither a start nor an end symbol. One symbol is a ``unit``. The words of a line,
unknown ones too, are by ``split``; ``words`` has the index there of the word of each symbol."""


class WordVocabularyConfig(Strict):
    """A word vocabulary: ``size`` most frequent words of the training text, special symbols included."""

    unit: ClassVar[str] = WordVocabulary.unit
    kind: Literal["words"]
    size: int = Field(ge=5)
    split: Literal["space", "13a"] = "space"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> WordVocabulary:
        """Return the vocabulary of ``lines``; says how many words have no place in it."""
        splitter = _splitter(self.split)
        counts = collections.Counter(word for line in lines for word in splitter(line))
        ranked = sorted(counts.keys() - {*SPECIAL}, key=lambda word: (-counts[word], word))
        known = ranked[: self.size - len(SPECIAL)]
        if cut := len(ranked) - len(known):
            print(
                f"a vocabulary of {len(known):,} words leaves out {cut:,} of the {len(ranked):,} of the training text."
            )
        return WordVocabulary(known, split=self.split)


class SentencePieceConfig(Strict):
    """SentencePiece pieces of one language, or of both together."""

    unit: ClassVar[str] = SentencePieceTokenizer.unit
    kind: Literal["sentencepiece"]
    size: int = Field(ge=16)
    model_type: Literal["bpe", "unigram"] = "bpe"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> SentencePieceTokenizer:
        """Train on ``lines`` with one thread, so that the same text gives the same pieces.

        Raises:
            ReplicationError: SentencePiece cannot train so many pieces on this text.
        """
        import sentencepiece

        model = io.BytesIO()
        known = (part.strip() if part != line else line for line in lines for part in line.split(SPECIAL[UNK]))
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(part.translate(_ESCAPE) for part in known), model_writer=model, vocab_size=self.size,
                model_type=self.model_type, character_coverage=1.0, hard_vocab_limit=False, num_threads=1,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, unk_surface=SPECIAL[UNK], shuffle_input_sentence=False,
                normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=_LONGEST,
                minloglevel=2,
            )  # fmt: skip
        except RuntimeError as error:
            reason = str(error).rsplit("]", 1)[-1].strip()
            raise ReplicationError(
                f"cannot train {self.size} pieces on this text ({reason}); every character needs one, so choose a "
                "larger size, or correct the data if the text is empty."
            ) from None
        return SentencePieceTokenizer(model.getvalue())


TokenizerConfig = Annotated[WordVocabularyConfig | SentencePieceConfig, Field(discriminator="kind")]


class CharactersConfig(Strict):
    """All characters of the training text, or all bytes."""

    kind: Literal["characters", "bytes"]

    def train(self, lines: Iterable[str]) -> CharacterVocabulary:
        """The vocabulary of ``lines``."""
        found: set[str] = set()
        for line in lines:
            found.update(line)
        unit: Unit = "byte" if self.kind == "bytes" else "character"
        return CharacterVocabulary(np.unique(_codes("".join(sorted(found)), unit)).tolist(), unit=unit)


def train_tokenizers(
    source: Sequence[str], target: Sequence[str], config: TokenizerConfig
) -> tuple[Tokenizer, Tokenizer]:
    """Train source and target tokenisers on training text; with ``joint`` both are one tokeniser."""
    if config.joint:
        both = config.train([*source, *target])
        return both, both
    return config.train(source), config.train(target)


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokeniser that ``save`` has written.

    Raises:
        ReplicationError: the file is missing or damaged.
    """
    try:
        content = path.read_bytes()
        if not content:
            raise ValueError("it is empty")
        if not content.startswith(b"{"):
            return SentencePieceTokenizer(content)
        state = json.loads(content)
        if "codes" in state:
            return CharacterVocabulary(state["codes"], unit=state["unit"])
        return WordVocabulary(state["words"], split=state["split"])
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; run the prepare stage of its task first.") from None
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise ReplicationError(f"{path} is damaged ({error}); delete it and run the prepare stage again.") from None


def _splitter(name: str) -> Callable[[str], list[str]]:
    if name == "space":
        return str.split
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize = Tokenizer13a()

    def split(line: str) -> list[str]:
        words = tokenize(line.replace(SPECIAL[UNK], f" {_UNKNOWN} ")).split()
        return [SPECIAL[UNK] if word == _UNKNOWN else word for word in words]

    return split
