"""Long short-term memory: stacked (Zaremba et al. 2014, as in Luong et al. 2015) and bidirectional, with twins.

The unit is :func:`lstm_unit`, and :func:`read_sequence` runs it over a sequence. Neither LSTM here has biases of its
own: a unit that is at rest and reads zeros stays at rest exactly, so padding before a sequence changes nothing.

Shape letters: B batch, T time steps, I input width, N state width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.twins import runs_as
from shared.layers.gated_recurrence import product_dtype

State = tuple[Tensor, Tensor]
"""Hidden and cell states: of all layers (L, B, N) each, or of one (B, N) each."""
Product = Callable[[Tensor], Tensor]
"""(B, I) to (B, O): a product with a weight."""
Advance = Callable[[Tensor, Tensor | None, Any], tuple[Tensor, Any]]
"""Inputs (T, B, I), a last part of the input (B, I′) or None, and the state to (T, B, N) and the next state."""
_MOST_AT_REST = 32
"""Steps of padding that a gradient may pass. It adds nothing to the weights' gradients there, yet it may grow fivefold
a step: after some 55 steps it is infinite in float32, and infinity times the zeros that were read is NaN."""


def one_node(gates: Tensor, c: Tensor) -> State:
    """The twin of :func:`lstm_unit`: one node of the graph instead of ten, in the type of ``c``."""
    result: State = _Cell.apply(gates.to(c.dtype), c)  # type: ignore[no-untyped-call]
    return result


@runs_as(one_node)
def lstm_unit(gates: Tensor, c: Tensor) -> State:
    """c′ = σ(f) ∘ c + σ(i) ∘ tanh(g) and h′ = σ(o) ∘ tanh(c′).

    Args:
        gates: (B, 4N) W_x x + W_h h, in the order i, f, g, o.
        c: (B, N) cell state before.

    Returns:
        h′ and c′, (B, N) each.
    """
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def deferred_product(weight: Tensor) -> Product:
    """The twin of :func:`product_with`, whose weight gets its gradient from one product over all steps of a loop.

    Autograd over a loop makes a weight-sized gradient at every step and adds them up. Here a step only keeps its input
    and the gradient of its output, and when the last step is done one product makes the weight's gradient of them.
    Autocast does not reach into the loop, whose products are too small to gain from it, only to the gradient.
    """
    # The graph refers to the steps, not to this closure, which refers to the graph; so there is no reference cycle.
    steps = _Steps(product_dtype(weight.device.type, weight.dtype))
    whole: Tensor = _AllSteps.apply(weight, steps)  # type: ignore[no-untyped-call]

    def product(x: Tensor) -> Tensor:
        kept = steps if torch.is_grad_enabled() and whole.requires_grad else None
        with torch.autocast(x.device.type, enabled=False):
            y: Tensor = _OneStep.apply(x.to(whole.dtype), whole, kept)  # type: ignore[no-untyped-call]
        return y

    return product


@runs_as(deferred_product)
def product_with(weight: Tensor) -> Product:
    """x ↦ x W for the steps of one loop and one backward pass through it; W is (I, O)."""
    return lambda x: x @ weight


def stacked_unit(products: Sequence[Product], x: Tensor, state: Sequence[State], dropout: nn.Module) -> list[State]:
    """One step of all layers (Luong et al., section 2): the input (B, I), all layers' (h, c) before, and those after.

    Dropout acts on what goes up between layers, not on what goes on in time (Zaremba et al., section 3.1).
    """
    after: list[State] = []
    for layer, (product, (h, c)) in enumerate(zip(products, state, strict=True)):
        below = dropout(after[-1][0]) if layer else x
        after.append(lstm_unit(product(torch.cat((below, h), dim=1)), c))
    return after


def fused_sequence(lstm: nn.LSTM, x: Tensor, state: State | None) -> tuple[Tensor, State]:
    """The twin of :func:`read_sequence`: PyTorch's kernel."""
    result: tuple[Tensor, State] = nn.LSTM.forward(lstm, x, state)
    return result


@runs_as(fused_sequence)
def read_sequence(lstm: nn.LSTM, x: Tensor, state: State | None) -> tuple[Tensor, State]:
    """The stacked units over (T, B, I) inputs, from a state or from zeros: (T, B, N), and the last state.

    A bidirectional LSTM of one layer reads in both directions, and gives (T, B, 2N).
    """
    if lstm.bidirectional:
        zero = x.new_zeros(x.size(1), lstm.hidden_size)
        (ahead, *_), (back, *_) = (
            _unroll(lstm, name, steps, [(zero, zero)]) for name, steps in (("", x), ("_reverse", x.flip(0)))
        )
        return torch.cat((ahead, back.flip(0)), dim=-1), (zero, zero)
    if state is None:
        zeros = x.new_zeros(lstm.num_layers, x.size(1), lstm.hidden_size)
        state = zeros, zeros
    top, layers = _unroll(lstm, "", x, list(zip(*(part.unbind(0) for part in state), strict=True)))
    h, c = (torch.stack(part) for part in zip(*layers, strict=True))
    return top, (h, c)


def _unroll(lstm: nn.LSTM, direction: str, x: Tensor, layers: list[State]) -> tuple[Tensor, list[State]]:
    products = [
        product_with(torch.cat([getattr(lstm, f"weight_{of}_l{n}{direction}") for of in ("ih", "hh")], dim=1).t())
        for n in range(lstm.num_layers)
    ]
    top, dropout = [], nn.Dropout(lstm.dropout).train(lstm.training)
    for x_t in x:
        layers = stacked_unit(products, x_t, layers, dropout)
        top.append(layers[-1][0])
    return torch.stack(top), layers


class StackedLSTM(nn.LSTM):
    """``torch.nn.LSTM`` without biases: over whole sequences, or unrolled where a step's input needs the step before.

    Args:
        input_size: I.
        hidden_size: N.
        layers: L.
        dropout: between layers; that of the first layer's input is the caller's.
    """

    def __init__(self, *, input_size: int, hidden_size: int, layers: int, dropout: float = 0.0) -> None:
        super().__init__(input_size, hidden_size, layers, bias=False, dropout=dropout if layers > 1 else 0.0)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:  # type: ignore[override]
        """Inputs (T, B, I) to hidden states of the last layer (T, B, N), and the final states of all layers."""
        return read_sequence(self, x, state)

    def after_padding(self, x: Tensor, padding: Tensor) -> tuple[Tensor, State]:
        """Read sequences that are padded in front, from zero states.

        Args:
            x: (T, B, I), zero at padding.
            padding: (B,) steps before the first one of each sequence.

        Returns:
            Hidden states of the last layer (T, B, N), zero at padding, and the final states of all layers.
        """
        if not len(x):  # which PyTorch's LSTM refuses
            zeros = x.new_zeros(self.num_layers, x.size(1), self.hidden_size)
            return zeros[:0], (zeros, zeros)
        tops: list[Tensor] = []
        state: Any = None
        for number, part in enumerate(x.split(_MOST_AT_REST)):
            if state is not None:  # still zero at rest: what changes is that no gradient goes further back
                rest = (padding >= number * _MOST_AT_REST).unsqueeze(1)  # (B, 1)
                state = state[0].masked_fill(rest, 0), state[1].masked_fill(rest, 0)
            top, state = self(part, state)
            tops.append(top)
        return torch.cat(tops), state

    def advance(self, x: Tensor, fed: Tensor | None, state: State) -> tuple[Tensor, State]:
        """See :data:`Advance`: all steps at once, or one step whose input has a part that is fed back."""
        return read_sequence(self, x if fed is None else torch.cat((x, fed.unsqueeze(0)), dim=-1), state)

    def unrolled(self, x: Tensor) -> Advance:
        """The step loop of one pass over a batch, whose inputs (T, B, I - I′) are known but for what is fed back.

        The known part of all inputs is projected in one product.
        """
        known = x.size(-1)
        first, *others = (getattr(self, f"weight_ih_l{layer}") for layer in range(self.num_layers))  # (4N, I), (4N, N)
        # Unbound, for the backward pass of an index would fill a tensor of all steps at every step.
        from_known = iter((x @ first[:, :known].t()).unbind(0))  # T of (B, 4N)
        own = [getattr(self, f"weight_hh_l{layer}") for layer in range(self.num_layers)]
        below, *above = [
            product_with(torch.cat(pair, dim=1).t()) for pair in zip([first[:, known:], *others], own, strict=True)
        ]
        dropout = nn.Dropout(self.dropout).train(self.training)

        def advance(_: Tensor, fed: Tensor | None, state: Any) -> tuple[Tensor, list[State]]:
            assert fed is not None
            if isinstance(state, tuple):  # of the encoder
                state = list(zip(*(part.unbind(0) for part in state), strict=True))
            of_known = next(from_known)
            products = [lambda z: below(z) + of_known, *above]
            state = stacked_unit(products, fed, state, dropout)
            return state[-1][0].unsqueeze(0), state

        return advance


class BidirectionalLSTM(nn.Module):
    """h_t = [h→_t; h←_t] over right-padded batches, which padding does not change: 2 · 4u(I + 1 + u) parameters.

    The biases, one a gate, are the weights of a further input that is 1 at words and 0 at padding. So the backward
    direction, which meets the padding first, starts each text as if there were none. Packed sequences give the same
    numbers, but on a CPU they leave PyTorch's fused kernel.

    Args:
        input_size: I.
        hidden_size: u.
    """

    def __init__(self, *, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size + 1, hidden_size, bias=False, bidirectional=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, I) inputs, right-padded, and their mask (B, n), true at words, to (B, n, 2u), zero at padding."""
        words = mask.unsqueeze(-1).to(x.dtype)  # (B, n, 1)
        h, _ = read_sequence(self.lstm, torch.cat((x * words, words), dim=-1).transpose(0, 1), None)  # (n, B, 2u)
        return h.transpose(0, 1) * words.to(h.dtype)


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


class _Steps:
    """What the steps leave for the weight's gradient, which is made in the type ``product``."""

    def __init__(self, product: torch.dtype) -> None:
        self.inputs: list[Tensor] = []
        self.gradients: dict[int, Tensor] = {}
        self.product = product

    def gradient(self) -> Tensor | None:
        """Of the weight, from the steps that the loss depends on; their memory is given back."""
        steps = sorted(self.gradients)
        if not steps:
            return None
        inputs = torch.cat([self.inputs[step] for step in steps])  # (T·B, I)
        gradients = torch.cat([self.gradients[step] for step in steps])  # (T·B, O)
        self.inputs.clear()
        self.gradients.clear()
        return (inputs.to(self.product).t() @ gradients.to(self.product)).to(inputs.dtype)


class _AllSteps(torch.autograd.Function):
    """The weight itself; its backward pass comes when those of all steps have been."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, steps: _Steps) -> Tensor:
        ctx.steps = steps
        ctx.set_materialize_grads(False)  # no step sends a gradient along the graph
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, None]:
        return ctx.steps.gradient(), None


class _OneStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, steps: _Steps | None) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.steps = steps
        if steps is not None:
            ctx.step = len(steps.inputs)
            steps.inputs.append(x.detach())
        return x @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (d_y,), (weight,) = gradients, ctx.saved_tensors
        if ctx.steps is not None:
            ctx.steps.gradients[ctx.step] = d_y
        return d_y @ weight.t(), None, None
