"""Smoothed losses by hand."""

import pytest
import torch

from shared.data.tokenizers import PAD
from shared.training.loss import smoothed_loss, token_nll


def case():
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    labels = torch.randint(1, 7, (3, 5))
    labels[1, 3:] = PAD
    return logits, labels


def test_each_label_costs_its_negative_log_probability_and_padding_nothing():
    logits, labels = case()
    expected = -logits.float().log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(token_nll(logits, labels), expected * (labels != PAD))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("over", ["all", "others"])
def test_smoothing_gives_each_symbol_its_share_or_each_but_the_label(over, smoothing):
    logits, labels = case()
    share, kept = (smoothing / 7, smoothing / 7) if over == "all" else (smoothing / 6, 0.0)  # PAD has its own, too
    log_p, real = logits.float().log_softmax(-1), labels != PAD
    target = torch.full_like(log_p, share).scatter(2, labels.unsqueeze(2), 1 - smoothing + kept)
    by_hand = -(target * log_p).sum(-1)
    torch.testing.assert_close(smoothed_loss(logits, labels, smoothing, over), by_hand[real].mean())
