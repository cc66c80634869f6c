"""Likelihood losses of models that predict symbols."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from shared.data.tokenizers import PAD


def token_nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of every label: (B, T, V) and (B, T) to (B, T) nats, zero at padding."""
    flat = functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD, reduction="none"
    )
    return flat.view_as(labels)


def smoothed_loss(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Mean cross-entropy per label, in nats, against (1 - ε) one-hot + ε uniform (Szegedy et al. 2016).

    (B, T, V) and (B, T) to a scalar.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD, label_smoothing=smoothing
    )
