"""Smoothed losses by hand, and updates that accumulate batches."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from shared.data.tokenizers import PAD
from shared.tasks.language.streams import LanguageBatch
from shared.training.loss import smoothed_loss, token_nll
from shared.training.run import train_run
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.training.killable_run import KINDS, for_validation, ordered


def case():
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    labels = torch.randint(1, 7, (3, 5))
    labels[1, 3:] = PAD
    return logits, labels


def test_each_label_costs_its_negative_log_probability_and_padding_nothing():
    logits, labels = case()
    expected = -logits.float().log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(token_nll(logits, labels), expected * (labels != PAD))


def test_smoothing_mixes_in_the_uniform_distribution():
    logits, labels = case()
    log_p, real = logits.float().log_softmax(-1), labels != PAD
    for smoothing in (0.0, 0.1, 0.4):
        by_hand = (1 - smoothing) * token_nll(logits, labels) - smoothing * log_p.mean(-1)
        torch.testing.assert_close(smoothed_loss(logits, labels, smoothing), by_hand[real].mean())


def test_smoothing_over_the_other_symbols_leaves_the_label_what_is_not_given_away():
    logits, labels = case()
    log_p, real = logits.float().log_softmax(-1), labels != PAD
    target = torch.full_like(log_p, 0.1 / 6).scatter(2, labels.unsqueeze(2), 0.9)  # six others, PAD among them
    by_hand = -(target * log_p).sum(-1)
    torch.testing.assert_close(smoothed_loss(logits, labels, 0.1, over="others"), by_hand[real].mean())
    torch.testing.assert_close(smoothed_loss(logits, labels, 0.0, over="others"), smoothed_loss(logits, labels, 0.0))


def test_of_classes_each_label_counts_whatever_its_number():
    logits, labels = torch.randn(6, 4), torch.tensor([PAD, 1, 2, 3, PAD, 2])
    nll = -logits.log_softmax(-1).gather(1, labels.unsqueeze(1))
    torch.testing.assert_close(smoothed_loss(logits, labels, 0.0, padding=None), nll.mean())
    torch.testing.assert_close(smoothed_loss(logits, labels, 0.0), nll[labels != PAD].mean())
    by_hand = 0.9 * nll.mean() - 0.1 * logits.log_softmax(-1).mean()
    torch.testing.assert_close(smoothed_loss(logits, labels, 0.1, padding=None), by_hand)


def test_smoothing_of_one_label_by_hand():
    """p = (1/2, 1/4, 1/8, 1/8), the label the second of four; -log2 p = (1, 2, 3, 3)."""
    logits = torch.tensor([[[0.5, 0.25, 0.125, 0.125]]]).log()
    labels = torch.tensor([[1]])
    assert float(smoothed_loss(logits, labels, 0.3, over="others")) == pytest.approx(
        (0.7 * 2 + 0.1 * (1 + 3 + 3)) * math.log(2)
    )
    assert float(smoothed_loss(logits, labels, 0.4)) == pytest.approx((0.7 * 2 + 0.1 * (1 + 3 + 3)) * math.log(2))


PLAIN = {"optimizer": {"name": "adadelta"}, "schedule": {"name": "constant"}, "updates": 1, "validate_every": 1}
CASES: dict[str, dict[str, Any]] = {
    "translation": {},
    "translation, per sentence": {"loss_per": "sentence"},
    "classification": {},
    "captioning": {},
    "captioning, per caption": {"loss_per": "sentence"},
    "language": {"batch": {"sentences": 8, "length": 5}, "memory": 9, "loss_on": "last_half"},
    "sequences": {},
}


def updated(kind: str, changed: dict[str, Any], folder: Path, batches: list[Any]) -> dict[str, torch.Tensor]:
    """The weights after one update of these batches."""
    config_type, build_module, build_model, examples, _ = KINDS[kind]
    config = config_type.model_validate({"batch": {"sentences": 8}} | PLAIN | changed | {"accumulate": len(batches)})
    torch.manual_seed(3)
    module = build_module(build_model(), config)
    train_run(
        module, config, batches=lambda start: iter(batches), valid=for_validation(examples(50, seed=2)), folder=folder,
        seed=1, fingerprint="", label="run",
    )  # fmt: skip
    return {name: weight.detach() for name, weight in module.named_parameters()}


@pytest.mark.parametrize("case", CASES)
def test_batches_of_an_update_weigh_as_much_as_they_have_items(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nn.Dropout, "forward", lambda _, x: x)
    monkeypatch.setattr(ToyCaptioner, "reinforced", False)
    kind, changed = case.partition(",")[0], CASES[case]
    config_type, _, _, examples, count = KINDS[kind]
    config = config_type.model_validate({"batch": {"sentences": 8}} | PLAIN | changed)
    whole = next(ordered(examples(count, seed=1), config)(0))
    rows = 2
    if isinstance(whole, LanguageBatch):  # a memory has one number of columns
        whole.places[:3], rows = -1, 4
    parts = [whole.each(lambda part: part[:rows]), whole.each(lambda part: part[rows:])]
    assert parts[0].tokens * 2 < parts[1].tokens
    once = updated(kind, changed, tmp_path / "once", [whole])
    assert_close(updated(kind, changed, tmp_path / "twice", parts), once, rtol=1e-4, atol=1e-6)
