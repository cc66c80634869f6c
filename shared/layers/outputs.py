"""Output layers, from states to the probabilities of symbols: a softmax, or for pixels a mixture of logistics.

Shape letters: D model width, V symbols or levels, C components.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class CategoricalOutput(nn.Module):
    """P(x) = softmax(W h + b); a :class:`shared.decoding.protocol.SymbolOutput`.

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


# The lower bound is PixelCNN++'s; the upper bound is so large that its only effect is to keep numbers finite.
_LOG_SCALES = (-7.0, 7.0)


class MixtureOfLogistics(nn.Module):
    """P(x) = Σ_i π_i [σ((x⁺ - μ_i) / s_i) - σ((x⁻ - μ_i) / s_i)], where x⁻ and x⁺ are the bounds of level x.

    The middles of the levels go from -1 to 1 in equal steps, and their bounds lie halfway between; the outer bounds of
    the lowest and the highest level are infinite. π (before its softmax), μ and log s are linear in the model's state;
    log s is held within [-7, 7].

    No probability is a difference of two numbers: σ(a) - σ(b) = σ(a) σ(-b) (1 - exp(b - a)), whose logarithm is a sum
    of three terms that keep their precision wherever the target lies. (The code of both papers takes the density at
    the middle instead where the difference is below 1e-5, so that there its probabilities do not sum to one.)

    It is that of Salimans et al. (2017), "PixelCNN++", section 2.1, without the dependence between the colours of one
    place: as in Katharopoulos et al. (2020), section 4.2, every value is predicted after all before it.

    Args:
        width: D.
        levels: V, at least two.
        components: C; ten in Katharopoulos et al.
    """

    def __init__(self, *, width: int, levels: int = 256, components: int = 10) -> None:
        super().__init__()
        self.levels = levels
        self.projection = nn.Linear(width, 3 * components)

    def forward(self, h: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood of levels: states (…, D) and int64 levels (…) to nats (…), float32 or wider."""
        return -self._log_probs(self._mixture(h), targets)

    def log_probs(self, h: Tensor) -> Tensor:
        """Log-probabilities of all levels: states (…, D) to (…, V), float32 or wider."""
        mixture = tuple(part.unsqueeze(-2) for part in self._mixture(h))
        return self._log_probs(mixture, torch.arange(self.levels, device=h.device))

    def sample(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a level for each state: (…, D) to int64 (…), by the inverse distribution function of one component."""
        log_weights, means, log_scales = self._mixture(h)
        noise = torch.empty_like(log_weights).exponential_(generator=generator)
        chosen = (log_weights - noise.log()).argmax(-1, keepdim=True)  # (…, 1): i with the probability π_i
        mean, log_scale = (part.gather(-1, chosen).squeeze(-1) for part in (means, log_scales))
        u = torch.rand(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        x = mean + log_scale.exp() * u.logit()
        return ((x + 1) / 2 * (self.levels - 1)).round().clamp(0, self.levels - 1).long()

    def _mixture(self, h: Tensor) -> tuple[Tensor, ...]:
        """(…, D) to log π, μ and log s, each (…, C)."""
        parameters = self.projection(h)
        wide = parameters.to(torch.promote_types(parameters.dtype, torch.float32))
        logits, means, log_scales = wide.chunk(3, dim=-1)
        return logits.log_softmax(-1), means, log_scales.clamp(*_LOG_SCALES)

    def _log_probs(self, mixture: tuple[Tensor, ...], levels: Tensor) -> Tensor:
        """Mixtures of (…, C) and levels (…) to log P (…)."""
        log_weights, means, log_scales = mixture
        x = levels.unsqueeze(-1).to(means.dtype)
        lowest, highest = x == 0, x == self.levels - 1
        inverse = (-log_scales).exp()
        below = ((2 * x - self.levels) / (self.levels - 1) - means) * inverse  # (…, C)
        above = ((2 * x + 2 - self.levels) / (self.levels - 1) - means) * inverse
        within = torch.log(-torch.expm1(-2 / (self.levels - 1) * inverse))
        log_probs = (
            functional.logsigmoid(above).masked_fill(highest, 0)
            + functional.logsigmoid(-below).masked_fill(lowest, 0)
            + within.masked_fill(lowest | highest, 0)
        )
        return (log_weights + log_probs).logsumexp(-1)
