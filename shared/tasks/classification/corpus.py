"""Texts with a class each as arrays, tokenised once and kept on disk; their batches, and what models answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.ragged import RaggedArray
from shared.data.storage import load_arrays, read_columns, read_lines, save_arrays, write_lines, write_summary
from shared.data.tokenizers import PAD, UNK
from shared.errors import ReplicationError
from shared.tasks.batches import Batch, Prepared, Split
from shared.tasks.classification.settings import ClassifiedCorpusConfig

TEXTS = ("first.txt", "second.txt")
"""Where the lines of the first and, if there is one, the second text of a split are kept."""


@dataclass(frozen=True)
class ClassifiedBatch(Batch):
    """Right-padded symbols of one text, or of the two of a pair, and the number of the class."""

    texts: tuple[Tensor, ...]  # per text (B, S) int64; S is its own
    labels: Tensor  # (B,) int64

    @property
    def masks(self) -> tuple[Tensor, ...]:
        """Per text (B, S), false at padding."""
        return tuple(text != PAD for text in self.texts)

    @property
    def tokens(self) -> int:
        """Number of symbols that are not padding, of all texts."""
        return sum(int(mask.sum()) for mask in self.masks)


class Classified(NamedTuple):
    """What ``model(texts, masks)`` gives, where both have one (B, n) tensor per text of an example."""

    logits: Tensor
    """(B, C), one column per class."""
    attention: tuple[Tensor, ...] = ()
    """Per text (B, r, n), zero at padding, each row with the sum one; none if the model does not attend."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the cross-entropy of each example: a penalty times its coefficient."""


@dataclass(frozen=True)
class ClassifiedText(Split):
    """One split: its texts as symbols, without start and end symbol and never empty, and their classes."""

    texts: tuple[RaggedArray, ...]
    labels: NDArray[np.int64]

    @property
    def lengths(self) -> tuple[NDArray[np.int64], ...]:
        """Per text (number of texts,) symbols in each; batches are sorted by the first."""
        return tuple(text.lengths for text in self.texts)

    def batch(self, indices: Indices) -> ClassifiedBatch:
        """The texts with these indices."""
        return ClassifiedBatch(
            tuple(text.padded(indices) for text in self.texts), torch.from_numpy(self.labels[indices])
        )

    def save(self, folder: Path) -> None:
        """Write three ``.npy`` arrays into ``folder``."""
        save_arrays(folder, {
            "symbols": np.concatenate([text.flat for text in self.texts]),
            "offsets": np.stack([text.offsets for text in self.texts]), "labels": self.labels,
        })  # fmt: skip

    @classmethod
    def load(cls, folder: Path) -> ClassifiedText:
        """Map the arrays of :meth:`save` into memory.

        Raises:
            ReplicationError: a file is missing or cut short.
        """
        symbols, offsets, labels = load_arrays(folder, ("symbols", "offsets", "labels"))
        flats = np.split(symbols, np.cumsum(offsets[:-1, -1]))
        return cls(tuple(map(RaggedArray, flats, offsets)), labels)


class PreparedClassification(Prepared):
    """What the prepare stage leaves: tokeniser, classes, encoded splits, their text."""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """In the order of their numbers."""
        return tuple(read_lines(self.folder / "classes.txt"))

    @property
    def sizes(self) -> tuple[int, int]:
        """Of the vocabulary and of the set of classes."""
        return len(self.tokenizer), len(self.classes)

    def split(self, name: str) -> ClassifiedText:
        """An encoded split: ``train``, ``valid`` or a test split."""
        return ClassifiedText.load(self.folder / name)

    def lines(self, name: str) -> tuple[list[str], ...]:
        """Per text the lines of ``valid`` or a test split, in the case that the tokeniser was given, not cut."""
        paths = (self.folder / name / file for file in TEXTS)
        return tuple(read_lines(path) for path in paths if path.exists())

    def evidence(self, name: str) -> list[list[int]] | None:
        """Per text of ``valid`` or a test split the ascending positions of the words that decide its class, if known.

        They are positions of symbols too. Those beyond ``max_tokens`` are left out.
        """
        path = self.folder / name / "evidence.txt"
        return [[int(i) for i in line.split()] for line in read_lines(path)] if path.exists() else None


PREPARED = PreparedClassification


def prepare(config: ClassifiedCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Train the tokeniser on the training texts and encode every split of ``dataset`` into ``out``.

    Returns:
        A summary: sizes of vocabulary and classes; of each split the number of texts (pairs count once) and symbols,
        the shares of unknown symbols and of texts that were cut, and the number of texts of each class.

    Raises:
        ReplicationError: a file is missing or does not fit the others, a split has no text, a class is not known from
            training, or evidence is not a position of its text.
    """
    splits = {split: _read(dataset, split, config) for split in config.splits}
    classes = _classes(splits["train"][config.label], config)
    # Checked before any text is left out, so that rare classes are known and unknown classes are detected.
    labels = {
        split: _labels(columns[config.label], classes, where=f"{dataset / split}.{config.label}")
        for split, columns in splits.items()
    }
    if config.train_texts is not None:
        chosen = np.sort(np.random.default_rng(0).permutation(len(labels["train"]))[: config.train_texts])
        labels["train"] = labels["train"][chosen]
        splits["train"] = {name: [column[i] for i in chosen] for name, column in splits["train"].items()}
    tokenizer = config.tokenizer.train(line for name in config.texts for line in splits["train"][name])
    tokenizer.save(out / "text.tokenizer")
    write_lines(out / "classes.txt", classes)
    summary: dict[str, object] = {
        "dataset": config.dataset, "unit": tokenizer.unit, "vocabulary": len(tokenizer), "classes": len(classes),
    }  # fmt: skip
    for split, columns in splits.items():
        encoded = [tokenizer.encode(columns[name]) for name in config.texts]
        # A text without symbols becomes one unknown symbol, because a model needs at least one.
        cut = ([symbols[: config.max_tokens] or [UNK] for symbols in lines] for lines in encoded)
        text = ClassifiedText(tuple(map(RaggedArray.pack, cut)), labels[split])
        text.save(out / split)
        symbols, whole = np.concatenate([side.flat for side in text.texts]), [list(map(len, of)) for of in encoded]
        counts = np.bincount(text.labels, minlength=len(classes)).tolist()
        summary[split] = {
            "texts": len(text), "symbols": len(symbols), "unknown_share": float(np.mean(symbols == UNK)),
            "cut_share": float(np.mean((np.array(whole) > np.stack(text.lengths)).any(axis=0))),
            "classes": dict(zip(classes, counts, strict=True)),
        }  # fmt: skip
        if split == "train":
            continue
        for file, language in zip(TEXTS, config.texts, strict=False):
            write_lines(out / split / file, columns[language])
        if config.evidence is not None:
            where = f"{config.dataset}/{split}.{config.evidence}"
            found = _positions(columns[config.evidence], whole[0], config.max_tokens, where)
            write_lines(out / split / "evidence.txt", found)
    return write_summary(out, config, summary)


def _read(dataset: Path, split: str, config: ClassifiedCorpusConfig) -> dict[str, list[str]]:
    """Language to the lines of a split."""
    evidence = [config.evidence] if config.evidence else []
    columns = read_columns(dataset, split, [*config.texts, config.label, *evidence])
    if not columns[config.label]:
        raise ReplicationError(
            f"no texts are left in split '{split}' of {dataset}; check the card, and fetch {dataset.name} again."
        )
    if config.lower:
        columns |= {name: [line.lower() for line in columns[name]] for name in config.texts}
    return columns


def _classes(column: Sequence[str], config: ClassifiedCorpusConfig) -> list[str]:
    """The classes in the order of their numbers; a text without one has an empty line for it."""
    classes = config.classes or sorted({*column} - {""})
    if len(classes) < 2:
        raise ReplicationError(
            f"the training texts of {config.dataset} do not have two classes to choose from; "
            f"check that '{config.label}' is the language of the classes."
        )
    return classes


def _labels(column: Sequence[str], classes: Sequence[str], *, where: str) -> NDArray[np.int64]:
    """(number of texts,) the number of each one's class."""
    numbers = {name: number for number, name in enumerate(classes)}
    for line, name in enumerate(column, start=1):
        if name not in numbers:
            raise ReplicationError(
                f"{where}, line {line}: the class '{name}' is none of {', '.join(classes)}; "
                "correct the data, or list all classes under 'classes'."
            )
    return np.array([numbers[name] for name in column], dtype=np.int64)


def _positions(lines: Sequence[str], lengths: Sequence[int], most: int | None, where: str) -> Iterator[str]:
    """The positions in lines of evidence on texts of so many words, ascending, each once and below ``most``."""
    for number, (line, length) in enumerate(zip(lines, lengths, strict=True), start=1):
        positions = sorted({int(word) if word.isdecimal() else -1 for word in line.split()})
        if positions and not 0 <= positions[0] <= positions[-1] < length:
            raise ReplicationError(
                f"{where}, line {number}: '{line}' must be positions, numbers from 0, in a text of {length} words; "
                "correct the data."
            )
        yield " ".join(str(i) for i in positions if most is None or i < most)
