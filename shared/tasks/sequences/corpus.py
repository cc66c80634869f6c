"""The corpora that are separate sequences of symbols: how they are prepared, opened and handed out in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.tasks.batches import Prepared, training_order
from shared.tasks.sequences import copying, pixels, proteins
from shared.tasks.sequences.batches import SequenceBatch, Sequences
from shared.tasks.sequences.settings import SequenceCorpusConfig, SequenceTraining

CORPORA: Mapping[str, Any] = {"copies": copying, "pixels": pixels, "proteins": proteins}
"""``of`` to a module with its ``prepare(config, dataset, out)`` and ``open_split(config, folder, name)``."""


def prepare(config: SequenceCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write what training and evaluation read, from the fetched folder ``dataset`` into ``out``; returns a summary.

    Raises:
        ReplicationError: the fetched data are incomplete or do not fit the settings.
    """
    return CORPORA[config.of].prepare(config, dataset, out)


class PreparedSequences(Prepared):
    """What the prepare stage leaves, with the same settings."""

    config: SequenceCorpusConfig

    @property
    def symbols(self) -> int:
        """V, with special and start symbols."""
        return int(self.summary.get("vocabulary", self.config.symbols))

    @property
    def sizes(self) -> tuple[int, bool]:
        """V, and whether each symbol is predicted from those before it."""
        return self.symbols, self.config.causal

    def split(self, name: str) -> Sequences:
        """``train``, ``valid`` or a test split."""
        return CORPORA[self.config.of].open_split(self.config, self.folder, name)

    def batches(self, training: SequenceTraining, seed: int) -> Callable[[int], Iterator[SequenceBatch]]:
        """From a batch's number to that batch of training and all that follow it.

        Seed and batch number determine the masks, so a continued run has the same ones.
        """
        train = self.split("train")
        order = training_order(train, training.batch, seed)
        return lambda start: (
            train.batch(indices, (seed, number)) for number, indices in enumerate(order(start=start), start)
        )


PREPARED = PreparedSequences
