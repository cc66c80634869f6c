"""The Lightning module of translation models: what it optimises, what it reports, and when it stops."""

import pytest
import torch
from torch import nn

from shared.data.parallel import Batch
from shared.data.tokenizers import BOS, EOS, PAD
from shared.errors import ReplicationError
from shared.training.config import TrainingConfig
from shared.training.loss import smoothed_loss, token_nll
from shared.training.run import train_run
from shared.training.translation import TranslationModule

V = 7


class Bigrams(nn.Module):
    """Predicts a word from the one before it; the attention is None, as RNNencdec's."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(V, V)

    def forward(self, source, source_mask, target):
        return self.table(target), None


class Poisoned(Bigrams):
    """Its loss is finite and its gradient is not."""

    def forward(self, source, source_mask, target):
        logits, _ = super().forward(source, source_mask, target)
        return logits + torch.sqrt(self.table.weight.sum() * 0), None  # the root's slope at 0 is infinite


def config(**changes):
    settings = {
        "updates": 3, "batch": {"sentences": 2}, "optimizer": {"name": "adam", "learning_rate": 0.1},
        "validate_every": 1,
    }  # fmt: skip
    return TrainingConfig.model_validate(settings | changes)


def batch(*targets):
    """A batch with the given target words."""
    longest = max(map(len, targets)) + 1
    padded = [[*words, EOS, *[PAD] * (longest - len(words) - 1)] for words in targets]
    labels = torch.tensor(padded)
    shifted = torch.tensor([[BOS, *words, *[PAD] * (longest - len(words) - 1)] for words in targets])
    return Batch(source=labels, target=shifted, labels=labels)


def logged(module, monkeypatch):
    values = {}
    monkeypatch.setattr(module, "log", lambda name, value, **_: values.update({name: float(value)}))
    return values


def test_losses_are_made_in_float32_whatever_the_logits_are():
    logits, labels = torch.randn(1, 2, V).bfloat16(), torch.tensor([[4, EOS]])
    assert token_nll(logits, labels).dtype == torch.float32
    assert smoothed_loss(logits, labels, 0.1).dtype == torch.float32


def test_training_optimises_the_smoothed_mean_and_logs_it(monkeypatch):
    module = TranslationModule(Bigrams(), config(label_smoothing=0.2))
    values, examples = logged(module, monkeypatch), batch([4, 5], [6])
    loss = module.training_step(examples, 0)
    torch.testing.assert_close(loss, smoothed_loss(module.model.table(examples.target), examples.labels, 0.2))
    loss.backward()
    assert values == {"train_loss": pytest.approx(float(loss.detach()))}
    assert (module.model.table.weight.grad[PAD] == 0).all()  # the word before a padded label teaches nothing


def test_valid_loss_is_the_mean_over_labels_and_not_over_batches(monkeypatch):
    module = TranslationModule(Bigrams(), config(label_smoothing=0.2))
    values, batches = logged(module, monkeypatch), [batch([4, 5, 6, 4, 5], [6]), batch([4])]
    with torch.no_grad():
        for _ in range(2):  # the second epoch begins with nothing of the first
            for number, examples in enumerate(batches):
                module.validation_step(examples, number)
            module.on_validation_epoch_end()
            nll = torch.cat([token_nll(module.model.table(b.target), b.labels).flatten() for b in batches])
            labels = torch.cat([b.labels.flatten() for b in batches])
            assert values["valid_loss"] == pytest.approx(float(nll[labels != PAD].mean()), rel=1e-6)
            assert (labels != PAD).sum() == 10
            module.model.table.weight.mul_(2)


def test_a_long_gradient_is_scaled_down_and_a_short_one_is_left():
    module = TranslationModule(Bigrams(), config(clip=1.0))
    for size, expected in ((10.0, 1.0), (0.25, 0.25)):
        gradient = torch.randn(V, V)
        module.model.table.weight.grad = size * gradient / gradient.norm()
        module.configure_gradient_clipping(None)
        assert float(module.model.table.weight.grad.norm()) == pytest.approx(expected, rel=1e-4)


def test_a_gradient_that_is_not_finite_stops_the_run_before_it_touches_a_weight(tmp_path):
    module, examples = TranslationModule(Poisoned(), config()), batch([4, 5], [6])
    before = module.model.table.weight.detach().clone()
    with pytest.raises(ReplicationError, match="not finite at update 1; lower the learning rate"):
        train_run(
            module, module.config, batches=lambda start: iter([examples] * 3), valid=[examples], seed=1,
            folder=tmp_path / "run", fingerprint="", label="a run",
        )  # fmt: skip
    assert torch.equal(module.model.table.weight, before)
