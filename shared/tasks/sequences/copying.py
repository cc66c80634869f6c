"""The copy task of Katharopoulos et al. (2020, section 4.1): its sequences, kept or drawn anew; and their batches.

One sequence is ``0 w 0 w``, as Kitaev et al. (2020) have it, with a random word w and the separator 0, which is the
start symbol, too. The second w can be predicted without an error, the first one not at all.

Shape letters: N sequences of a split, B of a batch, T symbols read of the longest: 2n + 1 for a word of n.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from shared.config import build
from shared.data.batching import Indices
from shared.data.generated.sequences import FILE, Copy
from shared.data.ragged import RaggedArray
from shared.data.storage import write_summary
from shared.errors import ReplicationError
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch
from shared.tasks.sequences.settings import CopyCorpusConfig


@dataclass(frozen=True)
class CopySplit:
    """One split.

    Attributes:
        word_lengths: (N,) symbols of each word.
        word: from a sequence's number to its word, (n,) symbols from 1.
    """

    word_lengths: NDArray[np.int64]
    word: Callable[[int], NDArray[np.integer]]

    def __len__(self) -> int:
        return len(self.word_lengths)

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """(N,) symbols that are read of each sequence, for :mod:`shared.data.batching`."""
        return (2 * self.word_lengths + 1,)

    def batch(self, indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        """The sequences with these indices; the second w is scored. The seed changes nothing."""
        words = [self.word(index) for index in indices.tolist()]
        sizes = np.array([[len(word)] for word in words])
        whole = np.zeros((len(words), 2 * sizes.max() + 2), dtype=np.int64)
        for row, word in zip(whole, words, strict=True):
            n = len(word)
            row[1 : n + 1] = row[n + 2 : 2 * n + 2] = word
        places = np.arange(whole.shape[1] - 1)
        read = places <= 2 * sizes
        return SequenceBatch(
            inputs=torch.from_numpy(whole[:, :-1] * read),
            targets=torch.from_numpy(whole[:, 1:]),
            scored=torch.from_numpy(read & (places > sizes)),
            mask=None if read.all() else torch.from_numpy(read),
        )


@dataclass(frozen=True)
class PreparedCopies(PreparedSequences):
    """What the prepare stage leaves for training and evaluation: words to be judged by, and how others are drawn.

    Attributes:
        folder: of the prepared task.
        config: the task's corpus.
        parameters: by which words are drawn.
        unit: what a symbol is.
    """

    folder: Path
    config: CopyCorpusConfig
    parameters: Copy
    unit: ClassVar[str] = "symbol"

    @classmethod
    def load(cls, folder: Path, config: CopyCorpusConfig) -> PreparedCopies:
        """Open a prepared task; raises `ReplicationError` where it was not prepared."""
        return cls(folder, config, _parameters(folder, "run the prepare stage of its task"))

    @property
    def sizes(self) -> tuple[int, bool]:
        """The symbols that words are of, and the separator; each is predicted from those before it."""
        return self.parameters.symbols + 1, True

    def split(self, name: str) -> CopySplit:
        """``train``, whose words are drawn when they are asked for and are in no other split, or one that is kept."""
        if name != "train":
            words = self._kept(name)
            return CopySplit(words.lengths, words.__getitem__)
        kept = map(self._kept, self.config.splits[1:])
        excluded = {words[i].tobytes() for words in kept for i in range(len(words))}
        lengths = self.config.lengths("train")

        def word(index: int) -> NDArray[np.uint8]:
            drawn = self.parameters.draw("train", index, int(lengths[index]), excluded)
            return np.frombuffer(drawn, dtype=np.uint8)

        return CopySplit(lengths, word)

    def _kept(self, name: str) -> RaggedArray:
        return RaggedArray.load(self.folder / name)


def prepare_copies(config: CopyCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Draw the words of every split but train into ``out``; none comes twice, within a split or in two.

    Args:
        config: the task's corpus.
        dataset: the fetched folder.
        out: the folder to write; only whole when this returns.

    Returns:
        A summary: number of symbols; of each split the numbers of sequences and of symbols that are scored.

    Raises:
        ReplicationError: the parameters are missing, or there are too few different words.
    """
    parameters = _parameters(dataset, "run the fetch stage")
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


def _parameters(folder: Path, advice: str) -> Copy:
    try:
        values = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        raise ReplicationError(f"{folder} is incomplete; {advice}.") from None
    return build(Copy, values, where=str(folder / FILE))
