"""The gated hidden unit of Cho et al. (2014) as Bahdanau et al. (2015) use it, over sequences, alone and attending.

It is not ``torch.nn.GRU``: here the reset gate acts on the state *before* the recurrent product, and the update gate
weighs the *new* candidate (Bahdanau et al., appendix A.1.1; the biases that the paper leaves out are in ``x``):

    z = sigmoid(x_z + h U_z)    r = sigmoid(x_r + h U_r)    c = tanh(x_c + (r * h) U_c)    h' = (1 - z) * h + z * c

Both functions have hand-written backward passes. Autograd over a step loop makes weight-sized gradients at every step
and adds them up; here every step only stores the gradients of its gates, and each weight gets its gradient from one
product over all steps.

Shape letters: D directions, B batch, S source length, T time steps, N state width, A alignment width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax


def gated_recurrence(x: Tensor, initial: Tensor, u_gates: Tensor, u_candidate: Tensor, mask: Tensor) -> Tensor:
    """Run the unit over every step of D independent sequences at once.

    Args:
        x: (T, D, B, 3N) input projections, in the order candidate, update, reset.
        initial: (D, B, N) state before the first step.
        u_gates: (D, N, 2N) recurrent weights U_z, U_r.
        u_candidate: (D, N, N) recurrent weights U.
        mask: (T, D, B) bool; where it is false the state is carried over unchanged.

    Returns:
        (T, D, B, N) the state after every step, in the weights' type: autocast does not reach into the loop, where
        products are too small to gain from it, only to the weights' gradients.
    """
    product = product_dtype(x.device.type, u_gates.dtype)
    with torch.autocast(x.device.type, enabled=False):
        states: Tensor = _GatedRecurrence.apply(  # type: ignore[no-untyped-call]
            x.to(u_gates.dtype), initial.to(u_gates.dtype), u_gates, u_candidate, mask, product
        )
    return states


def product_dtype(device: str, otherwise: torch.dtype) -> torch.dtype:
    """The type that autocast wants matrix products in, or ``otherwise`` where it is off."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else otherwise


def weight_gradient(inputs: Tensor, gradients: Tensor, product: torch.dtype) -> Tensor:
    """From all steps at once: (T, D, B, I) and (T, D, B, J) to (D, I, J), multiplied in the type ``product``."""
    return torch.einsum("tdbi,tdbj->dij", inputs.to(product), gradients.to(product)).to(inputs.dtype)


class _GatedRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, initial: Tensor, u_gates: Tensor, u_candidate: Tensor, mask: Tensor, product: torch.dtype
    ) -> Tensor:
        steps, n = x.size(0), initial.size(-1)
        candidates, reset_states = (x.new_empty(steps, *initial.shape) for _ in range(2))  # (T, D, B, N) each
        gates = x.new_empty(steps, *initial.shape[:-1], 2 * n)  # (T, D, B, 2N)
        states = x.new_empty(steps + 1, *initial.shape)  # (T+1, D, B, N), states[t] is before step t
        states[0] = initial
        update_mask = mask.unsqueeze(-1).to(x.dtype)  # (T, D, B, 1)
        for t in range(steps):
            h = states[t]
            torch.baddbmm(x[t, ..., n:], h, u_gates, out=gates[t]).sigmoid_()
            z, r = gates[t, ..., :n], gates[t, ..., n:]
            z *= update_mask[t]
            torch.mul(r, h, out=reset_states[t])
            torch.baddbmm(x[t, ..., :n], reset_states[t], u_candidate, out=candidates[t]).tanh_()
            torch.lerp(h, candidates[t], z, out=states[t + 1])
        ctx.save_for_backward(candidates, gates, states, reset_states, u_gates, u_candidate)
        ctx.strides, ctx.product = x.stride(), product
        return states[1:].clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (d_states,) = grad_outputs
        candidates, gates, states, reset_states, u_gates, u_candidate = ctx.saved_tensors
        n = candidates.size(-1)
        slopes = GateSlopes(candidates, gates, states[:-1])
        d_x = torch.empty_strided(  # laid out as x is, so that its own gradient needs no copy
            (*candidates.shape[:-1], 3 * n), ctx.strides, dtype=candidates.dtype, device=candidates.device
        )
        u_gates_t, u_candidate_t = u_gates.transpose(1, 2), u_candidate.transpose(1, 2)
        d_h = torch.zeros_like(states[0])
        for t in reversed(range(candidates.size(0))):
            d_h = d_h + d_states[t]
            d_reset_state = slopes.step_back(t, d_h, u_candidate_t, out=d_x[t])
            d_h = slopes.carry(t, d_h, d_reset_state).baddbmm_(d_x[t, ..., n:], u_gates_t)
        return (
            d_x,
            d_h,
            weight_gradient(states[:-1], d_x[..., n:], ctx.product),
            weight_gradient(reset_states, d_x[..., :n], ctx.product),
            None,
            None,
        )


class GateSlopes:
    """Local derivatives of the unit at every step, computed in a few large products before the backward loop.

    Args:
        candidates: (T, …, N) values c.
        gates: (T, …, 2N) values z (zero where masked) and r.
        before: (T, …, N) the state each step started from.
    """

    def __init__(self, candidates: Tensor, gates: Tensor, before: Tensor) -> None:
        z, r = gates.chunk(2, dim=-1)
        self.keep = 1 - z
        self.reset = r
        self.to_candidate = z * (1 - candidates.square())
        self.to_update = (candidates - before) * (z * self.keep)
        self.to_reset = before * (r * (1 - r))

    def step_back(self, t: int, d_h: Tensor, u_candidate_t: Tensor, *, out: Tensor) -> Tensor:
        """Write the gradient of step t's pre-activations (candidate, update, reset) into ``out`` (…, 3N).

        Returns:
            (…, N) the gradient of r * h.
        """
        n = d_h.size(-1)
        torch.mul(d_h, self.to_candidate[t], out=out[..., :n])
        torch.mul(d_h, self.to_update[t], out=out[..., n : 2 * n])
        d_reset_state = out[..., :n] @ u_candidate_t
        torch.mul(d_reset_state, self.to_reset[t], out=out[..., 2 * n :])
        return d_reset_state

    def carry(self, t: int, d_h: Tensor, d_reset_state: Tensor) -> Tensor:
        """The part of the previous state's gradient that flows through (1 - z) * h and r * h: (…, N), a new tensor."""
        return (d_h * self.keep[t]).addcmul_(d_reset_state, self.reset[t])


class GatedUnit(nn.Module):
    """Weights of D gated units over inputs of one width; the recurrent matrices start random-orthogonal.

    Args:
        input_size: width M of an input.
        hidden_size: width N of the state.
        directions: D; 2 for a bidirectional encoder, whose second unit reads the sequence from its end.
    """

    def __init__(self, *, input_size: int, hidden_size: int, directions: int = 1) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(directions, input_size, 3 * hidden_size))
        self.b = nn.Parameter(torch.zeros(directions, 1, 3 * hidden_size))
        self.u_gates = nn.Parameter(torch.empty(directions, hidden_size, 2 * hidden_size))
        self.u_candidate = nn.Parameter(torch.empty(directions, hidden_size, hidden_size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, std: float = 0.01) -> None:
        """W, W_z, W_r ~ N(0, std²); U, U_z, U_r random orthogonal, each on its own; biases 0 (appendix B.1)."""
        self.w.normal_(std=std)
        self.b.zero_()
        for u_gates, u_candidate in zip(self.u_gates, self.u_candidate, strict=True):
            for matrix in (*u_gates.chunk(2, dim=-1), u_candidate):
                matrix.copy_(nn.init.orthogonal_(torch.empty_like(matrix, memory_format=torch.contiguous_format)))

    def project(self, inputs: Tensor) -> Tensor:
        """Inputs (D, L, M) to their projections (D, L, 3N), biases added; L is any flattened extent."""
        return torch.baddbmm(self.b, inputs, self.w)


def attentive_recurrence(
    x: Tensor, initial: Tensor, keys: Tensor, values: Tensor, mask: Tensor,
    w_a: Tensor, v_a: Tensor, u_gates: Tensor, u_candidate: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run the unit over every step of a target; before each step it attends to the source.

    Teacher forcing knows all inputs beforehand, but each step's attention needs the state before it, so the steps stay
    a loop, and what it holds is kept small: keys and values are projected once per source, and the read-out happens
    after the loop. The alignment layer is evaluated as tanh(a) = 2 σ(2a) - 1, since PyTorch's σ is several times faster
    on a CPU than its tanh and this layer is most of the work. With it e = 2 v·σ(2a) - Σv, and a constant changes no
    softmax: it is left out.

    Args:
        x: (T, B, 3N) projections of the word that each step reads last, in the order candidate, update, reset.
        initial: (B, N) state s_0.
        keys: (B, S, A) U_a h_j.
        values: (B, S, 3N) the annotations after [C, C_z, C_r].
        mask: (B, S) bool, true at source words.
        w_a: (N, A) query weights W_a.
        v_a: (A,) score weights v_a.
        u_gates: (N, 2N) recurrent weights U_z, U_r.
        u_candidate: (N, N) recurrent weights U.

    Returns:
        (T, B, N) the states that each step attended and reads out from, and (T, B, S) the weights α_i,
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
