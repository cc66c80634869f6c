"""A small training run as a program of its own, which can kill itself without warning at a chosen point.

    python tests/training/killable_run.py FOLDER [--kill train:17] [--signal 9] [--updates 30] …
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from replications.bahdanau.model import RNNsearch
from shared.data.batching import endless_batches
from shared.data.parallel import Batch, ParallelText, Sequences
from shared.errors import ReplicationError
from shared.training.config import TrainingConfig
from shared.training.run import train_run
from shared.training.translation import TranslationModule

VOCABULARY = 12


def random_text(pairs: int, seed: int) -> ParallelText:
    """Pairs of a random sequence and its reverse."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 7, pairs)
    lines = [generator.integers(4, VOCABULARY, length).tolist() for length in lengths]
    return ParallelText(Sequences.pack(lines), Sequences.pack([line[::-1] for line in lines]), lengths)


class Killable(TranslationModule):
    """Sends itself a signal at the given call of a step."""

    def __init__(self, *arguments: Any, kill: str, signal: int, poison: int) -> None:
        super().__init__(*arguments)
        self._where, _, number = kill.partition(":")
        self._number, self._signal, self._poison, self._calls = int(number or 0), signal, poison, {}

    def _count(self, where: str) -> None:
        self._calls[where] = self._calls.get(where, 0) + 1
        if (where, self._calls[where]) == (self._where, self._number):
            os.kill(os.getpid(), self._signal)

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        self._count("train")
        loss = super().training_step(batch, batch_idx)
        return loss * float("nan") if self.global_step + 1 == self._poison else loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._count("valid")
        super().validation_step(batch, batch_idx)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kill", default="")
    parser.add_argument("--signal", type=int, default=9)
    parser.add_argument("--poison", type=int, default=0, help="update whose loss is not a number")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--patience", type=int)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--fingerprint", default="same")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = TrainingConfig(
        updates=options.updates, batch={"sentences": 8}, optimizer={"name": "adam", "learning_rate": 0.02},
        schedule={"name": "cosine", "warmup": 5}, validate_every=6, patience=options.patience,
        accumulate=options.accumulate, precision=options.precision,
    )  # fmt: skip
    torch.manual_seed(3)
    model = RNNsearch(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, embedding_size=6, hidden_size=8,
        alignment_size=8, maxout_size=5, dropout=0.3, init_std=0.3,
    )  # fmt: skip
    train, valid = random_text(80, seed=1), random_text(20, seed=2)  # ten batches an epoch
    axes = (train.target.lengths, train.source.lengths)
    try:
        record = train_run(
            Killable(model, config, kill=options.kill, signal=options.signal, poison=options.poison), config,
            batches=lambda start: train.batches(endless_batches(axes, pool=3, seed=5, start=start, sentences=8)),
            valid=[valid.batch(np.arange(10)), valid.batch(np.arange(10, 20))],
            folder=options.folder, seed=7, fingerprint=options.fingerprint, label="run",
        )  # fmt: skip
    except ReplicationError as error:
        sys.exit(f"error: {error}")
    print(record)


if __name__ == "__main__":
    main()
