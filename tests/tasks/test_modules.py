"""The Lightning modules of every kind: what they optimise, what they log, and what they clip."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from shared.data.tokenizers import PAD
from shared.training.loss import smoothed_loss, token_nll
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.tasks.modules import SETTINGS, logged, train
from tests.training.killable_run import KINDS, for_validation

CASES = {
    "translation": {},
    "translation, smoothed": {"label_smoothing": 0.2},
    "translation, smoothed over others": {"label_smoothing": 0.2, "smoothing_over": "others"},
    "translation, per sentence": {"loss_per": "sentence"},
    "classification": {},
    "classification, smoothed": {"label_smoothing": 0.2},
    "classification, smoothed over others": {"label_smoothing": 0.3, "smoothing_over": "others"},
    "captioning": {},
    "captioning, per caption": {"loss_per": "sentence"},
    "language": {"batch": {"sentences": 4, "length": 5}},
    "language, last half": {"batch": {"sentences": 4, "length": 5}, "loss_on": "last_half"},
    "sequences": {},
}


def case_of(name, **changes):
    """The module and batches of two and of six examples; nothing is dropped out."""
    kind = name.partition(",")[0]
    config_type, build_module, build_model, examples, _ = KINDS[kind]
    torch.manual_seed(1)
    module = build_module(build_model(), config_type.model_validate(SETTINGS | CASES[name] | changes))
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    split = examples(60, seed=3)
    if kind == "language":
        batches = [next(split.training_batches(columns=n, length=5, seed=1)) for n in (2, 6)]
        batches[1].places[1, 3:] = -1
        return kind, module, batches
    return kind, module, [split.batch(np.arange(n)) for n in (2, 6)]


def by_hand(kind, model, config, batch):
    """The scalar that is optimised, and what is logged of it."""
    match kind:
        case "translation":
            logits = model(batch.source, batch.source_mask, batch.target)[0]
            loss = smoothed_loss(logits, batch.labels, config.label_smoothing, config.smoothing_over)
            counted = (batch.labels != PAD).sum() / len(batch.labels) if config.loss_per == "sentence" else 1
            return loss * counted, {"loss": loss}
        case "classification":
            out, count = model(batch.texts, batch.masks), 3
            share = config.label_smoothing / (count - (config.smoothing_over == "others"))
            target = torch.full_like(out.logits, share)
            own = 1 - config.label_smoothing + (0 if config.smoothing_over == "others" else share)
            target.scatter_(1, batch.labels.unsqueeze(1), own)
            loss = functional.cross_entropy(out.logits, target) + out.auxiliary.mean()
            return loss, {"loss": loss, "auxiliary": out.auxiliary.mean()}
        case "captioning":
            out = model(batch.features, batch.captions)
            symbols = int((batch.captions != PAD).sum())
            items = len(batch.captions) if config.loss_per == "sentence" else symbols
            loss = (out.nats.sum() + out.auxiliary.sum()) / items
            return loss, {"loss": out.nats.sum() / symbols, "auxiliary": out.auxiliary.sum() / symbols}
        case "language":
            counted = batch.places >= 0
            if config.loss_on == "last_half":
                counted[:, :2] = False
            loss = model(batch.inputs, batch.targets)[counted].mean()
            return loss, {"loss": loss}
        case _:
            model.at_update(0)  # draws what the model adds to embeddings
            log_p = model.output.log_probs(model(batch.inputs, batch.mask))
            nats = -log_p.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
            loss = nats[batch.scored].mean()
            return loss, {"loss": loss}


@pytest.mark.parametrize("name", CASES)
def test_training_optimises_what_the_settings_say_and_logs_it_per_symbol(name, monkeypatch):
    kind, module, batches = case_of(name)
    values, twin = logged(module, monkeypatch), deepcopy(module.model)
    torch.manual_seed(9)
    loss = module.training_step(batches[1], 0)
    torch.manual_seed(9)
    expected, parts = by_hand(kind, twin, module.config, batches[1])
    torch.testing.assert_close(loss, expected)
    assert values == {f"train_{key}": pytest.approx(float(value.detach()), rel=1e-5) for key, value in parts.items()}
    loss.backward()
    expected.backward()
    for ours, theirs in zip(module.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_made_in_float32_whatever_the_model_gives(kind, monkeypatch):
    _, module, (batch, _) = case_of(kind)
    logged(module, monkeypatch)
    module.model.bfloat16()
    if kind == "captioning":
        batch = batch.each(lambda part: part.bfloat16() if part.is_floating_point() else part)
    assert module.training_step(batch, 0).dtype == torch.float32


def of_targets(kind, model, batch):
    """Of every target the nats and whether another is more probable, without smoothing or auxiliary terms."""
    match kind:
        case "translation":
            logits = model(batch.source, batch.source_mask, batch.target)[0]
            return token_nll(logits, batch.labels)[batch.labels != PAD], None
        case "classification":
            logits = model(batch.texts, batch.masks).logits
            nats = functional.cross_entropy(logits, batch.labels, reduction="none")
            return nats, logits.argmax(1) != batch.labels
        case _:
            log_p = model.output.log_probs(model(batch.inputs, batch.mask)[batch.scored])
            targets = batch.targets[batch.scored]
            return -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1), log_p.argmax(-1) != targets


@pytest.mark.parametrize("name", ["translation, smoothed", "classification, smoothed", "sequences"])
@torch.no_grad()
def test_validation_is_a_mean_over_targets_and_not_over_batches(name, monkeypatch):
    kind, module, batches = case_of(name)
    values = logged(module.eval(), monkeypatch)
    for _ in range(2):  # the second epoch begins with nothing of the first
        for number, batch in enumerate(batches):
            module.validation_step(batch, number)
        module.on_validation_epoch_end()
        nats, wrong = zip(*(of_targets(kind, module.model, batch) for batch in batches), strict=True)
        assert values["valid_loss"] == pytest.approx(float(torch.cat(nats).mean()), rel=1e-5)
        if wrong[0] is not None:
            assert values["valid_error"] == pytest.approx(float(torch.cat(wrong).double().mean()))
        for parameter in module.model.parameters():
            parameter.mul_(-3)


@pytest.mark.parametrize(("kind", "changes", "score"), [
    ("captioning", {"monitor": "bleu"}, -30.0), ("captioning", {"monitor": "loss"}, 2.0), ("captioning", {}, -30.0),
    ("classification", {}, 0.5), ("classification", {"monitor": "loss"}, 2.0),
    ("sequences", {"monitor": "error"}, 0.5), ("sequences", {}, 2.0),
])  # fmt: skip
def test_the_settings_say_which_validation_decides(kind, changes, score):
    config_type, build_module, build_model, *_ = KINDS[kind]
    module = build_module(build_model(), config_type.model_validate(SETTINGS | changes))
    for name, value in {"bleu": 30.0, "loss": 2.0, "error": 0.5}.items():
        module.log(f"valid_{name}", value)
    assert module.score() == score


class Tagger(nn.Module):
    """Two embeddings, one of them with a long gradient, and weights that are none."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(5, 3), nn.Embedding(4, 3)
        self.out = nn.Linear(3, 2)
        self.unused = nn.Parameter(torch.ones(2))
        for parameter in (*self.source.parameters(), *self.target.parameters(), *self.out.parameters()):
            parameter.grad = torch.randn_like(parameter)
        self.source.weight.grad.mul_(1000)


@pytest.mark.parametrize("most", [0.5, 1e6, None])
@pytest.mark.parametrize("without", [False, True])
def test_a_long_gradient_is_scaled_down_by_what_counts_of_it_and_one_that_is_no_number_makes_no_update(most, without):
    config_type, build_module, *_ = KINDS["translation"]
    settings = SETTINGS | {"clip": most, "clip_without_embeddings": without and most is not None}
    module = build_module(Tagger(), config_type.model_validate(settings))
    before = {name: p.grad.clone() for name, p in module.model.named_parameters() if p.grad is not None}
    counted = [gradient for name, gradient in before.items() if not without or name.startswith("out")]
    norm = torch.cat([gradient.flatten() for gradient in counted]).norm()
    assert module.make_update(module.configure_optimizers())
    factor = min(1.0, (most or 1e9) / float(norm))
    for name, gradient in before.items():
        torch.testing.assert_close(module.model.get_parameter(name).grad, factor * gradient, atol=0, rtol=1e-5)
    assert module.model.unused.grad is None
    module.model.out.weight.grad[0, 0] = float("inf")
    assert not module.make_update(module.configure_optimizers())


def updated(name, folder, batches):
    """The weights after one update of these batches."""
    _, module, _ = case_of(name, updates=1, accumulate=len(batches))
    valid = for_validation(KINDS[name.partition(",")[0]][3](50, seed=2))
    train(module, folder, lambda start: iter(batches), valid)
    return {key: weight.detach() for key, weight in module.named_parameters()}


@pytest.mark.parametrize("name", CASES)
def test_batches_of_an_update_weigh_as_much_as_they_have_items(name, tmp_path, monkeypatch):
    monkeypatch.setattr(ToyCaptioner, "reinforced", False)
    kind, _, (_, whole) = case_of(name)
    rows = 1
    if kind == "language":  # a memory has one number of columns
        whole.places[:2], rows = -1, 3
    parts = [whole.each(lambda part: part[:rows]), whole.each(lambda part: part[rows:])]
    assert parts[0].tokens * 2 < parts[1].tokens
    once, twice = (updated(name, tmp_path / str(len(batches)), batches) for batches in ([whole], parts))
    torch.testing.assert_close(twice, once, rtol=1e-4, atol=1e-6)
