"""The Lightning modules of models of sequences: what they optimise, what they report, and what the model is told."""

import numpy as np
import pytest
import torch

from shared.data.batching import endless_batches
from shared.layers.outputs import MixtureOfLogistics
from shared.tasks.sequences.module import SequenceModule
from shared.tasks.sequences.settings import VOCABULARY, SequenceTraining
from tests.tasks.modules import SETTINGS, logged, train
from tests.tasks.sequences.toy_sequence_models import Toy, ToyConfig, random_proteins

PROTEINS = random_proteins(30, seed=3)
VALID = PROTEINS.batch(np.arange(9))


def config(**changes):
    return SequenceTraining.model_validate(
        SETTINGS | {"updates": 5, "batch": {"sentences": 4}, "validate_every": 2} | changes
    )


def module_of(counts_hits=False, **changes):
    torch.manual_seed(1)
    model = Toy(ToyConfig(size=8, noise=0.3), VOCABULARY, causal=False)
    return SequenceModule(model, config(**changes), counts_hits=counts_hits)


def test_where_hits_are_not_counted_nobody_asks_for_the_most_probable_symbol(monkeypatch):
    module = module_of()
    module.model.output = MixtureOfLogistics(width=16, levels=VOCABULARY)
    monkeypatch.setattr(module.model.output, "log_probs", None)
    values = logged(module, monkeypatch)
    with torch.no_grad():
        module.validation_step(VALID, 0)
    module.on_validation_epoch_end()
    assert values.keys() == {"valid_loss"}
    assert module_of(counts_hits=True, monitor="error").monitor == "valid_error"


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_model_is_told_of_every_update_once_also_by_a_run_that_is_continued(tmp_path, accumulate):
    told = []
    for name, updates, fingerprint in (("whole", 5, "a"), ("parts", 2, "b"), ("parts", 5, "b")):
        module = module_of(updates=updates, accumulate=accumulate)
        train(module, tmp_path / name, masked, [VALID], fingerprint)
        told.append(module.model.told)
    assert told == [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4]]


def masked(start):
    order = endless_batches(PROTEINS.lengths, pool=2, seed=5, sentences=4, start=start)
    return (PROTEINS.batch(chosen, (5, number)) for number, chosen in enumerate(order, start))
