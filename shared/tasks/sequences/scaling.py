"""Time and memory of attention against the length of the sequence (Katharopoulos et al. 2020, figure 1; Choromanski
et al. 2021, figure 3).

As in section 4.1.2 of the former, one layer is computed and its gradients, for a made-up input, and what counts is a
single sequence. Here the batch is B = 1 at every length, where the paper divides what a batch of about as many symbols
took by its size. Lengths and sizes are the variant's; the papers' lengths are the powers of two from 512 to 65,536
(figure 1) and up to 32,768 (figure 3), each way of attention up to the longest that fits into memory, which is what
``longest`` is for.

Only the length T differs between measurements. Attention by hashing keeps its chunk size and its number of buckets, as
in the former paper from 784 pixels to 3,072; only the number of chunks grows. With as many buckets as chunks, hashing
itself would be quadratic.

Shape letters: B batch, T length, D model width, H heads, M random features.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.multi_head import IdentityAttention, MultiHeadAttention
from shared.layers.transformer import FeedForward
from shared.metrics.peak_memory import MEBIBYTE, peak_memory
from shared.metrics.turns import Clock, medians_of_turns, now, timed
from shared.tasks.replication import Study
from shared.tasks.sequences.settings import ScalingConfig
from shared.tasks.settings import RunConfig

RIVAL = "softmax"
"""The subject with which all others are compared."""
OPTIMUM = "identity"
"""The subject without attention, an upper bound of the possible speed."""

Layers = Mapping[str, Callable[[ScalingConfig], nn.Module]]
"""Name of a subject to what makes it: a module that maps (B, T, D) to (B, T, D), no position looking at later ones."""


class CausalAttention(nn.Module):
    """A layer of one of the ways of attention to itself, with its projections.

    Args:
        heads: what attends, as :class:`MultiHeadAttention` does, or to itself alone, without a ``project``.
        weights: whether the weights of all pairs are made, as they were before there were fused kernels.
    """

    def __init__(self, heads: Any, *, weights: bool = False) -> None:
        super().__init__()
        self.heads, self.weights = heads, weights

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        memory = (self.heads.project(x),) if hasattr(self.heads, "project") else ()
        return self.heads(x, *memory, causal=True, weights=self.weights)[0]


def head_sizes(config: ScalingConfig) -> dict[str, Any]:
    """Arguments of attention with several heads."""
    return {"heads": config.heads, "key_size": config.key_size, "value_size": config.key_size}


EXACT: Layers = {
    RIVAL: lambda config: CausalAttention(MultiHeadAttention(query_size=config.width, **head_sizes(config))),
    "softmax_plain": lambda config: CausalAttention(
        MultiHeadAttention(query_size=config.width, **head_sizes(config)), weights=True
    ),
    OPTIMUM: lambda config: CausalAttention(IdentityAttention(query_size=config.width, **head_sizes(config))),
}
"""What each paper compares with: exact attention, by PyTorch's fused kernel and with all its weights; and none."""


class Scaling(Study):
    """Measures a layer forward and backward, to its input and all parameters, at growing lengths.

    Args:
        layers: what can be measured, by the names that ``subjects`` has.
        clock: gives seconds.
    """

    def __init__(self, layers: Layers, clock: Clock = now) -> None:
        self._layers, self._clock = layers, clock

    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """Of each subject at each of its lengths ``<subject>.seconds_n<T>`` and ``<subject>.mebibytes_n<T>``.

        Times are medians over turns. Each turn runs every subject once at every length, so a slow minute of the machine
        affects all of them alike. Memory is the peak of the memory that a pass adds to the layer and its input
        (:mod:`shared.metrics.peak_memory`). ``<subject>.time_slope`` and ``<subject>.memory_slope`` are the exponents
        of T that fit the upper half of the lengths best; ``crossover_<subject>``, if there is one, is the length from
        which on it is quicker than exact attention by the fused kernel; ``<subject>.over_identity`` the ratio of its
        time to that of no attention, at the longest length at which both were measured.
        """
        settings = config.checked_model(ScalingConfig)
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        layers = {subject: self._layer(subject, settings).to(device) for subject in settings.subjects}
        passes = {
            (subject, length): training_pass(layer, length, settings.width, device)
            for length in settings.lengths
            for subject, layer in layers.items()
            if length in settings.of(subject)
        }
        seconds: dict[str, dict[int, float]] = {subject: {} for subject in layers}
        mebibytes: dict[str, dict[int, float]] = {subject: {} for subject in layers}
        for (subject, length), run in passes.items():
            run()
            mebibytes[subject][length] = peak_memory(run, device) / MEBIBYTE
        contenders = {key: timed(run, self._clock) for key, run in passes.items()}
        for (subject, length), taken in medians_of_turns(contenders, range(settings.repeats)).items():
            seconds[subject][length] = taken
        metrics = {
            f"{subject}.{quantity}_n{length}": value
            for quantity, found in (("seconds", seconds), ("mebibytes", mebibytes))
            for subject, points in found.items()
            for length, value in points.items()
        }
        metrics |= {f"{subject}.time_slope": slope(points) for subject, points in seconds.items()}
        metrics |= {f"{subject}.memory_slope": slope(points) for subject, points in mebibytes.items()}
        fused, optimum = seconds.get(RIVAL, {}), seconds.get(OPTIMUM, {})
        crossovers = {subject: crossover(points, fused) for subject, points in seconds.items() if subject != RIVAL}
        metrics |= {f"crossover_{subject}": length for subject, length in crossovers.items() if length is not None}
        both = {subject: points.keys() & optimum.keys() for subject, points in seconds.items() if subject != OPTIMUM}
        return metrics | {
            f"{subject}.over_{OPTIMUM}": seconds[subject][max(lengths)] / optimum[max(lengths)]
            for subject, lengths in both.items()
            if lengths
        }

    def _layer(self, subject: str, settings: ScalingConfig) -> nn.Module:
        attention = self._layers[subject](settings)
        if settings.feed_forward is None:
            return attention
        return nn.Sequential(attention, FeedForward(width=settings.width, hidden_size=settings.feed_forward))


def training_pass(layer: nn.Module, length: int, width: int, device: torch.device) -> Callable[[], None]:
    """A function that computes a layer and the gradients of its input (1, T, D) and parameters, and discards them."""
    x = torch.randn(1, length, width, device=device, requires_grad=True)
    cotangent, of = torch.randn_like(x), (x, *layer.parameters())

    def run() -> None:
        torch.autograd.grad(layer(x), of, cotangent, allow_unused=True)

    return run


def slope(points: Mapping[int, float]) -> float:
    """The exponent b of the power law a · T^b, by least squares on logarithmic scales over the upper half of lengths.

    Args:
        points: by length, two at least; of an odd number the one in the middle belongs to the upper half.
    """
    upper = sorted(points)[-max(2, math.ceil(len(points) / 2)) :]
    x, y = ([math.log(value) for value in values] for values in (upper, (points[length] for length in upper)))
    return statistics.linear_regression(x, y).slope


def crossover(seconds: Mapping[int, float], rival: Mapping[int, float]) -> float | None:
    """The least length from which on ``seconds`` are fewer, as far as both are known.

    Between two lengths both times are interpolated as power laws. The result is the shortest length if ``seconds`` are
    fewer at all lengths, and None if they are not fewer at the longest.
    """
    lengths = sorted(seconds.keys() & rival.keys())
    gains = [math.log(rival[length] / seconds[length]) for length in lengths]
    if not gains or gains[-1] <= 0:
        return None
    behind = [place for place, gain in enumerate(gains) if gain <= 0]
    if not behind:
        return float(lengths[0])
    last = behind[-1]
    part = gains[last] / (gains[last] - gains[last + 1])
    return float(lengths[last] * (lengths[last + 1] / lengths[last]) ** part)
