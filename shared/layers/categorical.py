"""The output layer of symbols: a softmax over all of them.

Shape letters: D model width, V symbols.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class CategoricalOutput(nn.Module):
    """P(x) = softmax(W h + b), with the interface of :class:`shared.layers.mixture_of_logistics.MixtureOfLogistics`.

    Args:
        width: D.
        symbols: V.
    """

    def __init__(self, *, width: int, symbols: int) -> None:
        super().__init__()
        self.projection = nn.Linear(width, symbols)

    def forward(self, h: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood of symbols: states (…, D) and int64 symbols (…) to nats (…), float32 or wider."""
        logits = self._logits(h)
        rows = logits.reshape(-1, logits.size(-1))
        nats = functional.cross_entropy(rows, targets.flatten(), reduction="none")
        return nats.view(targets.shape)

    def log_probs(self, h: Tensor) -> Tensor:
        """Log-probabilities of all symbols: states (…, D) to (…, V), float32 or wider."""
        return self._logits(h).log_softmax(-1)

    def sample(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a symbol for each state: (…, D) to int64 (…)."""
        logits = self._logits(h)
        return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(-1)

    def _logits(self, h: Tensor) -> Tensor:
        logits: Tensor = self.projection(h)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))
