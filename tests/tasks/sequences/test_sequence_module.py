"""The Lightning modules of models of sequences: what they optimise, what they report, and what the model is told."""

from __future__ import annotations

import pytest
import torch

from shared.data.batching import endless_batches
from shared.layers.outputs import MixtureOfLogistics
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sequences.module import SequenceModule
from shared.tasks.sequences.settings import VOCABULARY, SequenceTraining
from shared.training.run import train_run
from tests.tasks.modules import SETTINGS, logged
from tests.tasks.sequences.toy_sequence_model import ToySequenceModel, random_proteins

PROTEINS = random_proteins(30, seed=3)


def config(**changes):
    return SequenceTraining.model_validate(
        SETTINGS | {"updates": 5, "batch": {"sentences": 4}, "validate_every": 2} | changes
    )


def module_of(counts_hits=False, **changes):
    torch.manual_seed(1)
    return SequenceModule(ToySequenceModel(), config(**changes), counts_hits=counts_hits)


def batch(length=6, scored=((0, 1), (0, 4), (1, 0))):
    """Two sequences, the second of which is shorter by two."""
    torch.manual_seed(2)
    inputs, targets = (torch.randint(1, VOCABULARY, (2, length)) for _ in range(2))
    mask, counts = torch.ones(2, length, dtype=torch.bool), torch.zeros(2, length, dtype=torch.bool)
    mask[1, -2:] = False
    counts[tuple(zip(*scored, strict=True))] = True
    return SequenceBatch(inputs * mask, targets, counts, mask)


def nats_and_best(module, batch):
    h = module.model(batch.inputs, batch.mask)
    log_probs = module.model.output.log_probs(h)
    return -log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1), log_probs.argmax(-1)


def test_training_optimises_the_mean_nats_of_the_targets_that_count(monkeypatch):
    module, chosen = module_of(), batch()
    values = logged(module, monkeypatch)
    loss = module.training_step(chosen, 0)  # draws what the model adds to embeddings
    by_hand = sum(nats_and_best(module, chosen)[0][place] for place in ((0, 1), (0, 4), (1, 0))) / 3
    torch.testing.assert_close(loss, by_hand)
    weights = [*module.model.parameters()]
    for ours, theirs in zip(*(torch.autograd.grad(each, weights) for each in (loss, by_hand)), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert values == {"train_loss": pytest.approx(float(by_hand.detach()))}


def test_validation_is_a_mean_over_targets_and_not_over_batches(monkeypatch):
    module, batches = module_of(counts_hits=True), [batch(), batch(9, ((0, 8), (1, 2), (1, 3), (1, 6)))]
    values = logged(module, monkeypatch)
    with torch.no_grad():
        found = [nats_and_best(module, each) for each in batches]
        for number, each in enumerate(batches):
            module.validation_step(each, number)
        module.on_validation_epoch_end()
    nats = torch.cat([nats[each.scored] for (nats, _), each in zip(found, batches, strict=True)])
    wrong = torch.cat([(best != b.targets)[b.scored] for (_, best), b in zip(found, batches, strict=True)])
    assert len(nats) == 7
    assert values["valid_loss"] == pytest.approx(float(nats.mean()), rel=1e-6)
    assert values["valid_error"] == pytest.approx(float(wrong.float().mean()))
    assert module.model.updates == []


def test_where_hits_are_not_counted_nobody_asks_for_the_most_probable_symbol(monkeypatch):
    module = module_of()
    module.model.output = MixtureOfLogistics(width=16, levels=VOCABULARY)
    monkeypatch.setattr(module.model.output, "log_probs", None)
    values = logged(module, monkeypatch)
    with torch.no_grad():
        module.validation_step(batch(), 0)
    module.on_validation_epoch_end()
    assert values.keys() == {"valid_loss"}
    assert module_of(counts_hits=True, monitor="error").monitor == "valid_error"


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_model_is_told_of_every_update_once_also_by_a_run_that_is_continued(tmp_path, accumulate):
    told = []
    for name, updates, fingerprint in (("whole", 5, "a"), ("parts", 2, "b"), ("parts", 5, "b")):
        settings = config(updates=updates, accumulate=accumulate)
        module = module_of(updates=updates, accumulate=accumulate)
        train_run(
            module, settings, batches=masked, valid=[batch()], folder=tmp_path / name, seed=1, fingerprint=fingerprint,
            label="a run",
        )  # fmt: skip
        told.append(module.model.updates)
    assert told == [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4]]


def masked(start):
    order = endless_batches(PROTEINS.lengths, pool=2, seed=5, sentences=4, start=start)
    return (PROTEINS.batch(chosen, (5, number)) for number, chosen in enumerate(order, start))


def test_losses_are_made_in_float32_whatever_the_model_gives(monkeypatch):
    module = module_of()
    logged(module, monkeypatch)
    module.model.bfloat16()
    assert module.training_step(batch(), 0).dtype == torch.float32
