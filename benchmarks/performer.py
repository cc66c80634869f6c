"""Speed of FAVOR+ and the Performer beside other implementations, as ratios within one run.

    python -m benchmarks.performer [--threads 2] [--packages FOLDER] [--out FILE]

Random features are measured alone, and attention from queries, keys and values to results, forward and backward,
causal and not: ours, exact attention by PyTorch's fused kernel, and with ``--packages`` performer-pytorch, which is
fetched into that folder; without, our features with outer products summed up as there. Layers with their projections
show from which length on they are quicker than exact attention. Training is whole updates at the quick scale's sizes
and at the paper's length for proteins, with features drawn anew each time as there. See timing.py for how contenders
are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.linear_peers import performer_attention, performer_pytorch
from benchmarks.linear_timing import (
    both_ways,
    compared,
    crossovers,
    heads_of,
    run_with_packages,
    training_step,
    updates,
)
from benchmarks.plain_linear_attention import summed_outer_products
from benchmarks.timing import Step, seconds_in_turns
from replications.performer.model import Performer
from replications.performer.replication import LAYERS, build_model
from replications.performer.settings import ModelConfig
from shared.attention.favor import SoftmaxFeatures
from shared.attention.feature_maps import EluPlusOne, FeatureMap, ReLU
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.attention.scaled_dot_product import attend


class Size(NamedTuple):
    """What a model is trained on: B sequences of T symbols."""

    batch: int
    length: int


MODEL = {"layers": 2, "heads": 4, "width": 64, "hidden": 256, "features": 64}
VOCABULARY = 30
SIZES = {"copy, quick": Size(32, 25), "proteins, quick": Size(16, 128), "whole proteins": Size(4, 1024)}
KINDS = ("positive", "relu", "softmax")
HEADS, KEY_SIZE, FEATURES = 8, 64, 64
LENGTHS, MAPPED, PROJECTIONS = (1024, 4096), 1024, (64, 256)


def model_of(kind: str) -> Performer:
    """The model with one kind of attention."""
    torch.manual_seed(0)
    return build_model(ModelConfig.model_validate(MODEL | {"attention": kind}), VOCABULARY, True)


def contender(name: str) -> Step:
    """One whole update of a contender, features drawn anew."""
    which, kind = name.split(": ")
    model, size = model_of(kind), SIZES[which]
    update = training_step(model, *torch.randint(VOCABULARY, (2, size.batch, size.length)))

    def step() -> None:
        model.at_update(0)
        update()

    return step


LONGEST = {f"whole proteins: {kind}": partial(contender, f"whole proteins: {kind}") for kind in KINDS}


def maps(turns: int, packages: Path | None) -> dict[str, object]:
    """Milliseconds of the features of queries and keys, forward and backward, beside their product with projections."""
    figures: dict[str, object] = {}
    for projections in PROJECTIONS:
        torch.manual_seed(0)
        ours = SoftmaxFeatures(key_size=KEY_SIZE, projections=projections)
        named: dict[str, FeatureMap] = {"positive": ours, "elu + 1": EluPlusOne(), "relu": ReLU()}
        forms: dict[str, Callable[..., Tensor]] = {
            "projections": lambda x, y, w=ours.w: torch.cat((x @ w.t(), y @ w.t())),
            **{name: partial(_mapped, features) for name, features in named.items()},
        }
        if packages is not None:
            kernel = partial(performer_pytorch(packages).softmax_kernel, projection_matrix=ours.w)
            forms["performer-pytorch"] = lambda x, y, of=kernel: torch.cat(
                (of(x, is_query=True), of(y, is_query=False))
            )
        inputs = heads_of(MAPPED, HEADS, KEY_SIZE)[:2]
        steps = {name: both_ways(form, inputs) for name, form in forms.items()}
        figures[f"{projections} projections"] = compared(seconds_in_turns(steps, turns), "positive")
    return figures


def _mapped(features: FeatureMap, x: Tensor, y: Tensor) -> Tensor:
    return torch.cat((features.queries(x), features.keys(y).values))


def redrawing(turns: int, packages: Path | None) -> dict[str, object]:
    """Milliseconds to draw orthogonal projections anew."""
    features = SoftmaxFeatures(key_size=KEY_SIZE, projections=max(PROJECTIONS))
    steps: dict[str, Step] = {"ours": features.redraw}
    if packages is not None:
        draw = performer_pytorch(packages).gaussian_orthogonal_random_matrix
        steps["performer-pytorch"] = partial(draw, max(PROJECTIONS), KEY_SIZE)
    return compared(seconds_in_turns(steps, turns), "ours")


def attention(causal: bool, turns: int, packages: Path | None) -> dict[str, object]:
    """Milliseconds from queries, keys and values to results and back, and how many times ours; of a single sequence."""
    figures: dict[str, object] = {}
    for length in LENGTHS:
        torch.manual_seed(0)
        features = SoftmaxFeatures(key_size=KEY_SIZE, projections=FEATURES)
        forms: dict[str, Callable[..., Tensor]] = {
            "ours": partial(_favor, features, causal),
            "softmax": lambda q, k, v: attend(q, k, v, causal=causal),
        }
        if packages is None and causal:
            forms["outer products"] = partial(_summed, features)
        elif packages is not None:
            forms["performer-pytorch"] = performer_attention(
                packages, key_size=KEY_SIZE, features=FEATURES, causal=causal
            )
        inputs = heads_of(length, HEADS, KEY_SIZE)
        steps = {name: both_ways(form, inputs) for name, form in forms.items()}
        figures[f"T = {length}"] = compared(seconds_in_turns(steps, turns), "ours")
    return figures


def _favor(features: SoftmaxFeatures, causal: bool, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, scale = features.keys(k)
    if causal:
        return chunkwise_linear_attention(features.queries(q), k, v, log_scale=scale)[0]
    return linear_attention(features.queries(q), k, v, log_scale=scale)


def _summed(features: SoftmaxFeatures, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As it is without a running peak: keys are divided by the largest of all, also of those to come."""
    values, scale = features.keys(k)
    assert scale is not None
    scaled = values * (scale - scale.amax(-1, keepdim=True)).exp().unsqueeze(-1)
    return summed_outer_products(features.queries(q), scaled, v)


def measure(turns: int, packages: Path | None) -> dict[str, object]:
    """All figures but memory."""
    few = max(3, turns // 4)
    settings: dict[str, Any] = {"turns": few, "packages": packages}
    return {
        "features_forward_and_backward": maps(turns, packages),
        "redrawing": redrawing(turns, packages),
        "causal_attention_forward_and_backward": attention(True, **settings),
        "attention_forward_and_backward": attention(False, **settings),
        "layers": crossovers(LAYERS, ["positive", "relu", "identity"], few),
        "training": updates(contender, SIZES, KINDS, "softmax", few),
    }


if __name__ == "__main__":
    run_with_packages("benchmarks.performer", __doc__, LONGEST, measure)
