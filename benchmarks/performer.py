"""FAVOR+ and the Performer beside exact attention and the usual sums of outer products."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from benchmarks.steps import Step, heads, passes, sequence_update, summed_outer_products
from replications.performer.replication import build_model
from replications.performer.settings import ModelConfig
from shared.attention.favor import SoftmaxFeatures
from shared.attention.linear import attend_with_features
from shared.attention.scaled_dot_product import attend

MODEL = {"layers": 2, "heads": 4, "width": 64, "hidden": 256, "features": 64}


def attention(length: int, causal: bool) -> dict[str, Step]:
    """From queries, keys and values to results and back, with 64 features."""
    features = SoftmaxFeatures(key_size=64, projections=64)

    def summed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """As it is without a running peak: keys are divided by the largest of all, also of those to come."""
        values, scale = features.keys(k)
        assert scale is not None
        scaled = values * (scale - scale.amax(-1, keepdim=True)).exp().unsqueeze(-1)
        return summed_outer_products(features.queries(q), scaled, v)

    forms: dict[str, Any] = {
        "ours": partial(attend_with_features, features, mask=None, causal=causal),
        "softmax": partial(attend, causal=causal),
    }
    if causal:
        forms["outer products"] = summed
    if find_spec("performer_pytorch"):
        from performer_pytorch import FastAttention

        forms["performer-pytorch"] = FastAttention(dim_heads=64, nb_features=64, causal=causal)
    return passes(forms, heads(length))


def training(batch: int, length: int) -> dict[str, Step]:
    """Updates, with features drawn anew for each."""
    models = {
        kind: build_model(ModelConfig.model_validate(MODEL | {"attention": kind}), 30, True)
        for kind in ("softmax", "positive", "relu")
    }
    return {kind: sequence_update(model, 30, batch, length) for kind, model in models.items()}


COMPARISONS = {
    "causal attention over 1024": partial(attention, 1024, True),
    "causal attention over 4096": partial(attention, 4096, True),
    "attention over 4096": partial(attention, 4096, False),
    "training, proteins of the quick scale": partial(training, 16, 128),
    "training, whole proteins": partial(training, 4, 1024),
}
