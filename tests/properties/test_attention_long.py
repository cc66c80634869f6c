"""Every attention over 65,536 positions, in float32 and in bfloat16, beside float64 of the same numbers.

Where all pairs of positions would be compared, the last two positions ask; linear attention and hashing take them all.
"""

import pytest
import torch
from torch import Tensor, nn

from replications.show_attend_tell.attention import HardAttention, Image, SoftAttention
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention
from shared.attention.multi_head import IdentityAttention, MultiHeadAttention
from shared.attention.scaled_dot_product import causal_mask
from tests.attention.registry import ATTENTIONS, Attention
from tests.checklist import spread
from tests.properties.test_attention_properties import CHOOSING, LONG, STEPS, M, N

WORDS = 2 * LONG // 3
WITHIN = {torch.float32: 2e-3, torch.bfloat16: 0.1}
"""What rounding may change: of results, in units of the largest or of one, and of a gradient, a share of its norm."""
ROUNDED = {"Transformer-XL", "Shaw", "FAVOR+ ReLU, causal"}
"""Attentions whose gradients in bfloat16 are finite here and no more: half to three times their norm is rounding."""
ALL_ASK = {name for name in ATTENTIONS if name.startswith("LSH") or name.endswith(", causal")}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in ALL_ASK else name for name in ATTENTIONS]


def long_case(entry: Attention, dtype: torch.dtype) -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """A module with numbers of a usual initialisation, its inputs, and a mask without the last third."""
    torch.manual_seed(1)
    module = spread(entry.build(N, M), N**-0.5)
    annotations = torch.randn(1, LONG, M)
    queries = annotations[:, -2:] if entry.reads_itself else torch.randn(1, 2, N)
    mask = torch.arange(LONG).unsqueeze(0) < (WORDS if entry.masked and not entry.causal else LONG)
    return module.to(dtype), queries.to(dtype), annotations.to(dtype), mask


def attended(entry: Attention, module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """What an attention gives: contexts where it has a fast path of its own, else weights."""
    match module:
        case LinearMultiHeadAttention():
            asked = annotations if entry.causal else queries
            return module(asked, module.project(annotations), mask=mask, causal=entry.causal)[0]
        case IdentityAttention():
            return module(annotations, module.project(annotations), causal=True)[0]
        case MultiHeadAttention():
            seen = mask[:, None, None]
            seen = seen & causal_mask(queries.size(1), LONG) if entry.causal else seen
            return module(queries, module.project(annotations), mask=seen)[0]
        case LSHSelfAttention():
            return module(annotations, mask=mask, causal=entry.causal)[0]
        case SoftAttention() | HardAttention():
            return module(queries, Image(annotations, module.keys(annotations))).z_hat
    return entry.weights(module, queries, annotations, mask)


def with_gradients(entry: Attention, module: nn.Module, *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The result, and the gradients of the queries, the annotations and the parameters."""
    queries, annotations = (x.detach().clone().requires_grad_() for x in inputs[:2])
    found = attended(entry, module, queries, annotations, inputs[2])
    if not entry.differentiable:
        return found.detach(), []
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(2)).to(found.dtype)
    wanted = (queries, annotations, *module.parameters())
    return found.detach(), [*torch.autograd.grad(found, wanted, direction, materialize_grads=True)]


@pytest.mark.parametrize("dtype", WITHIN, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_very_long_inputs_stay_within_bounds_of_more_precision(name: str, dtype: torch.dtype) -> None:
    entry = ATTENTIONS[name]
    module, *inputs = long_case(entry, dtype)
    found, gradients = with_gradients(entry, module, *inputs)
    assert found.dtype == dtype
    assert found.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    if name in STEPS or (name in CHOOSING - {"identity"} and dtype == torch.bfloat16):
        return  # another place is chosen where rounding decides
    queries, annotations, mask = inputs
    exact, exact_gradients = with_gradients(entry, module.double(), queries.double(), annotations.double(), mask)
    torch.testing.assert_close(found.double(), exact, atol=WITHIN[dtype] * max(1.0, float(exact.abs().max())), rtol=0)
    if name in ROUNDED and dtype == torch.bfloat16:
        return
    for gradient, other in zip(gradients, exact_gradients, strict=True):
        assert (gradient.double() - other).norm() <= WITHIN[dtype] * max(other.norm(), 1e-3)
