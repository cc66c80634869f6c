"""The Linear Transformer against the authors' library, fast-transformers: values and gradients.

What it has in Python alone is run, its compiled parts left out: linear and softmax attention that see all positions,
and both as recurrent networks, which are causal.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from tests.checklist import assert_alike
from tests.parity.fetched_packages import fetched
from tests.replications.small_sequences import F64, HIDDEN, D, H, N, padded, small, steps

NAME = "fast_transformers"
PACKAGE = {
    "archive": {
        "requirement": "pytorch-fast-transformers==0.4.0",
        "sha256": "d1826bc31b9dfbcd018998b897667e89fc6566bd3f8c424cda9f0943544f7e90",
        "members": {f"pytorch-fast-transformers-0.4.0/{NAME}/": f"{NAME}/"},
        "options": ["--no-binary=:all:"],
    }
}
COMPILED = (
    "aggregate.aggregate_cpu", "causal_product.causal_product_cpu", "clustering.hamming.cluster_cpu",
    "hashing.hash_cpu", "local_product.local_product_cpu", "sparse_product.sparse_product_cpu",
    "sparse_product.clustered_sparse_product_cpu",
)  # fmt: skip


class Compiled(ModuleType):
    """Has everything, of which nothing can be called."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Imports a module of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        # Its build script, which tells the metadata, imports torch, and looks for CUDA if there is an nvcc.
        patch.setenv("PIP_NO_BUILD_ISOLATION", "false")
        patch.setenv("PATH", os.defpath)
        folder = fetched(PACKAGE, (NAME,), tmp_path_factory, needs_bytes=10_000_000)
    others = {name: module for name, module in sys.modules.items() if name.split(".")[0] == NAME}
    with pytest.MonkeyPatch.context() as patch:
        for name in others:
            patch.delitem(sys.modules, name)
        patch.syspath_prepend(folder)
        for name in COMPILED:
            patch.setitem(sys.modules, f"{NAME}.{name}", Compiled(name))
        yield lambda module: importlib.import_module(f"{NAME}.{module}")
        for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
            del sys.modules[name]
    sys.modules.update(others)


def build(package: Any, kind: str, attention: str) -> nn.Module:
    """Their encoder of our sizes, which adds nothing to what it divides by."""
    theirs = getattr(package("builders"), f"{kind}Builder").from_kwargs(
        n_layers=N, n_heads=H, query_dimensions=D // H, value_dimensions=D // H, feed_forward_dimensions=HIDDEN,
        attention_type={"linear": "linear", "softmax": "full"}[attention], dropout=0.0, attention_dropout=0.0,
        final_normalization=True,
    ).get()  # fmt: skip
    for module in theirs.modules():
        if hasattr(module, "feature_map"):
            module.eps = 0.0
    return theirs.to(F64)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Ours under their names."""
    found = {f"norm.{name}": weight for name, weight in model.norm.named_parameters()}
    for n, layer in enumerate(model.layers):
        heads = layer.attention.heads
        parts = {
            "attention.query_projection": heads.w_q, "attention.out_projection": heads.w_o,
            "linear1": layer.feed_forward.w_1, "linear2": layer.feed_forward.w_2,
            "norm1": layer.attention_norm, "norm2": layer.feed_forward_norm,
        }  # fmt: skip
        for name, module in parts.items():
            found |= {f"layers.{n}.{name}.{own}": weight for own, weight in module.named_parameters()}
        for own, weight in heads.w_kv.named_parameters():
            k, v = weight.chunk(2)
            found[f"layers.{n}.attention.key_projection.{own}"] = k
            found[f"layers.{n}.attention.value_projection.{own}"] = v
    return found


def assert_same(model: nn.Module, found: Tensor, expected: Tensor) -> None:
    """Values, and gradients of all of our parameters but the output's."""
    parameters = [weight for name, weight in model.named_parameters() if not name.startswith("output")]
    assert_alike(found, expected, parameters, tolerance=1e-10)


@pytest.mark.registry
@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_what_sees_all_positions_is_theirs(package, attention):
    model = small(attention, causal=False).train()
    inputs, mask = padded([11, 4, 7])
    x = model.embedding(inputs) + model.positions(0, 11)
    lengths = package("masking").LengthMask(mask.sum(1), max_len=11)
    theirs = build(package, "TransformerEncoder", attention)
    expected = functional_call(theirs, weights(model), (x,), {"length_mask": lengths})
    assert_same(model, model(inputs, mask)[mask], expected[mask])


@pytest.mark.registry
@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_what_is_causal_is_their_recurrent_network(package, attention):
    model = small(attention).train()
    inputs, _ = padded([70, 70])
    x = model.embedding(inputs) + model.positions(0, 70)
    theirs, state, states = build(package, "RecurrentEncoder", attention), None, []
    for read in x.unbind(1):
        h, state = functional_call(theirs, weights(model), (read, state))
        states.append(h)
    expected = torch.stack(states, dim=1)
    assert_same(model, model(inputs), expected)
    with torch.no_grad():
        found = torch.stack([*steps(model, inputs)], dim=1)
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
