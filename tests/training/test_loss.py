"""Smoothed losses by hand."""

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
