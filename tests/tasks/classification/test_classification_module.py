"""The Lightning module of classifiers: what it optimises, what it reports, and which weights it calls best."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from shared.data.batching import endless_batches
from shared.tasks.classification.corpus import Classified, ClassifiedBatch
from shared.tasks.classification.module import ClassificationModule
from shared.tasks.classification.settings import ClassificationTraining
from tests.tasks.classification.toy_classifier import CLASSES, ToyClassifier, random_texts
from tests.tasks.modules import SETTINGS, curve, logged, train

TEXTS = random_texts(12, seed=3)


def config(**changes):
    return ClassificationTraining.model_validate(SETTINGS | changes)


def batch(*indices):
    return TEXTS.batch(np.array(indices))


class Plain(nn.Module):
    """A bag of words, which attends to nothing."""

    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(12, CLASSES, mode="sum", padding_idx=0)

    def forward(self, texts, masks):
        return Classified(sum(self.table(text) for text in texts))


def test_training_optimises_smoothed_cross_entropy_plus_the_mean_auxiliary_and_logs_both(monkeypatch):
    module, examples = ClassificationModule(ToyClassifier(), config(label_smoothing=0.2)), batch(0, 4, 7)
    values, out = logged(module, monkeypatch), module.model(examples.texts, examples.masks)
    loss = module.training_step(examples, 0)
    by_hand = functional.cross_entropy(out.logits, examples.labels, label_smoothing=0.2) + out.auxiliary.mean()
    torch.testing.assert_close(loss, by_hand)
    weights = [*module.model.parameters()]
    for ours, theirs in zip(*(torch.autograd.grad(each, weights) for each in (loss, by_hand)), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert values == {
        "train_loss": pytest.approx(float(loss.detach())),
        "train_auxiliary": pytest.approx(float(out.auxiliary.detach().mean())),
    }


def test_a_pair_of_texts_is_given_whole(monkeypatch):
    module, (one, other) = ClassificationModule(Plain(), config()), (batch(0, 4), batch(7, 2))
    logged(module, monkeypatch)
    pair = ClassifiedBatch((one.texts[0], other.texts[0]), one.labels)
    logits = module.model.table(one.texts[0]) + module.model.table(other.texts[0])
    torch.testing.assert_close(module.training_step(pair, 0), functional.cross_entropy(logits, one.labels))


def test_smoothing_over_the_other_classes_leaves_the_label_what_is_not_given_away():
    module, examples = ClassificationModule(Plain(), config(label_smoothing=0.3, smoothing_over="others")), batch(0, 4)
    log_p = module.model.table(examples.texts[0]).log_softmax(-1)
    target = torch.full_like(log_p, 0.3 / (CLASSES - 1)).scatter(1, examples.labels.unsqueeze(1), 0.7)
    torch.testing.assert_close(module.training_step(examples, 0), -(target * log_p).sum(1).mean())


def test_losses_are_made_in_float32_whatever_the_model_gives():
    module = ClassificationModule(ToyClassifier().bfloat16(), config())
    assert module.training_step(batch(0, 1), 0).dtype == torch.float32
    assert module.logged["train_auxiliary"].dtype == torch.float32


def test_validation_is_a_mean_over_texts_and_knows_no_auxiliary_or_smoothing(monkeypatch):
    module = ClassificationModule(ToyClassifier(), config(label_smoothing=0.4))
    values, batches = logged(module, monkeypatch), [batch(0, 1, 2, 3, 4), batch(5), batch(6, 7)]
    with torch.no_grad():
        for _ in range(2):  # the second epoch begins with nothing of the first
            for number, examples in enumerate(batches):
                module.validation_step(examples, number)
            module.on_validation_epoch_end()
            logits = torch.cat([module.model(each.texts, each.masks).logits for each in batches])
            labels = torch.cat([each.labels for each in batches])
            wrong = (logits.argmax(1) != labels).double().mean()
            assert values == {
                "valid_loss": pytest.approx(float(functional.cross_entropy(logits, labels)), rel=1e-5),
                "valid_error": pytest.approx(float(wrong), rel=1e-6),
            }
            module.model.classifier.weight.mul_(-3)


def test_a_small_model_learns_a_rule(tmp_path, capsys):
    """Of three classes: which marker is in the text, wherever it stands."""
    text, valid = random_texts(240, seed=1), random_texts(60, seed=2)
    settings = config(
        updates=120, batch={"sentences": 16}, optimizer={"name": "adagrad", "learning_rate": 0.2}, validate_every=40
    )
    record = train(
        ClassificationModule(ToyClassifier(), settings), tmp_path / "run",
        lambda start: map(text.batch, endless_batches(text.lengths, pool=4, seed=1, start=start, sentences=16)),
        [valid.batch(np.arange(i, i + 20)) for i in (0, 20, 40)],
    )  # fmt: skip
    rows = curve(tmp_path / "run")
    errors = {int(row["step"]): float(row["value"]) for row in rows if row["metric"] == "error"}
    assert min(errors.values()) < 0.05
    assert errors[record.best_update] == min(errors.values())
    assert [row["metric"] for row in rows if row["step"] == "80"] == [
        "loss", "auxiliary", "learning_rate", "loss", "error",
    ]  # fmt: skip
    loss, error = (float(row["value"]) for row in rows[-2:])
    assert capsys.readouterr().out.strip().endswith(f", valid loss {loss:.3f}, valid error {error:.1%}")


@pytest.mark.parametrize(("changes", "monitor"), [({}, "valid_error"), ({"monitor": "loss"}, "valid_loss")])
def test_the_error_decides_unless_the_settings_say_otherwise(changes, monitor):
    module = ClassificationModule(ToyClassifier(), config(**changes))
    assert module.monitor == monitor
