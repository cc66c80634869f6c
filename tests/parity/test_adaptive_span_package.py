"""Attention within learned spans against the authors', which fairseq carries: values, gradients and the penalty.

Theirs does not divide by the sum of what the mask leaves, as the paper's equation does: the division is put in. Their
distances begin at 0, ours at 1, so their spans are one shorter; the cache is as long as the limit.
"""

import contextlib

import pytest
import torch

from replications.adaptive_span.model import SpanAttention
from shared.attention.twins import plain_equations
from tests.checklist import assert_alike
from tests.parity.fetched_packages import package_of

FILES = ("adaptive_span_attention", "adaptive_span_model")
PACKAGE = {
    "archive": {
        "requirement": "fairseq==0.12.2",
        "sha256": "08fa308c760f995cdc13d9c385e2b9d923a78b48275d8b4d78f3a854c71a8f29",
        "members": {f"fairseq/examples/adaptive_span/{name}.py": f"{name}.py" for name in FILES},
        # It has no wheel for the Python of today; none of its compiled parts is used.
        "options": ["--only-binary=:all:", "--python-version=3.8", "--abi=cp38", "--platform=manylinux1_x86_64"],
    }
}
COLUMNS, LENGTH, WIDTH, HEADS, LIMIT, RAMP = 2, 5, 6, 3, 8, 2
SPANS = (0.25, 2.5, 6.5)  # where the mask bends at a distance, each takes the slope of another side
MASKED, SUM = "        attn = self.adaptive_span(attn)\n", "        attn = attn / attn.sum(-1, keepdim=True)\n"


LAYERS = {"fairseq": {}, "fairseq.modules": {}, "fairseq.modules.layer_norm": {"LayerNorm": torch.nn.LayerNorm}}
CORRECTIONS = {MASKED: MASKED + SUM, ".float()": ""}
package = package_of(PACKAGE, FILES, "adaptive_span", {"adaptive_span": {}} | LAYERS, CORRECTIONS)


@pytest.mark.registry
@pytest.mark.parametrize("plain", [False, True])
def test_values_and_gradients_are_those_of_fairseq(package, plain):
    torch.manual_seed(1)
    mine = SpanAttention(width=WIDTH, heads=HEADS, limit=LIMIT, ramp=RAMP, dropout=0.0).double()
    theirs = package.MultiHeadSeqAttention(
        WIDTH, HEADS, attn_span=LIMIT, dropout=0.0, adapt_span_layer=False, adapt_span_ramp=RAMP, adapt_span_init=0
    ).double()
    spans = theirs.attn.adaptive_span
    with torch.no_grad():
        mine.share.copy_((torch.tensor(SPANS) + 1) / LIMIT)
        spans._mask.current_val.copy_(torch.tensor(SPANS).view(-1, 1, 1) / LIMIT)
        for ours, name in zip((mine.w_q, mine.w_k, mine.w_v, mine.w_o), ("query", "key", "val", "out"), strict=True):
            getattr(theirs, f"proj_{name}").load_state_dict(ours.state_dict())

    h = torch.randn(COLUMNS, LIMIT + LENGTH, WIDTH, dtype=torch.float64)
    p = torch.randn(LIMIT, WIDTH // HEADS, dtype=torch.float64)
    mine_of, theirs_of = ([each.clone().requires_grad_() for each in (h, p)] for _ in range(2))
    with plain_equations() if plain else contextlib.nullcontext():
        found = mine(mine_of[0][:, LIMIT:], mine.project(mine_of[0]), mine_of[1])
    wanted = theirs(theirs_of[0][:, LIMIT:], theirs_of[0], theirs_of[0], theirs_of[1].flip(0).T.unsqueeze(0))
    assert mine.z().mean().item() == pytest.approx(spans.get_loss().item() + 1, rel=1e-12)
    others = (*theirs_of, theirs.proj_query.weight, spans._mask.current_val)
    assert_alike(found, wanted, (*mine_of, mine.w_q.weight, mine.share), others, tolerance=1e-12)
