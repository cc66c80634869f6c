"""Parallel text as arrays: tokenised once, kept on disk, read back without parsing; and its batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.ragged import RaggedArray
from shared.data.storage import load_arrays, read_columns, read_lines, save_arrays, write_lines, write_summary
from shared.data.tokenizers import BOS, EOS, PAD, UNK, Tokenizer, load_tokenizer, train_tokenizers
from shared.errors import ReplicationError
from shared.metrics.alignment import parse_pharaoh
from shared.metrics.word_aligner import WordAligner
from shared.tasks.batches import Batch, Prepared, Split
from shared.tasks.translation.settings import ParallelCorpusConfig, TranslationTraining

ARRAYS = ("source", "source_offsets", "target", "target_offsets", "words")
SIDES = ("source", "target")
Pair = tuple[str, str, str]
"""A line, its translation and, if it is known, their word alignment."""


@dataclass(frozen=True)
class TranslationBatch(Batch):
    """Right-padded symbols. ``target`` begins with a start symbol, ``source`` and ``labels`` end with an end symbol."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T) y_0 … y_{T-1}
    labels: Tensor  # (B, T) y_1 … y_T

    @property
    def source_mask(self) -> Tensor:
        """(B, S) true at words and at the end symbol."""
        return self.source != PAD

    @property
    def tokens(self) -> int:
        """Number of labels that are not padding."""
        return int((self.labels != PAD).sum())


@dataclass(frozen=True)
class ParallelText(Split):
    """One split: both sides as symbols, without start and end symbol, and the number of words of each."""

    source: RaggedArray
    target: RaggedArray
    words: NDArray[np.integer]  # (pairs,) words of the longer side

    def batch(self, indices: Indices) -> TranslationBatch:
        """The pairs with these indices."""
        target = self.target.padded(indices)
        return TranslationBatch(
            source=_with_end(self.source.padded(indices), self.source.lengths[indices]),
            target=torch.nn.functional.pad(target, (1, 0), value=BOS),
            labels=_with_end(target, self.target.lengths[indices]),
        )

    @property
    def lengths(self) -> tuple[NDArray[np.integer], ...]:
        """(pairs,) symbols of the targets and of the sources, each with its end symbol."""
        return self.target.lengths + 1, self.source.lengths + 1

    def up_to(self, max_words: int) -> ParallelText:
        """The pairs with at most ``max_words`` words on either side (the -30 and -50 of the paper's models)."""
        keep = self.words <= max_words
        if not keep.any():
            raise ReplicationError(f"no training pair has at most {max_words} words; raise max_words.")
        return ParallelText(self.source.select(keep), self.target.select(keep), self.words[keep])

    def save(self, folder: Path) -> None:
        """Write five ``.npy`` arrays into ``folder``."""
        sides = self.source.flat, self.source.offsets, self.target.flat, self.target.offsets
        save_arrays(folder, dict(zip(ARRAYS, (*sides, self.words), strict=True)))

    @classmethod
    def load(cls, folder: Path) -> ParallelText:
        """Map the arrays of :meth:`save` into memory.

        Raises:
            ReplicationError: a file is missing or cut short.
        """
        flat = load_arrays(folder, ARRAYS)
        return cls(RaggedArray(flat[0], flat[1]), RaggedArray(flat[2], flat[3]), flat[4])


class PreparedText(Prepared):
    """What the prepare stage leaves: tokenisers, encoded splits, the test text itself."""

    @cached_property
    def source(self) -> Tokenizer:
        """Of the texts that are translated."""
        return load_tokenizer(self.folder / "source.tokenizer")

    @cached_property
    def target(self) -> Tokenizer:
        """Of the translations."""
        return load_tokenizer(self.folder / "target.tokenizer")

    @property
    def sizes(self) -> tuple[int, int]:
        """Of the two vocabularies."""
        return len(self.source), len(self.target)

    def split(self, name: str) -> ParallelText:
        """An encoded split: ``train``, ``valid`` or a test split."""
        return ParallelText.load(self.folder / name)

    def training_split(self, training: TranslationTraining) -> ParallelText:
        """All pairs that are trained on."""
        train = self.split("train")
        return train if training.max_words is None else train.up_to(training.max_words)

    def lines(self, name: str) -> tuple[list[str], list[str]]:
        """The source and target text of a test split."""
        source, target = (read_lines(self.folder / name / f"{side}.txt") for side in SIDES)
        return source, target

    def dictionary(self) -> dict[str, str]:
        """Translations of single source words, in the vocabulary or not; none if the corpus does not ask for them."""
        path = self.folder / "dictionary.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def alignments(self, name: str) -> list[str] | None:
        """Gold word alignments of a test split, one ``s-t …`` line per pair, or None if there are none."""
        path = self.folder / name / "align.txt"
        return read_lines(path) if path.exists() else None


PREPARED = PreparedText


def prepare(config: ParallelCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Train the tokenisers on the training text and encode every split into ``out``.

    Args:
        config: the task's corpus.
        dataset: the fetched folder with ``<split>.<language>`` files.
        out: the folder to write; only whole when this returns.

    Returns:
        A summary: pairs, symbols and unknown words per split, vocabulary sizes.

    Raises:
        ReplicationError: a language or split is missing, or no pair is left after filtering.
    """
    splits = {split: _read_pairs(dataset, split, config) for split in config.splits}
    splits["train"] = _select(splits["train"], config)
    tokenizers = train_tokenizers(*_sides(splits["train"]), config.tokenizer)
    summary: dict[str, object] = {"dataset": config.dataset, "unit": tokenizers[1].unit}
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(out / f"{side}.tokenizer")
        summary[f"{side}_vocabulary"] = len(tokenizer)
    for split, pairs in splits.items():
        columns = _sides(pairs)
        source, target = (RaggedArray.pack(each.encode(lines)) for each, lines in zip(tokenizers, columns, strict=True))
        words = [np.array([len(line.split()) for line in lines], dtype=np.int32) for lines in columns]
        text = ParallelText(source, target, np.maximum(*words))
        text.save(out / split)
        summary[split] = {
            "pairs": len(text),
            "source_symbols": int(text.source.offsets[-1]),
            "target_symbols": int(text.target.offsets[-1]),
            "unknown_share": float(np.mean(text.target.flat == UNK)) if len(text.target.flat) else 0.0,
        }
        if split != "train":
            for side, lines in zip(SIDES, columns, strict=True):
                write_lines(out / split / f"{side}.txt", lines)
            if (dataset / f"{split}.align").exists():
                write_lines(out / split / "align.txt", [alignment for _, _, alignment in pairs])
    if config.dictionary:
        words_of = [(tokenizers[0].split(source), tokenizers[1].split(target)) for source, target, _ in splits["train"]]
        clear = WordAligner.train(words_of).translations(threshold=0.1, count=2)
        summary["dictionary"] = len(clear)
        (out / "dictionary.json").write_text(json.dumps(clear, ensure_ascii=False), encoding="utf-8")
    return write_summary(out, config, summary)


def _read_pairs(dataset: Path, split: str, config: ParallelCorpusConfig) -> list[Pair]:
    """The pairs of a split of which neither side is empty; refuses gold links of words that are not there."""
    columns = read_columns(dataset, split, (config.source, config.target), optional=("align",))
    source, target = columns[config.source], columns[config.target]
    pairs = [*zip(source, target, columns.get("align", [""] * len(source)), strict=True)]
    for number, (*sides, links) in enumerate(pairs if "align" in columns else (), start=1):
        lengths = [len(side.split()) for side in sides]
        if (parse_pharaoh(links).possible >= lengths).any():
            raise ReplicationError(
                f"{dataset / split}.align, line {number}: '{links}' has a place outside of a pair of {lengths[0]} and "
                f"{lengths[1]} words, counted from 0; correct the data."
            )
    return [pair for pair in pairs if pair[0].strip() and pair[1].strip()]


def _select(pairs: Sequence[Pair], config: ParallelCorpusConfig) -> list[Pair]:
    """The training pairs that are used."""
    kept = []
    for pair in pairs:
        shorter, longer = sorted(len(side.split()) for side in pair[:2])
        if longer <= config.max_words and longer <= config.max_ratio * shorter:
            kept.append(pair)
    if not kept:
        raise ReplicationError(f"no training pair of {config.dataset} is left; raise max_words or max_ratio.")
    return kept[: config.train_pairs]


def _sides(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _with_end(symbols: Tensor, lengths: NDArray[np.int64]) -> Tensor:
    """(B, L) right-padded symbols to (B, L+1) with the end symbol after each sequence."""
    extended = torch.nn.functional.pad(symbols, (0, 1), value=PAD)
    return extended.scatter_(1, torch.from_numpy(lengths).unsqueeze(1), EOS)
