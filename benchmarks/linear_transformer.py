"""Speed of linear attention and the Linear Transformer beside other implementations, as ratios within one run.

    python -m benchmarks.linear_transformer [--threads 2] [--packages FOLDER] [--out FILE]

Causal attention is measured alone, forward and backward, on given features: ours in chunks, its naive twins, exact
attention by PyTorch's fused kernel, and with ``--packages`` what performer-pytorch does on a CPU and the compiled
kernel of fast-transformers, which are fetched into that folder; without, a twin of the former. Layers with their
projections show from which length on they are quicker than exact attention. Training is whole updates at the quick
scale's sizes and at the length of whole digits. A generated symbol is one more step after texts of many lengths. See
timing.py for how contenders are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.linear_peers import causal_dot_product, fast_transformers, performer_pytorch
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
from replications.linear_transformer.model import (
    KeysValuesSoFar,
    LinearAttention,
    LinearTransformer,
)
from replications.linear_transformer.replication import LAYERS, build_model
from replications.linear_transformer.settings import ModelConfig
from shared.attention.linear import chunkwise_linear_attention, parallel_linear_attention, recurrent_linear_attention
from shared.attention.scaled_dot_product import attend
from shared.layers.transformer import RecurrentState


class Size(NamedTuple):
    """A model and what it is trained on: B sequences of T symbols."""

    model: dict[str, Any]
    vocabulary: int
    batch: int
    length: int


QUICK = {"layers": 2, "heads": 4, "width": 64, "hidden": 256, "buckets": 8}
DIGITS = {**QUICK, "output": "logistics"}
SIZES = {
    "copy, quick": Size({**QUICK, "chunk": 8, "max_length": 25}, 13, batch=32, length=25),
    "digits, quick": Size({**DIGITS, "chunk": 14, "max_length": 196}, 17, batch=16, length=196),
    "whole digits": Size({**DIGITS, "chunk": 28, "max_length": 784}, 257, batch=4, length=784),
}
PAPER = Size(
    {"layers": 8, "heads": 8, "width": 256, "hidden": 1024, "output": "logistics", "max_length": 3072}, 257,
    batch=1, length=784,
)  # fmt: skip
KINDS = ("linear", "linear, all weights", "softmax", "lsh")
ATTENDED = ((32, 1024), (64, 1024), (32, 4096), (64, 4096))  # K and T
HEADS, TWINS = 8, 1024
AFTER, BATCHES = (10, 100, 784, 3071), (1, 16)  # of generation


class WithWeights(LinearAttention):
    """Linear attention that makes the weights of all pairs, as softmax has to."""

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        out: Tensor = self.heads(x, self.heads.project(x, mask), causal=causal, weights=True)[0]
        return out


def model_of(size: Size, kind: str) -> LinearTransformer:
    """The model at a size."""
    torch.manual_seed(0)
    attention, _, weights = kind.partition(", ")
    model = build_model(ModelConfig.model_validate(size.model | {"attention": attention}), size.vocabulary, True)
    for layer in model.layers if weights else ():
        layer.attention.__class__ = WithWeights
    return model


def contender(name: str) -> Step:
    """One whole update of a contender."""
    which, kind = name.split(": ")
    size = SIZES[which]
    model = model_of(size, kind)
    symbols = torch.randint(size.vocabulary - 1, (2, size.batch, size.length))
    return training_step(model, *symbols)


LONGEST = {f"whole digits: {kind}": partial(contender, f"whole digits: {kind}") for kind in KINDS}


def attention(turns: int, packages: Path | None) -> dict[str, object]:
    """Milliseconds forward and backward, and how many times those of our chunks; slow ones have fewer turns."""
    quick: dict[str, Callable[..., Tensor]] = {"chunks": _ours(chunkwise_linear_attention)}
    slow: dict[str, Callable[..., Tensor]] = {"softmax": _ours(attend)}
    if packages is None:
        slow["outer products"] = summed_outer_products
    else:
        quick |= {
            "fast-transformers": fast_transformers(packages),
            "fast-transformers, no normaliser": causal_dot_product(packages),
        }
        slow["performer-pytorch"] = performer_pytorch(packages).causal_linear_attention_noncuda
    twins = {
        "all pairs": _ours(parallel_linear_attention),
        "step by step": _ours(recurrent_linear_attention),
    }
    figures: dict[str, object] = {}
    for key_size, length in ATTENDED:
        torch.manual_seed(0)
        inputs = heads_of(length, HEADS, key_size, positive=True)
        shown: dict[str, object] = {}
        rounds = [(slow, max(3, turns // 4)), (twins, 3), (quick, turns)]
        for forms, times in rounds if length <= TWINS else rounds[::2]:
            together = {"chunks": quick["chunks"], **forms}
            steps = {name: both_ways(form, inputs) for name, form in together.items()}
            shown |= compared(seconds_in_turns(steps, times), "chunks")
        figures[f"K = {key_size}, T = {length}"] = shown
    return figures


def _ours(form: Callable[..., Any]) -> Callable[..., Tensor]:
    """Without the state that it also gives."""
    causal: dict[str, Any] = {"causal": True} if form is attend else {}
    return lambda q, k, v: form(q, k, v, **causal)[0]


@torch.inference_mode()
def generation(turns: int) -> dict[str, object]:
    """Milliseconds of one more symbol of each of B sequences, after so many, in the paper's network for digits."""
    figures: dict[str, object] = {}
    models = {kind: model_of(PAPER, kind).eval() for kind in ("linear", "softmax")}
    for batch in BATCHES:
        for length in AFTER:
            steps = {
                kind: partial(model.step, torch.zeros(batch, dtype=torch.long), _remembered(model, batch, length))
                for kind, model in models.items()
            }
            seconds = seconds_in_turns(steps, turns)
            if batch == 1:
                text = torch.randint(256, (1, length + 1))
                again = {f"{kind}, recomputed": partial(model, text) for kind, model in models.items()}
                seconds |= seconds_in_turns(again, 1)
            figures[f"{batch} after {length}"] = compared(seconds, "linear")
    return figures


def _remembered(model: LinearTransformer, batch: int, length: int) -> RecurrentState:
    """The state after so many symbols, as far as it matters to the clock."""
    _, state = model.step(torch.zeros(batch, dtype=torch.long), model.initial_state(batch))
    layers = []
    for layer in state.layers:
        if isinstance(layer, KeysValuesSoFar):
            layer = KeysValuesSoFar(layer.keys.normal_(), layer.values.normal_(), length)
        layers.append(layer)
    return RecurrentState(length, tuple(layers))


def measure(turns: int, packages: Path | None) -> dict[str, object]:
    """All figures but memory."""
    few = max(3, turns // 4)
    return {
        "causal_attention_forward_and_backward": attention(turns, packages),
        "layers": crossovers(LAYERS, ["linear", "lsh_1"], few),
        "training": updates(contender, SIZES, KINDS, "linear", few),
        "generation": generation(few),
    }


if __name__ == "__main__":
    run_with_packages("benchmarks.linear_transformer", __doc__, LONGEST, measure)
