"""Linear attention and the Linear Transformer beside exact attention, hashing and the usual sums of outer products."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.steps import Step, heads, passes, sequence_update, summed_outer_products
from replications.linear_transformer.replication import build_model
from replications.linear_transformer.settings import ModelConfig
from shared.attention.linear import chunkwise_linear_attention
from shared.attention.scaled_dot_product import attend

DIGITS: dict[str, Any] = {
    "layers": 2, "heads": 4, "width": 64, "hidden": 256, "buckets": 8, "output": "logistics", "chunk": 28,
    "max_length": 784,
}  # fmt: skip


def model_of(attention: str) -> Any:
    """A model of 256 grey levels, of the quick scale's size."""
    return build_model(ModelConfig.model_validate(DIGITS | {"attention": attention}), 257, True)


def attention(length: int, size: int = 64) -> dict[str, Step]:
    """Causal attention on given features, forward and backward."""
    forms = {
        "chunks": chunkwise_linear_attention, "softmax": partial(attend, causal=True),
        "outer products": summed_outer_products,
    }  # fmt: skip
    if find_spec("fast_transformers"):
        from fast_transformers.causal_product import causal_dot_product

        def kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            normaliser = torch.einsum("bhti,bhti->bht", q, k.cumsum(2))
            out: Tensor = causal_dot_product(q, k, v) / normaliser.unsqueeze(-1)
            return out

        forms["fast-transformers"] = kernel
    return passes(forms, heads(length, positive=True, size=size))


def training() -> dict[str, Step]:
    """Updates of 4 whole digits."""
    return {kind: sequence_update(model_of(kind), 256, 4, 784) for kind in ("linear", "softmax", "lsh")}


def generation() -> dict[str, Step]:
    """One more symbol after 500, and reading all of them anew."""
    text, ways = torch.randint(256, (1, 500)), dict[str, Step]()
    with torch.inference_mode():
        for kind in ("linear", "softmax"):
            model = model_of(kind).eval()
            state = model.initial_state(1)
            for symbol in text.unbind(1):
                _, state = model.step(symbol, state)
            ways[kind] = torch.inference_mode()(partial(model.step, text[:, 0], state))
            ways[f"{kind}, recomputed"] = torch.inference_mode()(partial(model, text))
    return ways


COMPARISONS = {
    "attention over 1024": partial(attention, 1024), "attention over 4096": partial(attention, 4096),
    "attention over 4096, heads of 32": partial(attention, 4096, 32),
    "training": training, "generation": generation,
}  # fmt: skip
