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
from shared.layers.gated_recurrence import GateSlopes, product_dtype, weight_gradient


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
        in the weights' type: autocast does not reach into the loop, only to the weights' gradients.
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
        (steps, batch), n = x.shape[:2], initial.size(-1)
        from_state = torch.cat((u_gates, 2 * w_a), dim=1)  # (N, 2N+A), one product a step instead of two
        twice_keys, twice_v = 2 * keys, 2 * v_a
        hidden = []  # σ(2a) of the alignment layer at each step, (B, S, A); small tensors, which allocators reuse
        alphas = x.new_empty(steps, *mask.shape)
        candidates, gates = x.new_empty(steps, batch, n), x.new_empty(steps, batch, 2 * n)
        states, reset_states = x.new_empty(steps + 1, batch, n), x.new_empty(steps, batch, n)
        states[0] = initial
        for t in range(steps):
            s = states[t]
            recurrent, query = (s @ from_state).tensor_split((2 * n,), dim=-1)
            hidden.append((twice_keys + query.unsqueeze(1)).sigmoid_())
            alphas[t] = masked_softmax(hidden[t] @ twice_v, mask)
            inputs = torch.baddbmm(x[t].unsqueeze(1), alphas[t].unsqueeze(1), values).squeeze(1)  # (B, 3N)
            torch.add(inputs[:, n:], recurrent, out=gates[t]).sigmoid_()
            torch.mul(gates[t, :, n:], s, out=reset_states[t])
            torch.addmm(inputs[:, :n], reset_states[t], u_candidate, out=candidates[t]).tanh_()
            torch.lerp(s, candidates[t], gates[t, :, :n], out=states[t + 1])
        ctx.save_for_backward(
            alphas, candidates, gates, states, reset_states, values, twice_v, from_state, u_candidate, *hidden
        )
        ctx.product = product
        return states[:-1].clone(), alphas.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        d_states, d_alphas = grad_outputs
        (alphas, candidates, gates, states, reset_states,
         values, twice_v, from_state, u_candidate, *hidden) = ctx.saved_tensors  # fmt: skip
        (steps, batch, n), a = candidates.shape, len(twice_v)
        slopes = GateSlopes(candidates, gates, states[:-1])
        d_sums = candidates.new_empty(steps, batch, 3 * n + a)  # before the non-linearities: candidate, gates, query
        d_x, d_from_state = d_sums[..., : 3 * n], d_sums[..., n:]
        values_t, from_state_t, u_candidate_t = values.transpose(1, 2), from_state.t(), u_candidate.t()
        d_keys, d_v, d_s = torch.zeros_like(hidden[0]), torch.zeros_like(twice_v), torch.zeros_like(states[0])
        for t in reversed(range(steps)):
            d_reset_state = slopes.step_back(t, d_s, u_candidate_t, out=d_x[t])
            d_alpha = (d_x[t].unsqueeze(1) @ values_t).squeeze(1).add_(d_alphas[t])  # (B, S)
            d_energies = alphas[t] * (d_alpha - (d_alpha * alphas[t]).sum(-1, keepdim=True))  # zero at padding
            d_v.addmv_(hidden[t].flatten(0, 1).t(), d_energies.flatten())
            slope = torch.addcmul(hidden[t], hidden[t], hidden[t], value=-1)  # σ(1-σ), the derivative by 2a
            d_keys.addcmul_(d_energies.unsqueeze(2), slope)
            torch.mul((d_energies.unsqueeze(1) @ slope).squeeze(1), twice_v, out=d_from_state[t, :, 2 * n :])
            d_s = slopes.carry(t, d_s, d_reset_state).addmm_(d_from_state[t], from_state_t).add_(d_states[t])
        one_direction = (tensor.unsqueeze(1) for tensor in (states[:-1], d_from_state, reset_states, d_x[..., :n]))
        s, d_from_s, reset_s, d_candidate = one_direction
        d_weights = weight_gradient(s, d_from_s, ctx.product)[0]
        return (
            d_x,
            d_s,
            d_keys * (2 * twice_v),
            alphas.permute(1, 2, 0) @ d_x.transpose(0, 1),
            None,
            2 * d_weights[:, 2 * n :],
            2 * d_v,
            d_weights[:, : 2 * n],
            weight_gradient(reset_s, d_candidate, ctx.product)[0],
            None,
        )
