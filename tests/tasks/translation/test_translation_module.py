"""The Lightning module of translation models: what it optimises, what it reports, and when it stops."""

import pytest
import torch
from torch import nn

from shared.data.tokenizers import BOS, EOS, PAD
from shared.tasks.translation.corpus import TranslationBatch
from shared.tasks.translation.module import TranslationModule
from shared.tasks.translation.settings import TranslationTraining
from shared.training.loss import smoothed_loss, token_nll
from shared.training.module import clip_gradients
from tests.tasks.modules import SETTINGS, logged

V = 7


class Bigrams(nn.Module):
    """Predicts a word from the one before it; the attention is None, as RNNencdec's."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(V, V)

    def forward(self, source, source_mask, target):
        return self.table(target), None


def config(**changes):
    return TranslationTraining.model_validate(SETTINGS | {"clip": 1.0} | changes)


def batch(*targets):
    """A batch with the given target words."""
    longest = max(map(len, targets)) + 1
    padded = [[*words, EOS, *[PAD] * (longest - len(words) - 1)] for words in targets]
    labels = torch.tensor(padded)
    shifted = torch.tensor([[BOS, *words, *[PAD] * (longest - len(words) - 1)] for words in targets])
    return TranslationBatch(source=labels, target=shifted, labels=labels)


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


def test_the_configuration_says_what_smoothing_is_over(monkeypatch):
    module, examples = TranslationModule(Bigrams(), config(label_smoothing=0.2, smoothing_over="others")), batch([4])
    logged(module, monkeypatch)
    logits = module.model.table(examples.target)
    torch.testing.assert_close(
        module.training_step(examples, 0), smoothed_loss(logits, examples.labels, 0.2, over="others")
    )
    assert config().smoothing_over == "all"


@pytest.mark.parametrize("targets", [([4, 5], [6]), ([4, 5, 6, 4, 5], [6], []), ([4],)])
def test_a_loss_per_sentence_is_a_mean_over_sentences_and_is_logged_per_label(targets, monkeypatch):
    module, examples = TranslationModule(Bigrams(), config(loss_per="sentence")), batch(*targets)
    values = logged(module, monkeypatch)
    loss = module.training_step(examples, 0)
    nll = token_nll(module.model.table(examples.target), examples.labels)
    torch.testing.assert_close(loss, nll.sum() / len(targets))
    labels = sum(len(words) + 1 for words in targets)
    assert values == {"train_loss": pytest.approx(float(nll.detach().sum()) / labels)}
    per_label = TranslationModule(module.model, config())
    logged(per_label, monkeypatch)
    torch.testing.assert_close(loss, per_label.training_step(examples, 0) * labels / len(targets))


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
        assert module.make_update(module.configure_optimizers())
        assert float(module.model.table.weight.grad.norm()) == pytest.approx(expected, rel=1e-4)


def test_without_a_limit_a_gradient_stays_and_is_still_checked():
    module = TranslationModule(Bigrams(), config(clip=None))
    gradient = 100 * torch.randn(V, V)
    module.model.table.weight.grad = gradient.clone()
    assert module.make_update(module.configure_optimizers())
    assert torch.equal(module.model.table.weight.grad, gradient)
    module.model.table.weight.grad[0, 0] = float("inf")
    assert not module.make_update(module.configure_optimizers())


class Tagger(nn.Module):
    """Two embeddings, and weights that are none."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(5, 3), nn.Embedding(4, 3)
        self.out = nn.Linear(3, 2)
        self.unused = nn.Parameter(torch.ones(2))
        for parameter in (*self.source.parameters(), *self.target.parameters(), *self.out.parameters()):
            parameter.grad = torch.randn_like(parameter)


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("most", [0.5, 100.0])
def test_if_embeddings_count_clipping_is_torchs(most):
    ours, theirs = Tagger(), Tagger()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        mine.grad = None if other.grad is None else other.grad.clone()
    norm = nn.utils.clip_grad_norm_(theirs.parameters(), most)
    assert torch.equal(clip_gradients(ours, most, without_embeddings=False), norm)
    torch.testing.assert_close(gradients(ours), gradients(theirs), atol=0, rtol=0)


@pytest.mark.parametrize("most", [0.5, 100.0])
def test_if_embeddings_do_not_count_they_are_scaled_all_the_same(most):
    model = Tagger()
    model.source.weight.grad.mul_(1000)
    before = gradients(model)
    norm = clip_gradients(model, most, without_embeddings=True)
    by_hand = sum(before[f"out.{name}"].square().sum() for name in ("weight", "bias")).sqrt()
    torch.testing.assert_close(norm, by_hand)
    factor = min(1.0, most / float(by_hand))
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, factor * before[name], atol=0, rtol=1e-5)
    assert "unused" not in before
    assert model.unused.grad is None


@pytest.mark.parametrize("without", [False, True])
def test_the_configuration_says_what_counts(without):
    module = TranslationModule(Tagger(), config(clip=0.5, clip_without_embeddings=without))
    before = gradients(module.model)
    counted = [gradient for name, gradient in before.items() if not without or name.startswith("out")]
    norm = torch.cat([gradient.flatten() for gradient in counted]).norm()
    module.make_update(module.configure_optimizers())
    after = gradients(module.model)["source.weight"]
    torch.testing.assert_close(after, before["source.weight"] * (0.5 / norm), atol=0, rtol=1e-5)
