"""The decoder of RNNsearch over a whole target: a gated unit that attends to the source before every step.

Teacher forcing knows all inputs beforehand, but each step's attention needs the state before it, so the steps stay a
loop. What the loop holds is kept small: keys U_a h_j and values [C; C_z; C_r] h_j are projected once per source, the
read-out happens after the loop, and the hand-written backward pass collects every weight's gradient in one product.

The alignment layer is evaluated as tanh(a) = 2 σ(2a) - 1, since PyTorch's σ is several times faster on a CPU than its
tanh and this layer is most of the work. With it e = 2 v·σ(2a) - Σv, and a constant changes no softmax: it is left out.

Shape letters: B batch, S source length, T target length, N state width, A alignment width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from shared.attention.softmax import masked_softmax
from shared.layers.gated_recurrence import GateSlopes, product_dtype


def naive_attentive_recurrence(
    x: Tensor, initial: Tensor, keys: Tensor, values: Tensor, mask: Tensor,
    w_a: Tensor, v_a: Tensor, u_gates: Tensor, u_candidate: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The equations of appendix A.1.2, step by step: the twin of :func:`attentive_recurrence`.

    Arguments and results are those of :func:`attentive_recurrence`.
    """
    n, s, states, alphas = initial.size(-1), initial, [], []
    for t in range(x.size(0)):
        energies = torch.tanh((s @ w_a).unsqueeze(1) + keys) @ v_a  # (B, S)
        alpha = masked_softmax(energies, mask)  # (B, S)
        context = (alpha.unsqueeze(1) @ values).squeeze(1)  # (B, 3N)
        candidate, gates = (x[t] + context).split((n, 2 * n), dim=-1)
        z, r = torch.sigmoid(gates + s @ u_gates).chunk(2, dim=-1)  # (B, N) each
        c = torch.tanh(candidate + (r * s) @ u_candidate)  # (B, N)
        states.append(s)
        alphas.append(alpha)
        s = (1 - z) * s + z * c
    return torch.stack(states), torch.stack(alphas)


def attentive_recurrence(
    x: Tensor, initial: Tensor, keys: Tensor, values: Tensor, mask: Tensor,
    w_a: Tensor, v_a: Tensor, u_gates: Tensor, u_candidate: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run the attending unit over every step of the target.

    Args:
        x: (T, B, 3N) projections of the previous target words, in the order candidate, update, reset.
        initial: (B, N) state s_0.
        keys: (B, S, A) U_a h_j.
        values: (B, S, 3N) the annotations after [C, C_z, C_r].
        mask: (B, S) bool, true at source words.
        w_a: (N, A) query weights W_a.
        v_a: (A,) score weights v_a.
        u_gates: (N, 2N) recurrent weights U_z, U_r.
        u_candidate: (N, N) recurrent weights U.

    Returns:
        (T, B, N) the states s_{i-1} that each step attended and reads out from, and (T, B, S) the weights α_i,
        in the weights' type. Under autocast only the products with weights are made in the lower one.
    """
    product = product_dtype(x.device.type, w_a.dtype)
    with torch.autocast(x.device.type, enabled=False):
        x, initial, keys, values = (tensor.to(w_a.dtype) for tensor in (x, initial, keys, values))
        result: tuple[Tensor, Tensor] = _AttentiveRecurrence.apply(  # type: ignore[no-untyped-call]
            x, initial, keys, values, mask, w_a, v_a, u_gates, u_candidate, product
        )
    return result


class _AttentiveRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, initial: Tensor, keys: Tensor, values: Tensor, mask: Tensor,
        w_a: Tensor, v_a: Tensor, u_gates: Tensor, u_candidate: Tensor, product: torch.dtype,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        (steps, batch), (length, a), n = x.shape[:2], keys.shape[1:], initial.size(-1)
        from_state = torch.cat((2 * w_a, u_gates), dim=1).to(
            product
        )  # (N, A+2N), one product a step instead of two
        twice_keys, twice_v, u_candidate = 2 * keys, 2 * v_a, u_candidate.to(product)
        hidden = x.new_empty(steps, batch, length, a)  # σ(2a) of the alignment layer
        alphas = x.new_empty(steps, batch, length)
        candidates, gates = x.new_empty(steps, batch, n), x.new_empty(steps, batch, 2 * n)
        states, reset_states = x.new_empty(steps + 1, batch, n), x.new_empty(steps, batch, n)
        states[0] = initial
        for t in range(steps):
            s = states[t]
            query, recurrent = (s.to(product) @ from_state).split((a, 2 * n), dim=-1)
            torch.add(twice_keys, query.unsqueeze(1), out=hidden[t]).sigmoid_()
            alphas[t] = masked_softmax(hidden[t] @ twice_v, mask)
            inputs = torch.baddbmm(x[t].unsqueeze(1), alphas[t].unsqueeze(1), values).squeeze(1)  # (B, 3N)
            torch.add(inputs[:, n:], recurrent, out=gates[t]).sigmoid_()
            torch.mul(gates[t, :, n:], s, out=reset_states[t])
            torch.add(inputs[:, :n], reset_states[t].to(product) @ u_candidate, out=candidates[t]).tanh_()
            torch.lerp(s, candidates[t], gates[t, :, :n], out=states[t + 1])
        ctx.save_for_backward(
            hidden, alphas, candidates, gates, states, reset_states, values, twice_v, from_state, u_candidate
        )
        return states[:-1].clone(), alphas.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        d_states, d_alphas = grad_outputs
        (hidden, alphas, candidates, gates, states, reset_states,
         values, twice_v, from_state, u_candidate) = ctx.saved_tensors  # fmt: skip
        (steps, batch, _, a), n, product = hidden.shape, candidates.size(-1), from_state.dtype
        slopes = GateSlopes(candidates, gates, states[:-1])
        d_x = candidates.new_empty(steps, batch, 3 * n)
        d_from_state = candidates.new_empty(steps, batch, a + 2 * n)  # gradient of (query, recurrent)
        d_energies = torch.empty_like(alphas)
        d_keys = torch.zeros_like(hidden[0])
        slope, values_t = torch.empty_like(hidden[0]), values.transpose(1, 2)
        from_state_t, u_candidate_t = from_state.t(), u_candidate.t()
        d_s = torch.zeros_like(states[0])
        for t in reversed(range(steps)):
            d_reset_state = slopes.step_back(t, d_s, u_candidate_t, out=d_x[t])
            d_from_state[t, :, a:] = d_x[t, :, n:]
            d_alpha = (
                (d_x[t].unsqueeze(1) @ values_t).squeeze(1).add_(d_alphas[t])
            )  # a row product: the column form is slower
            d_alpha -= (d_alpha * alphas[t]).sum(-1, keepdim=True)
            torch.mul(d_alpha, alphas[t], out=d_energies[t])  # zero at padding, since α is
            torch.addcmul(hidden[t], hidden[t], hidden[t], value=-1, out=slope)  # σ(1-σ), as is dσ(2a)/d(2a)
            d_keys.addcmul_(d_energies[t].unsqueeze(2), slope)
            torch.mul((d_energies[t].unsqueeze(1) @ slope).squeeze(1), twice_v, out=d_from_state[t, :, :a])
            d_s = (
                slopes.carry(t, d_s, d_reset_state)
                .add_(d_from_state[t].to(product) @ from_state_t)
                .add_(d_states[t])
            )
        d_weights = _over_steps(states[:-1].to(product), d_from_state.to(product)).to(d_x.dtype)
        return (
            d_x,
            d_s,
            d_keys * (2 * twice_v),
            alphas.permute(1, 2, 0) @ d_x.transpose(0, 1),
            None,
            2 * d_weights[:, :a],
            2 * (d_energies.flatten() @ hidden.flatten(0, 2)),
            d_weights[:, a:],
            _over_steps(reset_states.to(product), d_x[..., :n].to(product)).to(d_x.dtype),
            None,
        )


def _over_steps(inputs: Tensor, gradients: Tensor) -> Tensor:
    """A weight's gradient from all steps at once: (T, B, I) and (T, B, J) to (I, J)."""
    return inputs.flatten(0, 1).t() @ gradients.flatten(0, 1)
