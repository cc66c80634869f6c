"""The copy task of Katharopoulos et al. (2020, section 4.1): its sequences, kept or drawn anew; and their batches.

One sequence is ``0 w 0 w``, as Kitaev et al. (2020) have it, with a random word w and the separator 0, which is the
start symbol, too. The second w can be predicted without an error, the first one not at all.

Shape letters: N sequences of a split, B of a batch, T symbols read of the longest: 2n + 1 for a word of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared.config import build
from shared.data.batching import Indices
from shared.data.generated.sequences import FILE, Copy
from shared.data.ragged import RaggedArray
from shared.data.storage import write_summary
from shared.errors import ReplicationError
from shared.records import read_record
from shared.tasks.sequences.batches import SequenceBatch, Sequences
from shared.tasks.sequences.settings import CopyCorpusConfig


def copies(word_lengths: NDArray[np.int64], word: Callable[[int], NDArray[np.integer]]) -> Sequences:
    """A split whose second w is scored.

    Args:
        word_lengths: (N,) symbols of each word.
        word: from a sequence's number to its word, (n,) symbols from 1.
    """

    def batch(indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        words = [word(index) for index in indices.tolist()]
        sizes = np.array([[len(word)] for word in words])
        whole = np.zeros((len(words), 2 * sizes.max() + 2), dtype=np.int64)
        for row, w in zip(whole, words, strict=True):
            row[1 : len(w) + 1] = row[len(w) + 2 : 2 * len(w) + 2] = w
        places = np.arange(whole.shape[1] - 1)
        read = places <= 2 * sizes
        return SequenceBatch(
            inputs=torch.from_numpy(whole[:, :-1] * read),
            targets=torch.from_numpy(whole[:, 1:]),
            scored=torch.from_numpy(read & (places > sizes)),
            mask=None if read.all() else torch.from_numpy(read),
        )

    return Sequences((2 * word_lengths + 1,), batch)


def open_split(config: CopyCorpusConfig, folder: Path, name: str) -> Sequences:
    """``train``, whose words are drawn when they are asked for and are in no other split, or one that is kept."""
    if name != "train":
        words = RaggedArray.load(folder / name)
        return copies(words.lengths, words.__getitem__)
    kept = [RaggedArray.load(folder / split) for split in config.splits[1:]]
    excluded = {words[i].tobytes() for words in kept for i in range(len(words))}
    parameters, lengths = _parameters(folder), config.lengths("train")

    def word(index: int) -> NDArray[np.uint8]:
        return np.frombuffer(parameters.draw("train", index, int(lengths[index]), excluded), dtype=np.uint8)

    return copies(lengths, word)


def prepare(config: CopyCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Draw the words of every split but train into ``out``; none comes twice, within a split or in two.

    Returns:
        A summary: number of symbols; of each split the numbers of sequences and of symbols that are scored.

    Raises:
        ReplicationError: the parameters are missing, or there are too few different words.
    """
    parameters = _parameters(dataset)
    kept = config.splits[1:]
    shortest = sum(int((config.lengths(split) == config.shortest).sum()) for split in kept)
    if parameters.symbols**config.shortest < 2 * shortest:
        raise ReplicationError(
            f"{shortest} words of {config.shortest} symbols for {', '.join(kept)} leave too few for training; choose a "
            "greater 'shortest', or fewer 'sequences'."
        )
    seen: set[bytes] = set()
    splits: dict[str, Any] = {}
    for split in config.splits:
        lengths = config.lengths(split)
        splits[split] = {"sequences": len(lengths), "symbols": int(lengths.sum())}
        if split in kept:
            words = []
            for number, length in enumerate(lengths.tolist()):
                words.append(parameters.draw(split, number, length, seen))
                seen.add(words[-1])
            RaggedArray.pack(words, np.uint8).save(out / split)
    (out / FILE).write_text(parameters.model_dump_json(), encoding="utf-8")
    summary = {"dataset": config.dataset, "vocabulary": parameters.symbols + 1, "splits": splits}
    return write_summary(out, config, summary)


def _parameters(folder: Path) -> Copy:
    path = folder / FILE
    return build(Copy, read_record(path, "run the stage again that makes its folder"), where=str(path))
