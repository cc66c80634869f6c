"""Table 1 and the training cost of table 2, measured on real layers and models instead of derived (section 4).

Nothing is trained and no data are read. Operations are multiply-adds of matrix products; the projections around
attention, 4·n·d² more, are left out as in the paper.

Shape letters: B batch, L sequence length (n), D width (d), R window (r).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from replications.transformer.model import Transformer
from shared.attention.scaled_dot_product import attend
from shared.layers.positions import SinusoidalPositions
from shared.metrics.operations import (
    FORWARD_PASSES,
    OPERATIONS_PER_MULTIPLY_ADD,
    count_operations,
    longest_chain,
    shapes_only,
)
from shared.tasks.replication import Study
from shared.tasks.settings import RunConfig

SIZES = (64, 128, 256, 512)
"""Values of n while d is fixed, and of d while n is fixed."""
FIXED_LENGTH, FIXED_WIDTH = 128, 256
PATH_LENGTHS = (16, 32, 64, 128)
KERNEL = 3
"""Width k of the convolution kernel."""
RADIUS = 4
"""Radius of the window of r = 9 positions around each position."""

PEAK = 9.5e12
"""Floating-point operations a second of a P100, as the paper reckons (note to section 6.1)."""
GPUS = 8
"""Number of GPUs in training (section 5.2)."""
SECONDS = {"base": 12 * 3600, "big": 3.5 * 24 * 3600}
"""Duration of training (section 5.2)."""
UPDATES = {"base": 100_000, "big": 300_000}
"""Number of training updates (section 5.2)."""
MODELS: dict[str, dict[str, Any]] = {
    "base": {"width": 512, "heads": 8, "hidden_size": 2048},
    "big": {"width": 1024, "heads": 16, "hidden_size": 4096},
}
"""Sizes of table 3; both models have six layers and d_k = d_v = 64."""
VOCABULARY, TOKENS = 37_000, 25_000
"""Size of the joint vocabulary, and tokens of each side in a batch (section 5.1)."""
PAIR = 25
"""Symbols on either side of a pair, an assumption: the paper does not say how long its sentences are."""


class Layer(nn.Module, ABC):
    """Maps a sequence (B, L, D) to another.

    A *hop* is what carries information one edge further along a path through the network: a layer of a stack, or
    within a recurrent layer a step.

    Attributes:
        causal: whether a position never sees later ones.
    """

    causal: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """(B, L, D) to (B, L, D)."""

    def hop(self, number: int, x: Tensor, h: Tensor) -> Tensor:
        """From the input x and what hop ``number`` - 1 has made of it, h, to the next h, (B, L, D) each."""
        return self(h)

    def reach(self, length: int) -> Tensor:
        """(L, L) bool, which inputs an output depends on before the first hop: the one at its own position."""
        return torch.eye(length, dtype=torch.bool)


class SelfAttention(Layer):
    """Every position attends to all: 2·n²·d."""

    def forward(self, x: Tensor) -> Tensor:
        """See :meth:`Layer.forward`."""
        one_head = x.unsqueeze(1)
        return attend(one_head, one_head, one_head).squeeze(1)


class RestrictedSelfAttention(Layer):
    """Every position attends to the window of r positions around it, and nothing else is multiplied: 2·r·n·d."""

    def forward(self, x: Tensor) -> Tensor:
        """See :meth:`Layer.forward`."""
        near = functional.pad(x, (0, 0, RADIUS, RADIUS)).unfold(1, 2 * RADIUS + 1, 1).mT  # (B, L, R, D)
        place = torch.arange(x.size(1), device=x.device).unsqueeze(1)  # (L, 1)
        place = place + torch.arange(-RADIUS, RADIUS + 1, device=x.device)  # (L, R)
        inside = ((place >= 0) & (place < x.size(1))).unsqueeze(1)  # (L, 1, R)
        return attend(x.unsqueeze(2), near, near, mask=inside).squeeze(2)


class Recurrence(Layer):
    """h_t = tanh(W x_t + U h_{t-1}): 2·n·d²."""

    causal = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(width, width, bias=False, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """See :meth:`Layer.forward`."""
        return self.rnn(x)[0]

    def hop(self, number: int, x: Tensor, h: Tensor) -> Tensor:
        """One step at all positions: after t hops, of any h, the first t states are those of :meth:`forward`."""
        (w, u), before = self.rnn.parameters(), functional.pad(h[:, :-1], (0, 0, 1, 0))
        return torch.tanh(functional.linear(x, w) + functional.linear(before, u))

    def reach(self, length: int) -> Tensor:
        """No state depends on anything before the first step."""
        return torch.zeros(length, length, dtype=torch.bool)


class Convolution(Layer):
    """Kernels of k positions, the last one the output's own, in a stack dilated by k⁰, k¹, k² …: k·n·d² a layer.

    Causal as in the decoders of ByteNet and ConvS2S. A stack of centred kernels that is dilated so cannot connect all
    positions of a sequence, whose ends lie in the way of its longest jumps.
    """

    causal = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width, KERNEL).uniform_(-1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """See :meth:`Layer.forward`."""
        return self.hop(0, x, x)

    def hop(self, number: int, x: Tensor, h: Tensor) -> Tensor:
        """A layer of the stack."""
        dilation = KERNEL**number
        padded = functional.pad(h.mT, ((KERNEL - 1) * dilation, 0))
        return functional.conv1d(padded, self.weight, dilation=dilation).mT


LAYERS: dict[str, Callable[[int], Layer]] = {
    "self_attention": lambda width: SelfAttention(),
    "recurrent": Recurrence,
    "convolutional": Convolution,
    "restricted": lambda width: RestrictedSelfAttention(),
}
"""Rows of table 1, from the width d."""


def operations(layer: str, *, length: int, width: int) -> int:
    """Multiply-adds of a layer for one sequence."""
    with torch.device("meta"):
        return count_operations(LAYERS[layer](width), torch.empty(1, length, width))


def sequential(layer: str, *, length: int) -> int:
    """Matrix products of a layer that must wait for one another."""
    with torch.device("meta"):  # there attention is no fused kernel, whose products could not be told apart
        return longest_chain(LAYERS[layer](FIXED_WIDTH), torch.empty(1, length, FIXED_WIDTH))


def longest_path(layer: str, *, length: int, width: int = 4) -> int:
    """Hops until every output depends on every input, or where the layer is causal on all up to its own position.

    Each hop's dependences are measured, by changing one position of what goes in; those of several hops follow.
    """
    torch.manual_seed(0)
    of, x = LAYERS[layer](width).double(), torch.randn(1, length, width, dtype=torch.float64)
    h, reach, hops = torch.randn_like(x), of.reach(length), 0
    seen = torch.ones_like(reach).tril() if of.causal else torch.ones_like(reach)
    while not reach.equal(seen):
        on_x, on_h = dependence(partial(of.hop, hops, h=h), x), dependence(partial(of.hop, hops, x), h)
        reach = on_x | (on_h.double() @ reach.double() > 0)
        hops += 1
        if hops > length:
            raise AssertionError(f"a stack of {length} layers '{layer}' leaves positions unconnected")
    return hops


@torch.no_grad()
def dependence(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """(L, L) bool, whether output i changes with input j, of a function of a sequence (1, L, D)."""
    changes = torch.eye(x.size(1), dtype=x.dtype).unsqueeze(2)  # (L, L, 1), the j-th at position j
    difference = function(x + changes) - function(x)  # (L, L, D)
    return difference.abs().amax(2).T > 1e-9  # far above rounding, far below any real dependence


def layer_metrics(layer: str) -> dict[str, float]:
    """A row of table 1: ``operations_n<n>``, ``operations_d<d>``, ``sequential_n<n>`` and ``path_n<n>``."""
    return {
        **{f"operations_n{n}": operations(layer, length=n, width=FIXED_WIDTH) for n in SIZES},
        **{f"operations_d{d}": operations(layer, length=FIXED_LENGTH, width=d) for d in SIZES},
        **{f"sequential_n{n}": sequential(layer, length=n) for n in PATH_LENGTHS},
        **{f"path_n{n}": longest_path(layer, length=n) for n in PATH_LENGTHS},
    }


def cost_rule(model: str) -> float:
    """The paper's training cost: time x GPUs x operations a second that one can sustain (note to section 6.1)."""
    return SECONDS[model] * GPUS * PEAK


def training_operations(model: str) -> float:
    """The operations that such a training really has, in pairs of :data:`PAIR` symbols."""
    sizes = MODELS[model]
    with shapes_only():
        transformer = Transformer(
            **sizes, vocabulary=VOCABULARY, layers=6, key_size=64, value_size=64, dropout=0.0,
            positions=SinusoidalPositions(width=sizes["width"]),
        )  # fmt: skip
        symbols = torch.ones(1, PAIR, dtype=torch.long)
        forward = count_operations(transformer, symbols, symbols > 0, symbols)
    return OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * forward * (TOKENS / PAIR) * UPDATES[model]


class ComplexityStudy(Study):
    """The variant ``complexity``."""

    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """Table 1 as ``<layer>.<quantity>``, and of both models ``cost_rule_<model>`` and ``operations_<model>``."""
        rows = {f"{layer}.{name}": value for layer in LAYERS for name, value in layer_metrics(layer).items()}
        rules = {f"cost_rule_{model}": cost_rule(model) for model in MODELS}
        return rows | rules | {f"operations_{model}": training_operations(model) for model in MODELS}
