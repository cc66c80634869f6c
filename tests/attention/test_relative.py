"""Attention by distance: what is seen, and the paths of the module; equations are in ``test_twins.py``."""

import pytest
import torch

from shared.attention import relative
from tests.checklist import F64, spread

B, Q, M, D, H, K, LARGEST = 2, 3, 4, 6, 2, 3, 3
S = Q + M
EXACT = {"atol": 1e-12, "rtol": 0}
SCHEMES = ["Transformer-XL", "Shaw"]
schemes = pytest.mark.parametrize("scheme", SCHEMES)


def attention(scheme="Transformer-XL"):
    """A module with weights large enough to matter."""
    if scheme == "Shaw":
        parts = {"positions": relative.LearnedDistances(largest=LARGEST, key_size=K), "biases": None}
    else:
        parts = {
            "positions": relative.ProjectedDistances(width=D, heads=H, key_size=K),
            "biases": relative.GlobalBiases(heads=H, key_size=K),
        }
    return spread(relative.RelativeMultiHeadAttention(width=D, heads=H, key_size=K, **parts), 1.0)


def encodings(count, dtype=F64):
    """Sinusoids (C, D) in full precision."""
    angles = torch.arange(count, dtype=F64).unsqueeze(1) / 10_000 ** (torch.arange(0, D, 2, dtype=F64) / D)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).to(dtype)


def attended(module, x, queries, *, clamp=100, **others):
    """The last so many positions of (B, S, D) attend to all."""
    p = module.positions(encodings(clamp + 1, x.dtype), x.size(1))
    return module(x[:, x.size(1) - queries :], module.project(x), p, **others)


def test_masks_by_hand():
    assert relative.memory_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert relative.memory_mask(2, 4, window=2).tolist() == [[False, True, True, False], [False, False, True, True]]
    assert relative.memory_mask(2, 2, window=1).tolist() == [[True, False], [False, True]]
    assert relative.memory_mask(2, 4, device=torch.device("meta")).is_meta


@schemes
def test_paths_of_the_module_agree(scheme):
    module, x = attention(scheme), torch.randn(B, S, D, dtype=F64)
    everywhere = torch.ones(Q, S, dtype=torch.bool)
    for mask in (None, relative.memory_mask(Q, S, window=3), torch.rand(B, 1, S) < 0.7, everywhere):
        expected, a = attended(module, x, Q, mask=mask, weights=True)
        assert a.shape == (B, H, Q, S)
        with torch.no_grad():
            torch.testing.assert_close(attended(module, x, Q, mask=mask)[0], expected, **EXACT)
        seen = relative.memory_mask(Q, S) if mask is None else relative.memory_mask(Q, S) & mask
        seen = seen.expand(B, Q, S)
        assert ((a > 0) == seen.unsqueeze(1)).all()
        torch.testing.assert_close(a.sum(-1)[:, 0], seen.any(-1).to(F64), **EXACT)
