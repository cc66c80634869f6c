"""Relative positions: by hand, without distances, moved, clipped; and the checklist of a translator."""

from contextlib import nullcontext

import torch

from replications.shaw.model import RelativeAttention, attend, clipped
from shared.attention.twins import plain_equations
from shared.layers.transformer import Positions


def attention(**settings) -> RelativeAttention:
    module = RelativeAttention(**{"width": 8, "heads": 2, "clip": 2, "on_keys": True, "on_values": True} | settings)
    return module.double()


def test_the_equations_by_hand() -> None:
    """One query at 1, keys at 0, 1, 2, one head of width 1, k = 1."""
    q, k, v = (torch.tensor(each).view(1, 1, -1, 1) for each in ([2.0], [1.0, 0.5, -1.0], [3.0, 5.0, 7.0]))
    w_k, w_v = torch.tensor([[[0.1], [0.2], [0.3]]]), torch.tensor([[[-1.0], [-2.0], [-3.0]]])
    pairs = clipped(Positions(torch.tensor([1]), torch.arange(3)), 1)
    assert pairs.tolist() == [[[0, 1, 2]]]
    alpha = torch.softmax(torch.tensor([2 * 1.1, 2 * 0.7, 2 * -0.7]), 0)
    for context in (nullcontext(), plain_equations()):
        with context:
            z, weights = attend(q, k, v, w_k, w_v, pairs, torch.ones(1, 3, dtype=torch.bool))
        torch.testing.assert_close(weights.flatten(), alpha)
        torch.testing.assert_close(z.flatten(), (alpha * torch.tensor([2.0, 3.0, 4.0])).sum().view(1))


def test_only_distances_count_up_to_k() -> None:
    """Moved as a whole, a sequence attends alike; pairs at k and beyond are alike, nearer ones are not."""
    module, x = attention(), torch.randn(1, 6, 8, dtype=torch.float64)
    memory, places = module.project(x), torch.arange(6)
    at_0, at_9, spread = (module(x, memory, positions=Positions(p, p))[0] for p in (places, places + 9, 2 * places))
    torch.testing.assert_close(at_0, at_9)
    assert not torch.allclose(at_0, spread)
    torch.testing.assert_close(spread, module(x, memory, positions=Positions(3 * places, 3 * places))[0])
