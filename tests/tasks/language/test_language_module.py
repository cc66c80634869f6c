"""The Lightning module of language models: what it optimises, what it reports, and what it remembers."""

import itertools

import pytest
import torch

from shared.data.tokenizers import PAD
from shared.decoding.protocol import Reach
from shared.tasks.language.corpus import LanguageBatch
from shared.tasks.language.module import LanguageModule
from shared.tasks.language.settings import LanguageTraining
from tests.tasks.language.toy_language_models import VOCABULARY, Toy, ToyConfig, random_stream
from tests.tasks.modules import SETTINGS, logged

TEXT = random_stream(95, seed=3)


def config(**changes):
    return LanguageTraining.model_validate(SETTINGS | {"batch": {"sentences": 4, "length": 5}, "memory": 7} | changes)


def module_of(dropout=0.0, **changes):
    torch.manual_seed(1)
    return LanguageModule(Toy(ToyConfig(size=16, dropout=dropout), VOCABULARY), config(**changes))


def batches(count=4, columns=4, length=5, start=0):
    """Of training; the pass over the text begins with the batches 0 and 4."""
    return list(itertools.islice(TEXT.training_batches(columns=columns, length=length, seed=1, start=start), count))


def padded():
    """Two columns of 4 symbols, of which the second has but one to be scored."""
    rows = [[1, 4, 5, 6], [7, PAD, PAD, PAD]], [[4, 5, 6, 7], [8, PAD, PAD, PAD]], [[0, 1, 2, 3], [4, -1, -1, -1]]
    return LanguageBatch(*map(torch.tensor, rows), reset=True)


def losses(module, segments):
    with torch.no_grad():
        return [float(module.training_step(segment, number)) for number, segment in enumerate(segments)]


def validated(module, segments, values):
    """The loss of a validation as Lightning calls for it."""
    module.eval()
    with torch.no_grad():
        for number, segment in enumerate(segments):
            module.validation_step(segment, number)
        module.on_validation_epoch_end()
    module.train()
    return values["valid_loss"]


def test_validation_is_of_all_symbols_whatever_is_trained_on(monkeypatch):
    found = []
    for loss_on in ("all", "last_half"):
        module = module_of(loss_on=loss_on)
        found.append(validated(module, [padded()], logged(module, monkeypatch)))
    assert found[0] == found[1]


def test_a_model_remembers_the_batches_before_until_one_begins_anew(monkeypatch):
    module, segments = module_of(), batches(6)
    logged(module, monkeypatch)
    assert [segment.reset for segment in segments] == [True, False, False, False, True, False]
    found = losses(module, segments)
    for begin, end in ((0, 4), (4, 6)):
        pairs = [(each.inputs, each.targets) for each in segments[begin:end]]
        at_once = module.model(*map(torch.hstack, zip(*pairs, strict=True))).unflatten(1, (-1, 5)).mean((0, 2))
        assert found[begin:end] == pytest.approx(at_once.tolist(), rel=1e-5)


def test_validation_neither_uses_nor_touches_what_training_remembers(monkeypatch):
    segments, valid = batches(4), list(TEXT.evaluation_batches(columns=2, length=9))
    fresh, module, undisturbed = module_of(), module_of(), module_of()
    values = [logged(each, monkeypatch) for each in (fresh, module, undisturbed)]
    first = losses(module, segments[:2])
    assert validated(module, valid, values[1]) == validated(fresh, valid, values[0])
    assert first + losses(module, segments[2:]) == losses(undisturbed, segments)


@pytest.mark.parametrize(("columns", "warm_up"), [(1, 0), (3, 90)])
def test_validation_is_a_mean_over_the_symbols_of_one_text_but_those_of_a_warm_up(monkeypatch, columns, warm_up):
    module, valid = module_of(), list(TEXT.evaluation_batches(columns=columns, length=9, warm_up=warm_up))
    values, (whole,) = logged(module, monkeypatch), TEXT.evaluation_batches(columns=1, length=len(TEXT))
    assert len({segment.tokens for segment in valid}) > 1
    for _ in range(2):  # the second epoch begins with nothing of the first
        at_once = float(module.model(whole.inputs, whole.targets).detach().mean())
        assert validated(module, valid, values) == pytest.approx(at_once, rel=1e-5)
        with torch.no_grad():
            module.model.out.weight.mul_(-3)


def test_validation_reaches_as_far_as_training(monkeypatch):
    module, made = module_of(), []
    values, memory = logged(module, monkeypatch), module.model.memory
    module.model.memory = lambda columns, reach: made.append(reach) or memory(columns, reach)
    losses(module, batches(2))
    validated(module, [padded()], values)
    assert made == [Reach(7)] * 2


@pytest.mark.parametrize("read", [3, 4])
def test_a_restored_module_goes_on_where_the_saved_one_was(monkeypatch, read):
    """Inside of a pass, and where it ends: then the restored memory is cleared."""
    module, segments = module_of(), batches(7)
    logged(module, monkeypatch)
    found = losses(module, segments[:read])
    module.on_save_checkpoint(checkpoint := {})
    found += losses(module, segments[read:])
    again = module_of()
    logged(again, monkeypatch)
    again.on_load_checkpoint(checkpoint)
    assert found[read:] == losses(again, segments[read:])


def test_a_restored_module_that_has_read_nothing_saves_what_was_restored(monkeypatch):
    module, again = module_of(), module_of()
    logged(module, monkeypatch)
    losses(module, batches(2))
    module.on_save_checkpoint(first := {})
    again.on_load_checkpoint(first)
    validated(again, [padded()], logged(again, monkeypatch))
    again.on_save_checkpoint(second := {})
    assert torch.equal(first["memory"]["state"], second["memory"]["state"])
    assert first["memory"]["state"].shape == (1, 4, 16)
