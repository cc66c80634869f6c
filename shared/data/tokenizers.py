"""Tokenisers: word vocabularies as in the papers of 2015, and SentencePiece subwords.

Every vocabulary begins with the same four special symbols, which models, batches and decoders rely on.
"""

from __future__ import annotations

import collections
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from shared.config import Strict
from shared.errors import ReplicationError

PAD, UNK, BOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Tokenizer(Protocol):
    """The interface of tokenisers. Symbols are ints; sequences have neither a start nor an end symbol."""

    unit: str  # what one symbol is: "word" or "piece"

    def __len__(self) -> int: ...
    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the symbols of each line."""

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Return lines of text; the caller removes the symbols after an end symbol."""

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """Return a readable string per symbol."""

    def split(self, line: str) -> list[str]:
        """Return the words of a line, including unknown ones; :meth:`words` has their indices."""

    def words(self, symbols: Sequence[int]) -> list[int]:
        """Return the index of the word of each symbol."""

    def save(self, path: Path) -> None:
        """Write the tokeniser to ``path`` for :func:`load_tokenizer`."""


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

    @classmethod
    def train(cls, lines: Iterable[str], *, size: int, split: str) -> WordVocabulary:
        """Build the vocabulary of the most frequent words of ``lines``; says how many words have no place in it.

        ``size`` includes the four special symbols.
        """
        splitter = _splitter(split)
        counts = collections.Counter(word for line in lines for word in splitter(line))
        ranked = sorted(counts.keys() - {*SPECIAL}, key=lambda word: (-counts[word], word))
        known = ranked[: size - len(SPECIAL)]
        if cut := len(ranked) - len(known):
            print(
                f"a vocabulary of {len(known):,} words leaves out {cut:,} of the {len(ranked):,} of the training text."
            )
        return cls(known, split=split)

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

    @classmethod
    def train(cls, lines: Iterable[str], *, size: int, model_type: str) -> SentencePieceTokenizer:
        """Train on ``lines`` with one thread, so that the same text gives the same pieces.

        Raises:
            ReplicationError: SentencePiece cannot train ``size`` pieces on this text.
        """
        import sentencepiece

        model = io.BytesIO()
        known = (part.strip() if part != line else line for line in lines for part in line.split(SPECIAL[UNK]))
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(part.translate(_ESCAPE) for part in known), model_writer=model, vocab_size=size,
                model_type=model_type, character_coverage=1.0, num_threads=1, minloglevel=2, hard_vocab_limit=False,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, unk_surface=SPECIAL[UNK], shuffle_input_sentence=False,
                normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=_LONGEST,
            )  # fmt: skip
        except RuntimeError as error:
            reason = str(error).rsplit("]", 1)[-1].strip()
            raise ReplicationError(
                f"cannot train {size} pieces on this text ({reason}); every character needs one, so choose a larger "
                "size, or correct the data if the text is empty."
            ) from None
        return cls(model.getvalue())

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


class WordVocabularyConfig(Strict):
    """A word vocabulary: ``size`` most frequent words of the training text, special symbols included."""

    unit: ClassVar[str] = WordVocabulary.unit
    kind: Literal["words"]
    size: int = Field(ge=5)
    split: Literal["space", "13a"] = "space"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> WordVocabulary:
        """Return the vocabulary of ``lines``."""
        return WordVocabulary.train(lines, size=self.size, split=self.split)


class SentencePieceConfig(Strict):
    """SentencePiece pieces of one language, or of both together."""

    unit: ClassVar[str] = SentencePieceTokenizer.unit
    kind: Literal["sentencepiece"]
    size: int = Field(ge=16)
    model_type: Literal["bpe", "unigram"] = "bpe"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> SentencePieceTokenizer:
        """Return the tokeniser of ``lines``; it raises the errors of `SentencePieceTokenizer.train`."""
        return SentencePieceTokenizer.train(lines, size=self.size, model_type=self.model_type)


TokenizerConfig = Annotated[WordVocabularyConfig | SentencePieceConfig, Field(discriminator="kind")]


def train_tokenizers(
    source: Sequence[str], target: Sequence[str], config: WordVocabularyConfig | SentencePieceConfig
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
        return WordVocabulary(state["words"], split=state["split"])
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; run the prepare stage of its task first.") from None
    except (ValueError, KeyError, RuntimeError) as error:
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
