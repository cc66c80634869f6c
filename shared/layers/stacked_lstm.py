"""Stacked LSTMs without biases (Zaremba et al. 2014, as in Luong et al. 2015): whole sequences, or step by step.

Without biases a unit that is at rest and reads zeros stays at rest exactly: sequences of different lengths can be
padded with zeros in front and still end together (:meth:`StackedLSTM.after_padding`).

Shape letters: B batch, T time steps, I input width, N state width, L layers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from shared.layers.deferred import DeferredWeight

State = tuple[Tensor, Tensor]
"""Hidden and cell states of all layers, each (L, B, N)."""
_MOST_AT_REST = 32
"""Steps of padding that a gradient may pass. It adds nothing to the weights' gradients there, yet it may grow fivefold
a step: after some 55 steps it is infinite in float32, and infinity times the zeros that were read is NaN."""


class StackedLSTM(nn.LSTM):
    """``torch.nn.LSTM`` without biases, which can also be unrolled where a step's input needs the step before.

    Dropout acts on what goes up between layers, not on what goes on in time (Zaremba et al. 2014, section 3.1); that of
    the first layer's input is the caller's.

    Args:
        input_size: I.
        hidden_size: N.
        layers: L.
        dropout: between layers.
    """

    def __init__(self, *, input_size: int, hidden_size: int, layers: int, dropout: float = 0.0) -> None:
        super().__init__(input_size, hidden_size, layers, bias=False, dropout=dropout if layers > 1 else 0.0)

    def after_padding(self, x: Tensor, padding: Tensor) -> tuple[Tensor, State]:
        """Read sequences that are padded in front, from zero states.

        Args:
            x: (T, B, I), zero at padding.
            padding: (B,) steps before the first one of each sequence.

        Returns:
            Hidden states of the last layer (T, B, N), zero at padding, and the final states of all layers.
        """
        tops: list[Tensor] = []
        state: State | None = None
        for number, part in enumerate(x.split(_MOST_AT_REST)):
            if state is not None:  # still zero at rest: what changes is that no gradient goes further back
                rest = (padding >= number * _MOST_AT_REST).unsqueeze(1)  # (B, 1)
                state = state[0].masked_fill(rest, 0), state[1].masked_fill(rest, 0)
            top, state = self(part, state)
            tops.append(top)
        assert state is not None, "a sequence has at least one step"
        return torch.cat(tops), state

    def unrolled(self, x: Tensor) -> UnrolledLSTM:
        """A loop over steps whose inputs are known only in their first part: (T, B, I - what is fed in)."""
        return UnrolledLSTM(self, x)


class UnrolledLSTM:
    """The step loop of a :class:`StackedLSTM`, for one pass over a batch of sequences.

    The known part of all inputs is projected in one product, and all weights get their gradients in one product each.
    """

    def __init__(self, lstm: StackedLSTM, x: Tensor) -> None:
        known = x.size(-1)
        first, *others = (getattr(lstm, f"weight_ih_l{layer}") for layer in range(lstm.num_layers))  # (4N, I), (4N, N)
        # Unbound, for the backward pass of an index would fill a tensor of all steps at every step.
        self._from_known = (x @ first[:, :known].t()).unbind(0)  # T of (B, 4N)
        inputs = [first[:, known:], *others]
        states = [getattr(lstm, f"weight_hh_l{layer}") for layer in range(lstm.num_layers)]
        self._weights = [DeferredWeight(torch.cat(pair, dim=1).t()) for pair in zip(inputs, states, strict=True)]
        self._dropout = nn.Dropout(lstm.dropout).train(lstm.training)

    def step(self, t: int, fed: Tensor, state: list[State]) -> list[State]:
        """Step t: the fed part of the input (B, I′) and every layer's (h, c), (B, N) each, to the next ones."""
        after: list[State] = []
        for layer, (weight, (h, c)) in enumerate(zip(self._weights, state, strict=True)):
            below = self._dropout(after[-1][0]) if layer else fed
            gates = weight.product(torch.cat((below, h), dim=1))  # (B, 4N)
            if layer == 0:
                gates = gates + self._from_known[t]
            after.append(lstm_cell(gates, c))
        return after


def lstm_cell(gates: Tensor, c: Tensor) -> State:
    """The unit after its products, as one node of the graph instead of ten.

    c′ = σ(f) ∘ c + σ(i) ∘ tanh(g) and h′ = σ(o) ∘ tanh(c′).

    Args:
        gates: (B, 4N) sums before the non-linearities, in the order input, forget, candidate, output.
        c: (B, N) cell state before.

    Returns:
        Hidden and cell state, (B, N) each, in the type of ``c``.
    """
    result: State = _Cell.apply(gates.to(c.dtype), c)  # type: ignore[no-untyped-call]
    return result


class _Cell(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, c: Tensor) -> State:
        n = c.size(-1)
        sigma = torch.sigmoid(gates)  # (B, 4N); the candidate's part is overwritten
        g = torch.tanh(gates[:, 2 * n : 3 * n], out=sigma[:, 2 * n : 3 * n])
        i, f, o = sigma[:, :n], sigma[:, n : 2 * n], sigma[:, 3 * n :]
        after = torch.addcmul(f * c, i, g)
        tanh = torch.tanh(after)
        ctx.save_for_backward(sigma, c, tanh)
        return o * tanh, after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        d_h, d_after = gradients
        sigma, c, tanh = ctx.saved_tensors
        i, f, g, o = sigma.chunk(4, dim=-1)
        d_c = torch.addcmul(d_after, d_h * o, 1 - tanh * tanh)
        d_gates = torch.cat((d_c * g, d_c * c, d_c * i, d_h * tanh), dim=-1)
        slopes = torch.addcmul(sigma, sigma, sigma, value=-1)  # σ(1-σ)
        n = c.size(-1)
        slopes[:, 2 * n : 3 * n] = 1 - g * g
        return d_gates.mul_(slopes), d_c * f
