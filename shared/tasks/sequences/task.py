"""What all papers whose models predict symbols of separate sequences have in common.

It is a :class:`shared.tasks.replication.Task`. A model is a :class:`shared.decoding.protocol.SequenceModel`; it
is built of its settings, the size of the vocabulary and whether symbols are predicted from those before them, or else
from all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from shared.config import merge
from shared.decoding.protocol import SequenceModel
from shared.errors import ReplicationError
from shared.tasks.replication import Replication, full_batch_size, ready
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch
from shared.tasks.sequences.corpus import load_prepared, prepare_sequences
from shared.tasks.sequences.evaluation import evaluate_sequences
from shared.tasks.sequences.settings import SequenceRun

if TYPE_CHECKING:
    from shared.tasks.sequences.module import SequenceModule

MASKED_IN = 7
"""About one in so many letters is predicted where letters are masked (15 %)."""
prepare = prepare_sequences


def open_data(config: SequenceRun, prepared: Path) -> PreparedSequences:
    """What the prepare stage left in a folder."""
    return load_prepared(config.corpus, prepared)


def random_batch(config: SequenceRun) -> tuple[SequenceBatch, tuple[int, bool]]:
    """A batch of random symbols as large as in training, and the other arguments of models."""
    symbols, length = config.corpus.sizes
    count, every = full_batch_size(config.training.batch, length), 1 if config.corpus.causal else MASKED_IN
    read = torch.randint(symbols - 1, (count, length + 1))  # the last symbol may be one that only starts
    scored = (torch.arange(length) % every == 0).expand(count, -1)
    return SequenceBatch(read[:, :-1], read[:, 1:], scored), (symbols, config.corpus.causal)


def module(model: nn.Module, config: SequenceRun, text: object) -> SequenceModule:
    """The Lightning module."""
    from shared.tasks.sequences.module import CountingSequenceModule, SequenceModule

    kind = CountingSequenceModule if config.corpus.counts_hits else SequenceModule
    return kind(model, config.training)


def evaluate(
    replication: Replication, config: SequenceRun, text: PreparedSequences, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Score the test splits with one trained seed, and with its weights in other models; there are no ensembles."""
    (model,) = replication.trained_models(config, text, trained)
    swapped = {name: ready(_swapped(replication, config, text, model, name)) for name in config.evaluation.swapped}
    return evaluate_sequences(model, text, config, out, swapped)


def describe(config: SequenceRun) -> Mapping[str, Any]:
    """What losses are reported per."""
    return {"token": config.corpus.unit}


def _swapped(
    replication: Replication, config: SequenceRun, text: PreparedSequences, trained: nn.Module, name: str
) -> nn.Module:
    """The swapped model ``name`` with the trained weights; the trained model's ``origin`` seeds its random draws.

    Raises:
        ReplicationError: its weights differ from the trained ones in names or shapes.
    """
    changed = config.with_model(merge(config.model, config.evaluation.swapped[name]))
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(int(cast(SequenceModel, trained).origin))
        model = replication.model(changed, text.sizes)
    if _shapes(model) != _shapes(trained):
        raise ReplicationError(
            f"evaluation.swapped.{name} makes a model whose weights are others than those trained; leave out what "
            "changes them."
        )
    model.load_state_dict(dict(trained.named_parameters()), strict=False)
    cast(SequenceModel, model).at_update(config.training.updates)  # brings it to the same state of training
    return model


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}
