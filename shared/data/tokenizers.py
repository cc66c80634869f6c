"""Text to symbols and back: word vocabularies as in the 2015 papers, and SentencePiece subwords.

Every vocabulary begins with the same four symbols, so that models, batches and decoders agree on them.
"""

from __future__ import annotations

import collections
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field

from shared.config import Strict
from shared.errors import ReplicationError

PAD, UNK, BOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Tokenizer(Protocol):
    """What the pipeline asks of a tokeniser. Symbols are ints; sequences carry neither start nor end symbol."""

    unit: str  # what one symbol is: "word" or "piece"

    def __len__(self) -> int: ...
    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Symbols of each line."""
        ...

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Lines of text; what follows an end symbol is the caller's to cut."""
        ...

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """A readable string per symbol."""
        ...

    def split(self, line: str) -> list[str]:
        """The words of a line as they stand there, known or not; :meth:`words` counts them."""
        ...

    def words(self, symbols: Sequence[int]) -> list[int]:
        """The index of the word that each symbol is part of."""
        ...

    def save(self, path: Path) -> None:
        """Write to ``path``, for :func:`load_tokenizer`."""
        ...


class WordVocabulary:
    """The most frequent words; every other word is ``<unk>`` (Bahdanau et al. 2015, section 4.1).

    Args:
        words: the known words, most frequent first.
        split: "space" for text that is tokenised already, "13a" for sacreBLEU's standard tokeniser.
    """

    unit = "word"

    def __init__(self, words: Sequence[str], *, split: str = "space") -> None:
        self._split_name, self._split = split, _splitter(split)
        self._strings = [*SPECIAL, *words]
        # The special symbols are not in it: a text that happens to contain "</s>" must not end a sentence.
        self._index = {word: i for i, word in enumerate(words, start=len(SPECIAL))}

    @classmethod
    def train(cls, lines: Iterable[str], *, size: int, split: str) -> WordVocabulary:
        """Count the words of ``lines``; ``size`` includes the four special symbols."""
        splitter = _splitter(split)
        counts = collections.Counter(word for line in lines for word in splitter(line))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([word for word in ranked if word not in SPECIAL][: size - len(SPECIAL)], split=split)

    def __len__(self) -> int:
        return len(self._strings)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Symbols of each line; words that are not known become ``UNK``."""
        return [[self._index.get(word, UNK) for word in self._split(line)] for line in lines]

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Words joined by spaces."""
        return [" ".join(self.pieces(line)) for line in symbols]

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """The words themselves."""
        return [self._strings[symbol] for symbol in symbols]

    def split(self, line: str) -> list[str]:
        """The words of a line, one for each symbol of :meth:`encode`."""
        return self._split(line)

    def words(self, symbols: Sequence[int]) -> list[int]:
        """Every symbol is a word of its own."""
        return list(range(len(symbols)))

    def save(self, path: Path) -> None:
        """Write JSON."""
        state = {"kind": "words", "split": self._split_name, "words": self._strings[len(SPECIAL) :]}
        path.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")


class SentencePieceTokenizer:
    """Byte-pair or unigram pieces with lossless detokenisation."""

    unit = "piece"

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def train(cls, lines: Iterable[str], *, size: int, model_type: str) -> SentencePieceTokenizer:
        """Train on ``lines``; one thread, so that the same text gives the same pieces.

        Raises:
            ReplicationError: the text is too small for ``size`` pieces.
        """
        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=model, vocab_size=size, model_type=model_type,
                character_coverage=1.0, num_threads=1, minloglevel=2, hard_vocab_limit=False,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, shuffle_input_sentence=False,
            )  # fmt: skip
        except RuntimeError as error:
            reason = str(error).rsplit("]", 1)[-1].strip()
            raise ReplicationError(
                f"cannot train {size} pieces on this text ({reason}); every character needs one, choose a larger size."
            ) from None
        return cls(model.getvalue())

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Pieces of each line."""
        encoded: list[list[int]] = self._processor.encode(list(lines))
        return encoded

    def decode(self, symbols: Sequence[Sequence[int]]) -> list[str]:
        """Detokenised text."""
        return [str(self._processor.decode(list(line))) for line in symbols]

    def pieces(self, symbols: Sequence[int]) -> list[str]:
        """Piece strings; ``▁`` marks the beginning of a word."""
        return [str(self._processor.id_to_piece(int(symbol))) for symbol in symbols]

    def split(self, line: str) -> list[str]:
        """What stands between spaces."""
        return line.split()

    def words(self, symbols: Sequence[int]) -> list[int]:
        """A piece that begins with ``▁`` begins a word."""
        starts = np.array([piece.startswith("▁") for piece in self.pieces(symbols)], dtype=int)
        return list(np.maximum(starts.cumsum() - 1, 0)) if len(starts) else []

    def save(self, path: Path) -> None:
        """Write SentencePiece's own format."""
        path.write_bytes(self._model)


class WordVocabularyConfig(Strict):
    """A word vocabulary: ``size`` most frequent words of the training text, special symbols included."""

    kind: Literal["words"]
    size: int = Field(ge=5)
    split: Literal["space", "13a"] = "space"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> WordVocabulary:
        """The vocabulary of ``lines``."""
        return WordVocabulary.train(lines, size=self.size, split=self.split)


class SentencePieceConfig(Strict):
    """SentencePiece pieces of one language, or of both together."""

    kind: Literal["sentencepiece"]
    size: int = Field(ge=16)
    model_type: Literal["bpe", "unigram"] = "bpe"
    joint: bool = False

    def train(self, lines: Iterable[str]) -> SentencePieceTokenizer:
        """The pieces of ``lines``; raises as `SentencePieceTokenizer.train`."""
        return SentencePieceTokenizer.train(lines, size=self.size, model_type=self.model_type)


TokenizerConfig = Annotated[WordVocabularyConfig | SentencePieceConfig, Field(discriminator="kind")]


def train_tokenizers(
    source: Sequence[str], target: Sequence[str], config: WordVocabularyConfig | SentencePieceConfig
) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenisers, from training text only; if ``joint``, one tokeniser serves both sides."""
    if config.joint:
        both = config.train([*source, *target])
        return both, both
    return config.train(source), config.train(target)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read what ``save`` wrote.

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
    return lambda line: tokenize(line).split()
