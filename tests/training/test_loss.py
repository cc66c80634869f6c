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
