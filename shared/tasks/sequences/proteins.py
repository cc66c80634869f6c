"""Proteins for language models: letters as symbols, read from left to right or with some of them masked.

Shape letters: B sequences of a batch, T symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.homology import AMINO_ACIDS
from shared.data.ragged import RaggedArray
from shared.data.storage import read_columns, read_lines, write_lines, write_summary
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL
from shared.errors import ReplicationError
from shared.tasks.sequences.batches import SequenceBatch, Sequences
from shared.tasks.sequences.settings import FIRST, LETTERS, MASK, VOCABULARY, ProteinCorpusConfig

_MASKED = 0.15
_HIDDEN, _SCRAMBLED = 0.8, 0.1
_CODES = np.zeros(256, dtype=np.uint8)
_CODES[list(LETTERS.encode())] = np.arange(FIRST, VOCABULARY)
_STRINGS = np.array([*SPECIAL, "<mask>", *LETTERS])


def proteins(sequences: RaggedArray, *, masked: bool = False) -> Sequences:
    """A split of sequences without start and end symbol.

    In a causal batch (UNI in the paper) each symbol is predicted from the symbols before it; a start symbol stands
    before the first. In a masked batch (BID) 15 % of the letters of each sequence are predicted from the whole input.
    Of these letters, the input has :data:`MASK` in place of 80 %, a random standard amino acid in place of 10 %, and
    10 % unchanged (Devlin et al. 2019, section 3.1). The seed and the index of a sequence alone decide which letters
    are predicted, whatever the batch, so models that are judged with one seed are judged on the same letters.
    """

    def batch(indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        symbols = sequences.padded(indices)
        read = symbols != PAD
        mask = None if read.all() else read
        if masked:
            inputs, targets = _masked(symbols.numpy(), indices, seed)
            return SequenceBatch(inputs, targets, targets != PAD, mask)
        before = torch.cat((torch.full_like(symbols[:, :1], BOS), symbols[:, :-1]), dim=1)
        return SequenceBatch(before.masked_fill(~read, PAD), symbols, read, mask)

    return Sequences((sequences.lengths,), batch)


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


def open_split(config: ProteinCorpusConfig, folder: Path, name: str) -> Sequences:
    """An encoded split: ``train``, ``valid`` or a test split."""
    return proteins(RaggedArray.load(folder / name), masked=config.masked)


def families(folder: Path, split: str) -> list[str] | None:
    """The family of each protein of a prepared split; None where sequences were concatenated."""
    path = folder / split / "key.txt"
    return [key.partition(":")[0] for key in read_lines(path)] if path.exists() else None


def encode(sequence: str) -> NDArray[np.uint8]:
    """(T,) a symbol for each letter; characters outside of :data:`LETTERS` become PAD."""
    return _CODES[np.frombuffer(sequence.encode("latin-1", "replace"), dtype=np.uint8)]


def decode(symbols: Sequence[int] | NDArray[np.integer]) -> str:
    """Letters; special symbols are written out."""
    return "".join(_STRINGS[np.asarray(symbols, dtype=np.int64)].tolist())


def prepare(config: ProteinCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Encode every split of ``dataset``, ``<split>.sequence`` with ``.name`` and ``.key``, into ``out``.

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
        if config.concatenated:  # into pieces of one length, the last of which may be shorter
            order = np.random.default_rng(0).permutation(len(symbols))
            flat = np.concatenate([np.append(symbols[i], np.uint8(EOS)) for i in order])
            sequences = RaggedArray(flat, np.append(np.arange(0, len(flat), config.length), len(flat)))
        else:
            sequences = RaggedArray.pack([line[: config.length].tolist() for line in symbols], np.uint8)
        sequences.save(out / split)
        if not config.concatenated:
            write_lines(out / split / "key.txt", columns["key"])
        splits[split] = {
            "proteins": len(symbols), "sequences": len(sequences), "letters": int((sequences.flat >= FIRST).sum()),
        }  # fmt: skip
    return write_summary(out, config, {"dataset": config.dataset, "vocabulary": VOCABULARY, "splits": splits})


def _chosen(config: ProteinCorpusConfig, dataset: Path, split: str) -> dict[str, list[str]]:
    """Column name to its lines, of the proteins of a split that the task uses."""
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
