"""The Lightning module of captioners: what the model is given, and what validation reports."""

import itertools

import numpy as np
import pytest
import torch

from shared.metrics.captioning import bleu_statistics
from shared.metrics.translation import corpus_bleu
from shared.tasks.captioning.corpus import CaptionBatch
from shared.tasks.captioning.module import CaptioningModule
from shared.tasks.captioning.settings import CaptioningTraining
from tests.tasks.captioning import toy_captioner as toy
from tests.tasks.modules import SETTINGS, logged

PICTURES = toy.random_pictures(8, seed=3)


def module_of(decode=toy.texts):
    return CaptioningModule(toy.ToyCaptioner(), CaptioningTraining.model_validate(SETTINGS), decode, toy.LONGEST)


def batch(*indices):
    return PICTURES.batch(np.array(indices))


@torch.no_grad()
def test_the_model_gets_the_regions_in_training_and_validation(monkeypatch):
    module, examples, seen = module_of(), batch(0, 2), []
    monkeypatch.setattr(module.model, "forward", lambda *given: seen.append(given[2]) or toy.ToyCaptioner()(*given))
    with_boxes = CaptionBatch(examples.features, examples.captions, torch.rand(2, 5, 4))
    module.training_step(with_boxes, 0)
    module.validation_step(with_boxes, 1)
    assert [regions is with_boxes.regions for regions in seen] == [True, True]


@torch.no_grad()
def test_validation_is_a_mean_over_symbols_and_bleu_of_all_images_together(monkeypatch):
    captions, images = [batch(0, 1, 2, 3, 4), batch(5), batch(6, 7)], toy.image_batches(PICTURES, 3)
    assert [len(each.references) for each in images] == [3, 3, 2]
    references = [own for each in images for own in each.references]
    made = [f"{own[number % 2]} 9"[number:] for number, own in enumerate(references)]  # some of it is right
    texts_made = itertools.cycle(made)
    module = module_of(lambda lines: [next(texts_made) for _ in lines])
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
