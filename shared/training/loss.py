"""Likelihood losses of models that predict symbols or classes."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from shared.data.tokenizers import PAD
from shared.training.config import Smoothing

NO_LABEL = -1  # ignore_index that matches no label


def token_nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of every label: (B, T, V) and (B, T) to (B, T) nats, zero at padding."""
    flat = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD, reduction="none")
    return flat.view_as(labels)


def smoothed_loss(
    logits: Tensor, labels: Tensor, smoothing: float, over: Smoothing = "all", *, padding: int | None = PAD
) -> Tensor:
    """Mean cross-entropy per label, in nats, against (1 - ε) one-hot + ε uniform (Szegedy et al. 2016).

    (B, T, V) and (B, T), or (B, C) and (B,), to a scalar. With ``over`` "others" the label's target is 1 - ε; this
    equals smoothing over all symbols with ε V / (V - 1). The loss includes the constant entropy of the targets, which
    tensor2tensor subtracts from the values that it reports. Labels equal to ``padding`` are ignored; with None all
    labels count, since a class may have the number of the padding.
    """
    if over == "others":
        smoothing *= logits.size(-1) / (logits.size(-1) - 1)
    return functional.cross_entropy(
        logits.flatten(0, -2).float(), labels.flatten(),
        ignore_index=NO_LABEL if padding is None else padding, label_smoothing=smoothing,
    )  # fmt: skip
