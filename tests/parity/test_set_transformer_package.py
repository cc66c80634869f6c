"""The blocks of the Set Transformer against PyTorch Geometric's, with the same weights: values and gradients.

Theirs divide scores by the root of a head's width, as Vaswani et al., and the paper by that of all heads together.
"""

import pytest
import torch

from replications.set_transformer.model import ISAB, MAB, PMA, SAB
from tests.checklist import assert_alike
from tests.parity.fetched_packages import package_of, wheel_of

WIDTH, HEADS, POINTS = 12, 3, 4
PACKAGE = wheel_of(
    "torch-geometric==2.8.1",
    "b628de243c0893f3435b6eca9a7bbc07f3219293ed27c974b8929aaae42e65d0",
    {"torch_geometric/nn/aggr/utils.py": "utils.py"},
)


package = package_of(PACKAGE, ["utils"], "torch_geometric", {})


def mab(*, norm):
    return MAB(width=WIDTH, heads=HEADS, norm=norm)


def copy_block(mine, theirs):
    w_q = mine.multihead.w_q.weight * HEADS**-0.5
    theirs.attn.in_proj_weight.copy_(torch.cat((w_q, mine.multihead.w_kv.weight)))
    theirs.attn.out_proj.weight.copy_(mine.multihead.w_o.weight)
    theirs.lin.load_state_dict(mine.rff[0].state_dict())


BLOCKS = {
    "SAB": (SAB, "SetAttentionBlock", {}, {}, [("mab", "mab")], None),
    "ISAB": (ISAB, "InducedSetAttentionBlock", {"points": POINTS, "width": WIDTH}, {"num_induced_points": POINTS},
             [("mab_h", "mab1"), ("mab", "mab2")], ("points", "ind")),
    "PMA": (PMA, "PoolingByMultiheadAttention", {"seeds": 2, "width": WIDTH}, {"num_seed_points": 2},
            [("mab", "mab")], ("seeds", "seed")),
}  # fmt: skip


@pytest.mark.registry
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("name", BLOCKS)
def test_values_and_gradients_are_those_of_pytorch_geometric(package, name, norm):
    block, theirs, sizes, their_sizes, parts, vectors = BLOCKS[name]
    torch.manual_seed(1)
    mine = block(lambda: mab(norm=norm), **sizes).double()
    other = getattr(package, theirs)(WIDTH, heads=HEADS, layer_norm=norm, **their_sizes).double()
    with torch.no_grad():
        for ours, their in parts:
            copy_block(getattr(mine, ours), getattr(other, their))
        if vectors:
            getattr(other, vectors[1]).copy_(getattr(mine, vectors[0]))
        if name == "PMA":
            other.lin.load_state_dict(mine.rff[0].state_dict())
    x = torch.randn(3, 6, WIDTH, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    x.requires_grad_()
    found, wanted = mine(x, mask), other(x, mask)
    if name != "PMA":  # what stands where there is no element says nothing
        found, wanted = found[mask], wanted[mask]
    assert_alike(found, wanted, (x,), tolerance=1e-13)
