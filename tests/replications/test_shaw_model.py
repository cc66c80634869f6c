"""Relative positions: by hand, without distances, moved, clipped; and the checklist of a translator."""

from __future__ import annotations

from contextlib import nullcontext

import torch

from replications.shaw.model import RelativeAttention, attend, clipped
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.twins import plain_equations
from shared.layers.transformer import Positions
from tests.checklist import assert_variant


def test_the_model_passes_the_checklist() -> None:
    assert_variant("shaw", "relative")


def attention(**settings) -> RelativeAttention:
    module = RelativeAttention(**{"width": 8, "heads": 2, "clip": 2, "on_keys": True, "on_values": True} | settings)
    return module.double()


def at(queries: int, keys: int) -> Positions:
    return Positions(torch.arange(queries), torch.arange(keys))


def test_the_equations_by_hand() -> None:
    """One query at 1, keys at 0, 1, 2, one head of width 1, k = 1."""
    q, k, v = (
        torch.tensor([[[[2.0]]]]),
        torch.tensor([[[[1.0], [0.5], [-1.0]]]]),
        torch.tensor([[[[3.0], [5.0], [7.0]]]]),
    )
    w_k, w_v = torch.tensor([[[0.1], [0.2], [0.3]]]), torch.tensor([[[-1.0], [-2.0], [-3.0]]])
    pairs = clipped(Positions(torch.tensor([1]), torch.arange(3)), 1)
    assert pairs.tolist() == [[[0, 1, 2]]]
    alpha = torch.softmax(torch.tensor([2 * 1.1, 2 * 0.7, 2 * -0.7]), 0)
    for context in (nullcontext(), plain_equations()):
        with context:
            z, weights = attend(q, k, v, w_k, w_v, pairs, torch.ones(1, 3, dtype=torch.bool))
        torch.testing.assert_close(weights.flatten(), alpha)
        torch.testing.assert_close(z.flatten(), (alpha * torch.tensor([2.0, 3.0, 4.0])).sum().view(1))


def test_without_distances_it_is_the_transformer_s_attention() -> None:
    relative, x = attention(), torch.randn(3, 5, 8, dtype=torch.float64)
    plain = MultiHeadAttention(query_size=8, heads=2, key_size=4, value_size=4).double()
    plain.load_state_dict(relative.state_dict(), strict=False)
    for table in (relative.w_k_distances, relative.w_v_distances):
        torch.nn.init.zeros_(table)
    found = relative(x, relative.project(x), causal=True, positions=at(5, 5))[0]
    torch.testing.assert_close(found, plain(x, plain.project(x), causal=True)[0])


def test_only_distances_count_up_to_k() -> None:
    """Moved as a whole, a sequence attends alike; pairs at k and beyond are alike, nearer ones are not."""
    module, x = attention(), torch.randn(1, 6, 8, dtype=torch.float64)
    memory, places = module.project(x), torch.arange(6)
    at_0, at_9, spread = (module(x, memory, positions=Positions(p, p))[0] for p in (places, places + 9, 2 * places))
    torch.testing.assert_close(at_0, at_9)
    assert not torch.allclose(at_0, spread)
    torch.testing.assert_close(spread, module(x, memory, positions=Positions(3 * places, 3 * places))[0])


def test_clipped_at_0_a_sequence_has_no_order() -> None:
    module, x, turned = attention(clip=0), torch.randn(1, 6, 8, dtype=torch.float64), torch.randperm(6)
    found, other = (module(y, module.project(y), positions=at(6, 6))[0] for y in (x, x[:, turned]))
    torch.testing.assert_close(found[:, turned], other)
