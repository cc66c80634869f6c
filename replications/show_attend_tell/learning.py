"""What attention learns by, besides the likelihood of the caption: sections 4.1 and 4.2.1, and supervision.

Every term is of single captions, in nats, and is added to the negative log-likelihood that training minimises.

Shape letters: B captions, T caption length, L places.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn


def doubly_stochastic_penalty(alpha: Tensor, mask: Tensor, mean: Literal["captions", "places"] = "captions") -> Tensor:
    """Σ_i (1 - Σ_t α_ti)²: every place is to get as much attention as one word gives (equation 14).

    Of a caption of C words the α sum to C, not to L, so this is least, L (1 - C/L)², where attention is even.

    Args:
        alpha: (B, T, L).
        mask: (B, T), false at padding, which the paper's batches of equal length have not and which must not count.
        mean: what that of a batch is a mean over. Over places, summed over captions instead, it is B/L of equation 14.

    Returns:
        (B,), whose mean over the captions is the penalty of the batch.
    """
    penalty = (1 - (alpha * mask.unsqueeze(2)).sum(1)).square().sum(1)
    return penalty if mean == "captions" else penalty * (alpha.size(0) / alpha.size(2))


def attention_supervision(log_alpha: Tensor, regions: Tensor) -> Tensor:
    """-Σ_t Σ_i r_ti log α_ti, the cross-entropy with where attention should be (Liu et al. 2017).

    Args:
        log_alpha: (B, T, L).
        regions: (B, T, L) r_t, which sums to one at words that name something in the picture and is zero at others.

    Returns:
        (B,).
    """
    return -(regions * log_alpha).sum((1, 2))


class Reinforce(nn.Module):
    """The learning rule of hard attention (section 4.1, equation 12 and below), as a term whose gradient it is.

    The text maximises Σ_n [∂log p(y|s̃ⁿ, a) + λ_r (log p(y|s̃ⁿ, a) - b) ∂log p(s̃ⁿ|a) + λ_e ∂H[s̃ⁿ]]; the first part is the
    captions' likelihood, and this is the rest with its sign changed, for training minimises. One s̃ is drawn for each
    caption, and where none is, only the entropy is left.

    Attributes:
        b: moving average of log p(y|s̃, a), b_k = 0.9 b_{k-1} + 0.1 log p(y|s̃_k, a), of the captions with a drawn s̃.

    Args:
        reward: λ_r.
        entropy: λ_e.
        sampling: probability that s̃ is drawn; otherwise it is set to its expectation α.
        coin: whether that is decided for every image, as in the text, or for the whole batch.
    """

    b: Tensor

    def __init__(self, *, reward: float, entropy: float, sampling: float, coin: Literal["image", "batch"]) -> None:
        super().__init__()
        self.reward, self.entropy, self.sampling, self.coin = reward, entropy, sampling, coin
        self.register_buffer("b", torch.zeros(()))

    def toss(self, batch: int, device: torch.device) -> Tensor:
        """(B, 1) bool: for which captions s̃ is drawn, at all of their words."""
        tosses = torch.rand(batch if self.coin == "image" else 1, 1, device=device)
        return (tosses < self.sampling).expand(batch, 1)

    def forward(self, log_likelihood: Tensor, log_alpha: Tensor, s: Tensor, drawn: Tensor, mask: Tensor) -> Tensor:
        """The term, (B,); moves b.

        Args:
            log_likelihood: (B,) log p(y|s̃, a).
            log_alpha: (B, T, L).
            s: (B, T) the places drawn.
            drawn: (B, 1) bool, whether they were used.
            mask: (B, T), false at padding.
        """
        drawn = drawn[:, 0]
        log_p_s = (log_alpha.gather(2, s.unsqueeze(2)).squeeze(2) * mask).sum(1)  # log p(s̃|a)
        entropy = -((log_alpha.exp() * log_alpha).sum(2) * mask).sum(1)  # H[s̃] of each step's α, added up
        advantage = (log_likelihood - self.b).detach() * drawn
        if drawn.any():
            self.b.copy_(0.9 * self.b + 0.1 * log_likelihood.detach()[drawn].mean())
        return -self.reward * advantage * log_p_s - self.entropy * entropy
