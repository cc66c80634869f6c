"""Running text for language models: one stream of symbols a split, tokenised once, kept on disk, mapped into memory."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.data.storage import read_lines, read_summary, save_arrays, write_summary
from shared.data.tokenizers import EOS, UNK, Tokenizer, load_tokenizer
from shared.errors import ReplicationError
from shared.tasks.language.characters import CharactersConfig, CharacterVocabulary
from shared.tasks.language.settings import LanguageCorpusConfig, LanguageTraining, Unit
from shared.tasks.language.streams import LanguageBatch, Stream

_CHUNK = 1 << 20  # characters that are encoded together


@dataclass(frozen=True)
class PreparedLanguage:
    """What the prepare stage leaves for training and evaluation: tokeniser and encoded splits.

    Attributes:
        folder: of the prepared task.
        tokenizer: of all splits.
        unit: what losses are reported per.
        units: split to how many of them it has, line ends included if they are symbols; words are those that the
            tokeniser tells apart. A stream's nats divided by these are nats per unit, whatever the symbols:
            perplexity is ``exp`` of it, bits per unit are ``/ log(2)``.
    """

    folder: Path
    tokenizer: Tokenizer
    unit: str
    units: Mapping[str, int]

    @classmethod
    def load(cls, folder: Path, corpus: object = None) -> PreparedLanguage:
        """Open a prepared task; raises `ReplicationError` where it was not prepared."""
        summary = read_summary(folder)
        load = CharacterVocabulary.load if summary["symbol"] in ("character", "byte") else load_tokenizer
        units = {name: split["units"] for name, split in summary["splits"].items()}
        return cls(folder, load(folder / "text.tokenizer"), summary["unit"], units)

    @property
    def sizes(self) -> tuple[int, None]:
        """Of the vocabulary."""
        return len(self.tokenizer), None

    def split(self, name: str) -> Stream:
        """An encoded split: ``train``, ``valid`` or a test split."""
        return Stream.load(self.folder / name)

    def batches(self, training: LanguageTraining, seed: int) -> Callable[[int], Iterator[LanguageBatch]]:
        """From a batch's number to that batch of training and all that follow it; refuses a text that is too short."""
        stream, columns, length = self.split("train"), training.batch.sentences, training.batch.length
        stream.epoch_batches(columns=columns, length=length)
        return lambda start: stream.training_batches(columns=columns, length=length, seed=seed, start=start)

    def valid(self, training: LanguageTraining) -> list[LanguageBatch]:
        """The validation split in batches as large as in training, since evaluation must not decide what is trained."""
        batch = training.batch
        return list(self.split("valid").evaluation_batches(columns=batch.sentences, length=batch.length))


PREPARED = PreparedLanguage


def prepare(config: LanguageCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Train the tokeniser on the training text and encode every split into ``out``.

    Its lines stand in the order of the text, unless they are to be shuffled: a text whose lines have nothing to do with
    each other, as One Billion Word's.

    Args:
        config: the task's corpus.
        dataset: the fetched folder with ``<split>.<language>`` files.
        out: the folder to write; only whole when this returns.

    Returns:
        A summary: unit and symbol, size of the vocabulary; of each split the numbers of lines, symbols and units, the
        share of unknown symbols, and the number of recalls if they are known.

    Raises:
        ReplicationError: a file is missing, empty or not UTF-8, or recalls do not fit the text.
    """
    tokenizer = config.tokenizer.train(text for text, _ in _pieces(config, dataset, "train"))
    tokenizer.save(out / "text.tokenizer")
    splits = {split: _encode_split(config, dataset, out, split, tokenizer) for split in config.splits}
    return write_summary(out, config, {
        "dataset": config.dataset, "unit": config.unit, "symbol": tokenizer.unit, "vocabulary": len(tokenizer),
        "splits": splits,
    })  # fmt: skip


class _Piece(NamedTuple):
    """A line or, of characters and bytes, a part of a long one; ``ends`` where a line end follows."""

    text: str
    ends: bool


def _pieces(config: LanguageCorpusConfig, dataset: Path, split: str) -> Iterable[_Piece]:
    pieces = _in_order(config, dataset, split)
    if not config.shuffled:
        return pieces
    lines = [_Piece(piece.text, ends=True) for piece in pieces if piece.text.strip()]
    random.Random(f"{split} {len(lines)}").shuffle(lines)
    return lines


def _in_order(config: LanguageCorpusConfig, dataset: Path, split: str) -> Iterator[_Piece]:
    path = dataset / f"{split}.{config.language}"
    limit = config.lines.get(split)
    # Bytes of a character that a cut tore apart are bytes nevertheless.
    errors = "surrogateescape" if config.tokenizer.kind == "bytes" else "strict"
    in_parts = isinstance(config.tokenizer, CharactersConfig) and not config.shuffled
    size = _CHUNK if in_parts else -1
    lines = 0
    try:
        with path.open(encoding="utf-8", errors=errors, newline="\n") as file:
            while (limit is None or lines < limit) and (text := file.readline(size)):
                ends = text.endswith("\n")
                lines += ends
                yield _Piece(text.removesuffix("\n"), ends)
    except FileNotFoundError:
        raise ReplicationError(
            f"{path} does not exist; run the fetch stage, and check split and language names."
        ) from None
    except UnicodeDecodeError as error:
        raise ReplicationError(f"{path} is not UTF-8 text ({error.reason}); use a tokenizer of kind bytes.") from None


def _encode_split(
    config: LanguageCorpusConfig, dataset: Path, out: Path, split: str, tokenizer: Tokenizer
) -> dict[str, object]:
    folder, lines, units = out / split, 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    dtype = np.min_scalar_type(len(tokenizer) - 1)
    # Only at the end is known how long the array is, and it may exceed the memory.
    raw = folder / "symbols.raw"
    with raw.open("wb") as file:
        for chunk in _chunks(_pieces(config, dataset, split)):
            encoded = tokenizer.encode([piece.text for piece in chunk])
            for piece, symbols in zip(chunk, encoded, strict=True):
                lines += piece.ends
                units += _units(piece.text, config.unit, tokenizer)
                if piece.ends and config.end_of_line:
                    units += 1
                    symbols.append(EOS)
            file.write(np.fromiter(itertools.chain.from_iterable(encoded), dtype).tobytes())
    if not raw.stat().st_size:
        raise ReplicationError(
            f"split '{split}' of {dataset} has no text; check the card, and fetch {dataset.name} again."
        )
    text = np.memmap(raw, dtype, mode="r")
    save_arrays(folder, {"symbols": text})
    summary: dict[str, object] = {
        "lines": lines, "units": units, "symbols": len(text), "unknown_share": float(np.mean(text == UNK)),
    }  # fmt: skip
    if config.recalls is not None:
        distances = _distances(config, dataset, split, len(text))
        save_arrays(folder, {"distances": distances})
        summary["recalls"] = int(np.count_nonzero(distances))
    raw.unlink()
    return summary


def _units(text: str, unit: Unit, tokenizer: Tokenizer) -> int:
    if unit == "word":
        return len(tokenizer.split(text))
    return len(text) if unit == "character" else len(text.encode("utf-8", "surrogateescape"))


def _chunks(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces in groups of about :data:`_CHUNK` characters."""
    chunk: list[_Piece] = []
    size = 0
    for piece in pieces:
        chunk.append(piece)
        size += len(piece.text) + 1
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _distances(config: LanguageCorpusConfig, dataset: Path, split: str, symbols: int) -> NDArray[np.int32]:
    """(N,) how many symbols ago what a word repeats stood, 0 for all others.

    A line of recalls has ``place-earlier`` for each, positions of words from 0, with spaces between.
    """
    path = dataset / f"{split}.{config.recalls}"
    lines = read_lines(path)
    distances = np.zeros(symbols, dtype=np.int32)
    start = count = 0
    for count, piece in enumerate(_pieces(config, dataset, split), start=1):
        words = len(piece.text.split())
        for link in lines[count - 1].split() if count <= len(lines) else ():
            place, _, earlier = link.partition("-")
            numbers = place.isdecimal() and earlier.isdecimal()
            if not (numbers and int(earlier) < int(place) < words):
                raise ReplicationError(
                    f"{path}, line {count}: '{link}' must be the place of a word and of an earlier one, from 0, "
                    f"in a line of {words} words; correct the data."
                )
            distances[start + int(place)] = int(place) - int(earlier)
        start += words + (piece.ends and config.end_of_line)
    if len(lines) != count and not (split in config.lines and len(lines) > count):
        raise ReplicationError(f"{path} has {len(lines)} lines, and the text has {count}; fetch {dataset.name} again.")
    return distances
