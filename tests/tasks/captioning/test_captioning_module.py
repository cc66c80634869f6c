"""The Lightning module of captioners: what it optimises, what it reports, and which weights it calls best."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from shared.data.batching import endless_batches
from shared.data.tokenizers import BOS, EOS, PAD
from shared.metrics.captioning import bleu_statistics
from shared.metrics.translation import corpus_bleu
from shared.tasks.captioning.corpus import CaptionBatch, Captioned
from shared.tasks.captioning.module import CaptioningModule
from shared.tasks.captioning.settings import CaptioningTraining
from tests.tasks.captioning.toy_captioner import (
    LONGEST,
    VOCABULARY,
    ToyCaptioner,
    image_batches,
    random_pictures,
    texts,
)
from tests.tasks.modules import SETTINGS, curve, logged, train

PICTURES = random_pictures(8, seed=3)


def config(**changes):
    return CaptioningTraining.model_validate(SETTINGS | changes)


def module_of(model, longest=LONGEST, **changes):
    return CaptioningModule(model, config(**changes), texts, longest)


def batch(*indices):
    return PICTURES.batch(np.array(indices))


class Plain(nn.Module):
    """Every symbol depends on nothing but itself, and on how much of the picture its region is where there are any."""

    def __init__(self):
        super().__init__()
        self.table, self.seen = nn.Parameter(torch.randn(VOCABULARY)), nn.Parameter(torch.ones(()))

    def forward(self, features, captions, regions=None):
        nats = -self.table.log_softmax(0)[captions]
        if regions is not None:
            nats = nats + self.seen * regions.square().sum(2)
        return Captioned(nats * (captions != PAD))


class Weighty(Plain):
    """Has an auxiliary term that differs between captions, whether it is trained or not."""

    def forward(self, features, captions, regions=None):
        return super().forward(features, captions)._replace(auxiliary=self.seen * captions[:, 0] / 7)


@pytest.mark.parametrize("per", ["sentence", "label"])
def test_training_optimises_nats_plus_auxiliary_per_caption_or_symbol_and_logs_both_per_symbol(monkeypatch, per):
    module, examples = module_of(Weighty(), loss_per=per), batch(0, 1, 5)  # of 5, 6 and 6 symbols
    values, out = logged(module, monkeypatch), module.model(None, examples.captions)
    loss = module.training_step(examples, 0)
    captions = [nats.sum() + auxiliary for nats, auxiliary in zip(out.nats, out.auxiliary, strict=True)]
    by_hand = sum(captions) / {"sentence": 3, "label": 17}[per]
    torch.testing.assert_close(loss, by_hand)
    weights = [*module.model.parameters()]
    for ours, theirs in zip(*(torch.autograd.grad(each, weights) for each in (loss, by_hand)), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert values == {
        "train_loss": pytest.approx(float(out.nats.detach().sum()) / 17),
        "train_auxiliary": pytest.approx(float(out.auxiliary.detach().sum()) / 17),
    }


@torch.no_grad()
def test_the_model_gets_the_regions_in_training_and_validation(monkeypatch):
    module, examples = module_of(Plain()), batch(0, 2)
    values, regions = logged(module, monkeypatch), torch.zeros(2, 5, 4)
    regions[0, 1, 2] = 1
    with_boxes = CaptionBatch(examples.features, examples.captions, regions)
    difference = module.training_step(with_boxes, 0) - module.training_step(examples, 0)
    assert difference.item() == pytest.approx(1 / 10, rel=1e-5)
    for examples in (with_boxes, image_batches(PICTURES, 8)[0]):
        module._greedy = lambda features: [[4]] * len(features)
        module.validation_step(examples, 0)
    module.on_validation_epoch_end()
    assert values["valid_loss"] == pytest.approx(values["train_loss"] + 1 / 10)


def test_losses_are_made_in_float32_whatever_the_model_gives(monkeypatch):
    module, examples = module_of(ToyCaptioner().bfloat16()), batch(0, 2)
    logged(module, monkeypatch)
    half = CaptionBatch(examples.features.bfloat16(), examples.captions)
    assert module.training_step(half, 0).dtype == torch.float32


@torch.no_grad()
def test_validation_is_a_mean_over_symbols_and_bleu_of_all_images_together(monkeypatch):
    captions, images = [batch(0, 1, 2, 3, 4), batch(5), batch(6, 7)], image_batches(PICTURES, 3)
    assert [len(each.references) for each in images] == [3, 3, 2]
    references = [own for each in images for own in each.references]
    made = [f"{own[number % 2]} 9"[number:] for number, own in enumerate(references)]  # some of it is right
    texts_made = itertools.cycle(made)
    module = CaptioningModule(ToyCaptioner(), config(), lambda lines: [next(texts_made) for _ in lines], LONGEST)
    values = logged(module.eval(), monkeypatch)
    for _ in range(2):  # the second epoch begins with nothing of the first
        for number, examples in enumerate([*captions, *images]):
            module.validation_step(examples, number)
        module.on_validation_epoch_end()
        nats = [module.model(each.features, each.captions).nats for each in captions]
        bleu = float(corpus_bleu(bleu_statistics(made, references).sum(0), smooth=False))
        assert values == {
            "valid_loss": pytest.approx(sum(float(each.sum()) for each in nats) / (4 * (5 + 6))),
            "valid_bleu": pytest.approx(bleu),
        }
        assert 20 < bleu < 90
        module.model.output.weight.mul_(-3)


def greedy_by_hand(model, picture, longest):
    """The most probable symbols, from teacher-forced log-probabilities of every possible continuation."""
    symbols = []
    while len(symbols) < longest:
        continued = torch.tensor([[*symbols, word] for word in range(VOCABULARY)])
        nats = model(picture.expand(VOCABULARY, -1, -1), continued).nats[:, -1]
        nats[[PAD, BOS]] = torch.inf
        if (best := int(nats.argmin())) == EOS:
            break
        symbols.append(best)
    return symbols


@pytest.mark.parametrize("longest", [1, 4, 9])
@torch.no_grad()
def test_captions_are_made_greedily_and_cut_where_they_are_too_long(longest):
    module = module_of(ToyCaptioner(), longest).eval()
    module.model.output.weight.mul_(8)
    module.model.output.bias[EOS] += 2  # so that captions end at different times
    pictures = torch.randn(40, 4, 5)
    found = module._greedy(pictures)
    assert found == [greedy_by_hand(module.model, picture, longest) for picture in pictures]
    assert {len(symbols) for symbols in found} >= {0, longest}


@pytest.mark.parametrize(("monitor", "score"), [("bleu", -30.0), ("loss", 2.0)])
def test_the_settings_say_which_validation_decides(monitor, score):
    module = module_of(Plain(), monitor=monitor)
    module.log("valid_bleu", 30.0)
    module.log("valid_loss", 2.0)
    assert module.score() == score


OUTCOMES = [(0.9, 0.0), (0.8, 20.0), (0.5, 20.0), (0.2, 19.0), (0.1, 30.0)]


def test_a_small_model_learns_to_name_what_is_in_a_picture(tmp_path, capsys):
    pictures, valid = random_pictures(150, seed=1), random_pictures(30, seed=2)
    settings = config(
        updates=200, batch={"sentences": 32}, optimizer={"name": "adam", "learning_rate": 0.01}, validate_every=100
    )
    module = CaptioningModule(ToyCaptioner(), settings, texts, LONGEST)
    order = {"pool": 1, "seed": 1, "sentences": 32, "equal_lengths": True}
    record = train(
        module, tmp_path / "run",
        lambda start: map(pictures.batch, endless_batches(pictures.lengths, start=start, **order)),
        [*(valid.batch(np.arange(i, i + 20)) for i in (0, 20, 40)), *image_batches(valid, 20)],
    )  # fmt: skip
    rows = curve(tmp_path / "run")
    bleu = {int(row["step"]): float(row["value"]) for row in rows if row["metric"] == "bleu"}
    assert bleu[record.best_update] == max(bleu.values()) > 95
    assert [row["metric"] for row in rows if row["step"] == "100"] == [
        "loss", "auxiliary", "learning_rate", "loss", "bleu",
    ]  # fmt: skip
    loss, score = (float(row["value"]) for row in rows[-2:])
    assert capsys.readouterr().out.strip().endswith(f", valid loss {loss:.3f}, valid BLEU {score:.1f}")
    assert module.model.baseline < 0
