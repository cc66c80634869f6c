"""Running text for language models: one stream of symbols a split, tokenised once and kept on disk; and its batches.

Every symbol of a stream is a target, the first one too: before it comes an end symbol, as if another line had ended
there.

Shape letters: N symbols of the stream, B columns of a batch, T symbols of a segment.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.storage import load_arrays, read_lines, save_arrays, write_summary
from shared.data.tokenizers import EOS, PAD, UNK, CharactersConfig, Tokenizer
from shared.errors import ReplicationError
from shared.tasks.batches import Batch, Prepared
from shared.tasks.language.settings import LanguageCorpusConfig, LanguageTraining, Unit

_CHUNK = 1 << 20  # characters that are encoded together


@dataclass(frozen=True)
class LanguageBatch(Batch):
    """A segment of each of B columns: each target is the symbol that follows the input at its place.

    Attributes:
        inputs: (B, T) int64; PAD where a column has come to its end.
        targets: (B, T) int64; PAD where nothing is to be scored.
        places: (B, T) int64: which symbol of the stream each target is, -1 where nothing is to be scored.
        reset: whether the columns begin anew, so that the memory must be cleared.
    """

    inputs: Tensor
    targets: Tensor
    places: Tensor
    reset: bool

    @property
    def mask(self) -> Tensor:
        """(B, T) true where the target is to be scored."""
        return self.places >= 0


@dataclass(frozen=True)
class Stream:
    """One split: all its symbols, in the order of the text.

    Attributes:
        symbols: (N,) mapped into memory.
        distances: (N,) how many symbols ago what a symbol repeats stood, 0 where it repeats nothing; None if that is
            not known.
    """

    symbols: NDArray[np.integer]
    distances: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.symbols)

    def evaluation_batches(self, *, columns: int, length: int, warm_up: int = 0) -> Iterator[LanguageBatch]:
        """The whole stream, each symbol scored exactly once, in segments of ``length``; the last may be shorter.

        The columns are consecutive parts of the stream, all of one width, a multiple of ``length``: segments are cut at
        the same places in however many columns. Where the stream does not fill the last ones, they are padded. All but
        the first read the ``warm_up`` symbols before their part first, without scoring them. So no symbol is scored
        with fewer than ``warm_up`` symbols read before it, unless the stream has fewer: with as many as reach a model's
        output, results do not depend on the number of columns.

        Only the first batch has ``reset``.
        """
        warm_up = min(warm_up, len(self) - 1)
        part = -(-(len(self) - warm_up) // (columns * length)) * length
        starts = part * np.arange(columns)[:, None]
        end = min(warm_up + part, len(self))
        for begin in range(0, end, length):
            inside = np.arange(begin, min(begin + length, end))
            scored = (inside >= warm_up) | (starts == 0)
            yield self._batch(starts + inside, scored, reset=begin == 0)

    def windows(self, *, context: int, stride: int, size: int) -> Iterator[LanguageBatch]:
        """The whole stream, each symbol scored exactly once, in overlapping windows that are read independently.

        A window is ``context`` inputs wide (or as wide as the stream, if that is less) and ``stride`` symbols after
        the one before it; only what is new in it is scored. So after the first window, in which all is new, each
        symbol is scored with ``context - stride + 1`` to ``context`` inputs read: with a stride of one always with
        ``context``, as Al-Rfou et al. (2019) evaluate. All batches, of ``size`` windows at most, have ``reset``.
        """
        width = min(context, len(self))
        ends = np.unique(np.arange(width, len(self) + stride, stride).clip(max=len(self)))
        new = np.concatenate(([0], ends[:-1]))
        for first in range(0, len(ends), size):
            group = slice(first, first + size)
            places = ends[group, None] - width + np.arange(width)
            yield self._batch(places, places >= new[group, None], reset=True)

    def epoch_batches(self, *, columns: int, length: int) -> int:
        """How many training batches one pass over the stream has.

        Raises:
            ReplicationError: the stream is too short for a single one.
        """
        count = len(self) // columns // length
        if not count:
            raise ReplicationError(
                f"{columns} columns of segments of {length} symbols need {columns * length:,} symbols, but the "
                f"training text has {len(self):,}; use fewer columns or shorter segments."
            )
        return count

    def training_batch(self, number: int, *, columns: int, length: int, seed: int) -> LanguageBatch:
        """Batch ``number``, from 0, of endless training on the stream; it depends on the arguments alone.

        A pass begins at a random symbol and wraps around to the symbol before it, so each pass cuts other segments. Its
        columns are consecutive parts of the stream. Each batch continues the previous one, and the first has ``reset``.
        A pass leaves out a remainder of fewer than ``columns * length`` symbols, which differ from pass to pass.

        Raises:
            ReplicationError: the stream is too short.
        """
        epoch, segment = divmod(number, self.epoch_batches(columns=columns, length=length))
        begin = int(np.random.default_rng((seed, epoch)).integers(len(self)))
        starts = begin + segment * length + len(self) // columns * np.arange(columns)[:, None]
        places = (starts + np.arange(length)) % len(self)
        return self._batch(places, np.ones_like(places, dtype=bool), reset=segment == 0)

    def training_batches(self, *, columns: int, length: int, seed: int, start: int = 0) -> Iterator[LanguageBatch]:
        """Batch number ``start`` and all that follow, without end; see :meth:`training_batch`.

        A run that resumes inside of a pass needs the memory of its model as well: the batch has no ``reset``.
        """
        for number in itertools.count(start):
            yield self.training_batch(number, columns=columns, length=length, seed=seed)

    @classmethod
    def load(cls, folder: Path) -> Stream:
        """Map the arrays of a prepared split into memory.

        Raises:
            ReplicationError: a file is missing or cut short.
        """
        known = ("distances",) if (folder / "distances.npy").exists() else ()
        return cls(*load_arrays(folder, ("symbols", *known)))

    def _batch(self, places: Indices, scored: NDArray[np.bool_], *, reset: bool) -> LanguageBatch:
        """The symbols at these (B, T) places as targets; places beyond the end are padding."""
        inside = places < len(self)
        scored = scored & inside
        inputs = np.where(places == 0, EOS, self.symbols[np.where(inside, places - 1, 0)])
        parts = (
            np.where(inside, inputs, PAD),
            np.where(scored, self.symbols[np.where(scored, places, 0)], PAD),
            np.where(scored, places, -1),
        )
        read, said, where = (torch.from_numpy(part.astype(np.int64)) for part in parts)
        return LanguageBatch(read, said, where, reset)


class PreparedLanguage(Prepared):
    """What the prepare stage leaves: tokeniser and encoded splits, whose batches are parts of a running text."""

    @property
    def units(self) -> Mapping[str, int]:
        """Split to how many units it has that losses are per, line ends included if they are symbols.

        Words are those that the tokeniser tells apart. A stream's nats divided by these are nats per unit, whatever the
        symbols: perplexity is ``exp`` of it, bits per unit are ``/ log(2)``.
        """
        return {name: split["units"] for name, split in self.summary["splits"].items()}

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
