"""The training loop beside a plain one that makes the same updates to the same weights, and nothing else."""

from __future__ import annotations

import itertools
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import bahdanau, transformer
from benchmarks.steps import Step
from replications.bahdanau.model import RNNsearch
from shared.tasks.translation.corpus import TranslationBatch
from shared.tasks.translation.module import TranslationModule
from shared.tasks.translation.settings import TranslationTraining
from shared.training.run import train_run

UPDATES = 40
CONFIG = TranslationTraining.model_validate({
    "updates": UPDATES, "validate_every": UPDATES, "batch": {"tokens": 1000},
    "optimizer": {"name": "adam", "learning_rate": 0.001},
})  # fmt: skip


def loops(build: Any, vocabulary: int) -> dict[str, Step]:
    """Runs of 40 updates of 36 pairs of 28 words.

    Raises:
        AssertionError: they end with different weights.
    """
    words, previous, labels = torch.randint(4, vocabulary, (3, 36, 28))
    batch = TranslationBatch(words, previous, labels)

    def begin() -> TranslationModule:
        torch.manual_seed(0)
        return TranslationModule(build(), CONFIG)

    def plain() -> TranslationModule:
        module = begin()
        optimizer = module.configure_optimizers()
        for number in range(UPDATES):
            torch.default_generator.manual_seed(1_000_003 + number)
            optimizer.zero_grad()
            module.training_step(batch, number).backward()
            module.make_update(optimizer)
        return module

    def ours() -> TranslationModule:
        train(module := begin(), CONFIG, lambda start: itertools.repeat(batch), [batch])
        return module

    for one, other in zip(plain().parameters(), ours().parameters(), strict=True):
        assert torch.equal(one, other)
    return {"plain": plain, "ours": ours}


def train(module: TranslationModule, training: TranslationTraining, batches: Any, valid: Any, seed: int = 1) -> None:
    """A run of the training loop whose files nobody keeps."""
    with tempfile.TemporaryDirectory() as folder:
        train_run(
            module, training, batches=batches, valid=valid, folder=Path(folder), seed=seed, fingerprint="", label="run"
        )


COMPARISONS = {
    "RNNsearch": partial(loops, partial(RNNsearch, **bahdanau.SIZES), bahdanau.VOCABULARY),
    "Transformer": partial(loops, transformer.ours, transformer.VOCABULARY),
}
