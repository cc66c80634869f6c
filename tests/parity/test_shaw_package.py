"""Relative positions of keys against those of the package conformer, which has one table for all heads: values and
gradients. It has none of values.
"""

import pytest
import torch

from replications.shaw.model import RelativeAttention
from shared.layers.transformer import Positions
from tests.parity.fetched_packages import package_of, wheel_of

WIDTH, HEADS, SIZE, CLIP, LENGTH = 12, 3, 4, 2, 7
NAME = "conformer"
PACKAGE = wheel_of(
    "conformer==0.3.2",
    "b957faa683e9e75061257f77407318428f2ad0fb5262bfc2e9b55fc2fffdfa03",
    {f"{NAME}/{NAME}.py": f"{NAME}.py"},
)
PATTERNS = {
    "b n (h d) -> b h n d": lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2),
    "b h n d -> b n (h d)": lambda x: x.transpose(1, 2).flatten(2),
    "i -> i ()": lambda x: x[:, None],
    "j -> () j": lambda x: x[None],
}
STAND_INS = {
    "einops": {"rearrange": lambda x, pattern, **sizes: PATTERNS[pattern](x, **sizes)},
    "einops.layers": {},
    "einops.layers.torch": {"Rearrange": None},
}


package = package_of(PACKAGE, [NAME], NAME, STAND_INS)


@pytest.mark.registry
def test_values_and_gradients_are_those_of_conformer(package):
    torch.manual_seed(1)
    mine = RelativeAttention(width=WIDTH, heads=HEADS, clip=CLIP, on_keys=True, on_values=False).double()
    theirs = package.Attention(WIDTH, heads=HEADS, dim_head=SIZE, max_pos_emb=CLIP).double()
    with torch.no_grad():
        theirs.to_q.weight.copy_(mine.w_q.weight)
        theirs.to_kv.weight.copy_(mine.w_kv.weight)
        theirs.to_out.weight.copy_(mine.w_o.weight)
        theirs.to_out.bias.zero_()
        mine.w_k_distances.copy_(mine.w_k_distances[:1].expand(HEADS, -1, -1))
        theirs.rel_pos_emb.weight.copy_(mine.w_k_distances[0].flip(0))  # of i - j, ours of j - i
    at = torch.arange(LENGTH)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    found, wanted = mine(x, mine.project(x), positions=Positions(at, at))[0], theirs(x)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    of = torch.randn_like(found)
    of_x, of_table = torch.autograd.grad((found * of).sum(), (x, mine.w_k_distances))
    other_x, other_table = torch.autograd.grad((wanted * of).sum(), (x, theirs.rel_pos_emb.weight))
    torch.testing.assert_close(of_x, other_x, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(of_table.sum(0).flip(0), other_table, rtol=1e-12, atol=1e-12)
