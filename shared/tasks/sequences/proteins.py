"""Proteins for language models: letters as symbols, read from left to right or with some of them masked.

Shape letters: B sequences of a batch, T symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.homology import AMINO_ACIDS
from shared.data.ragged import RaggedArray
from shared.data.storage import read_columns, read_lines, read_summary, write_lines, write_summary
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL
from shared.errors import ReplicationError
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch
from shared.tasks.sequences.settings import FIRST, LETTERS, MASK, VOCABULARY, ProteinCorpusConfig

_MASKED = 0.15
_HIDDEN, _SCRAMBLED = 0.8, 0.1
_CODES = np.zeros(256, dtype=np.uint8)
_CODES[list(LETTERS.encode())] = np.arange(FIRST, VOCABULARY)
_STRINGS = np.array([*SPECIAL, "<mask>", *LETTERS])


@dataclass(frozen=True)
class Proteins:
    """One split.

    Attributes:
        sequences: symbols, without start and end symbol.
        masked: whether batches have some letters to be predicted from all others (BID in the paper), or each from those
            before it (UNI).
    """

    sequences: RaggedArray
    masked: bool = False

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """(number of sequences,) symbols in each, for :mod:`shared.data.batching`."""
        return (self.sequences.lengths,)

    def batch(self, indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        """The sequences with these indices.

        In a causal batch each symbol is predicted from the symbols before it; a start symbol stands before the first.
        In a masked batch 15 % of the letters of each sequence are predicted from the whole input. Of these letters,
        the input has :data:`MASK` in place of 80 %, a random standard amino acid in place of 10 %, and 10 % unchanged
        (Devlin et al. 2019, section 3.1). The seed and the index of a sequence alone decide which letters are
        predicted, whatever the batch, so models that are judged with one seed are judged on the same letters.
        """
        symbols = self.sequences.padded(indices)
        read = symbols != PAD
        mask = None if read.all() else read
        if self.masked:
            inputs, targets = _masked(symbols.numpy(), indices, seed)
            return SequenceBatch(inputs, targets, targets != PAD, mask)
        before = torch.cat((torch.full_like(symbols[:, :1], BOS), symbols[:, :-1]), dim=1)
        return SequenceBatch(before.masked_fill(~read, PAD), symbols, read, mask)


def _masked(symbols: NDArray[np.int64], indices: Indices, seed: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(B, T) symbols to what is read of them, and to the targets, PAD where nothing is to be scored."""
    inputs, targets = symbols.copy(), np.full_like(symbols, PAD)
    for row, index in enumerate(indices.tolist()):
        generator = np.random.default_rng((*seed, index))
        letters = np.flatnonzero(symbols[row] >= FIRST)
        chosen = generator.permutation(letters)[: max(1, round(_MASKED * len(letters)))]
        targets[row, chosen] = symbols[row, chosen]
        fate = generator.random(len(chosen))
        any_letter = generator.integers(FIRST, FIRST + len(AMINO_ACIDS), len(chosen))
        read = np.where(fate < _HIDDEN + _SCRAMBLED, any_letter, symbols[row, chosen])
        inputs[row, chosen] = np.where(fate < _HIDDEN, MASK, read)
    return torch.from_numpy(inputs), torch.from_numpy(targets)


@dataclass(frozen=True)
class PreparedProteins(PreparedSequences):
    """What the prepare stage leaves for training and evaluation: the encoded splits, and what they are of.

    Attributes:
        folder: of the prepared task.
        masked: as in :class:`Proteins`.
        unit: what a symbol is.
    """

    folder: Path
    masked: bool = False
    unit: ClassVar[str] = "residue"

    @property
    def sizes(self) -> tuple[int, bool]:
        """All letters and special symbols; and whether each is predicted from those before it."""
        return VOCABULARY, not self.masked

    @classmethod
    def load(cls, folder: Path, *, masked: bool = False) -> PreparedProteins:
        """Open a prepared task; raises `ReplicationError` where it was not prepared."""
        read_summary(folder)
        return cls(folder, masked)

    def split(self, name: str) -> Proteins:
        """An encoded split: ``train``, ``valid`` or a test split."""
        return Proteins(RaggedArray.load(self.folder / name), self.masked)

    def keys(self, name: str) -> list[str] | None:
        """``family:accession`` of each sequence of a split; None where sequences were concatenated."""
        path = self.folder / name / "key.txt"
        return read_lines(path) if path.exists() else None


def encode(sequence: str) -> NDArray[np.uint8]:
    """(T,) a symbol for each letter; characters outside of :data:`LETTERS` become PAD."""
    return _CODES[np.frombuffer(sequence.encode("latin-1", "replace"), dtype=np.uint8)]


def decode(symbols: Sequence[int] | NDArray[np.integer]) -> str:
    """Letters; special symbols are written out."""
    return "".join(_STRINGS[np.asarray(symbols, dtype=np.int64)].tolist())


def prepare_proteins(config: ProteinCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Encode every split into ``out``.

    Args:
        config: the task's corpus.
        dataset: the fetched folder with ``<split>.sequence``, ``<split>.name`` and ``<split>.key``.
        out: the folder to write; only whole when this returns.

    Returns:
        A summary: size of the vocabulary; of each split the numbers of proteins, of sequences, which are pieces where
        they are concatenated, and of letters.

    Raises:
        ReplicationError: a file is missing or does not fit the others, a split has no sequence, or a letter stands for
            no amino acid.
    """
    splits: dict[str, dict[str, object]] = {}
    for split in config.splits:
        columns = _chosen(config, dataset, split)
        symbols = [encode(sequence) for sequence in columns["sequence"]]
        wrong = next((i for i, line in enumerate(symbols) if not line.all()), None)
        if wrong is not None:
            raise ReplicationError(
                f"{columns['key'][wrong]} of {dataset / split}.sequence has a letter that stands for no amino acid; "
                "correct the data."
            )
        pack = _joined if config.concatenated else _cut
        sequences = pack(symbols, config.length)
        sequences.save(out / split)
        if not config.concatenated:
            write_lines(out / split / "key.txt", columns["key"])
        splits[split] = {
            "proteins": len(symbols), "sequences": len(sequences), "letters": int((sequences.flat >= FIRST).sum()),
        }  # fmt: skip
    summary = {"dataset": config.dataset, "vocabulary": VOCABULARY, "splits": splits}
    return write_summary(out, config, summary)


def _chosen(config: ProteinCorpusConfig, dataset: Path, split: str) -> dict[str, list[str]]:
    """The columns of a split, those of the proteins that are used."""
    columns = read_columns(dataset, split, ["sequence", "name", "key"])
    parts = [name.endswith(("(Fragment)", "(Fragments)")) for name in columns["name"]]
    kept = [i for i, part in enumerate(parts) if config.fragments or not part]
    if split == "train" and config.train_sequences is not None:
        order = np.random.default_rng(0).permutation(kept)
        kept = sorted(order[: config.train_sequences].tolist())
    if not kept:
        raise ReplicationError(
            f"no proteins are left in split '{split}' of {dataset}; check the card, and fetch {dataset.name} again."
        )
    return {name: [column[i] for i in kept] for name, column in columns.items()}


def _cut(symbols: Sequence[NDArray[np.uint8]], length: int) -> RaggedArray:
    parts = [line[:length] for line in symbols]
    return RaggedArray(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))


def _joined(symbols: Sequence[NDArray[np.uint8]], length: int) -> RaggedArray:
    """Pieces of ``length``, the last of which may be shorter."""
    order = np.random.default_rng(0).permutation(len(symbols))
    flat = np.concatenate([np.append(symbols[i], np.uint8(EOS)) for i in order])
    return RaggedArray(flat, np.append(np.arange(0, len(flat), length), len(flat)))
