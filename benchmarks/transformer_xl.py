"""Transformer-XL beside a straightforward implementation: training, a long memory, a large vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.plain_transformer_xl import PlainTransformerXL
from benchmarks.steps import Step, update
from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from shared.decoding.protocol import Reach

SIZES: dict[str, dict[str, Any]] = {
    "quick": {"d_model": 96, "n_layer": 3, "n_head": 4, "d_head": 24, "d_inner": 256, "dropout": 0.0},
    "enwik8": {"d_model": 512, "n_layer": 1, "n_head": 8, "d_head": 64, "d_inner": 2048, "dropout": 0.0},
}
VOCABULARY, LONG = 208, Reach(2100, same_length=True, clamp=820)  # of evaluation on enwik8
WORDS, WIDTH, STATES, CUTOFFS = 33_280, 256, 512, (2000, 8000)  # of the softmax alone


def readers(size: dict[str, Any], columns: int, reach: Reach) -> dict[str, tuple[nn.Module, Callable[..., Tensor]]]:
    """Two models, each with what makes nats of segments' inputs and targets; the plain one gets back its memory."""
    model: Any = build_model(ModelConfig.model_validate(size), VOCABULARY, None)
    plain = PlainTransformerXL(
        vocabulary=VOCABULARY, width=size["d_model"], layers=size["n_layer"], heads=size["n_head"],
        key_size=size["d_head"], hidden_size=size["d_inner"],
    )  # fmt: skip
    memories = plain.begin(columns)

    def read(inputs: Tensor, targets: Tensor) -> Tensor:
        nonlocal memories
        nats, memories = plain(inputs, targets, memories, reach)
        return nats

    return {"plain": (plain, read), "ours": (model, partial(model, memory=model.memory(columns, reach)))}


def training(size: str, columns: int, length: int) -> dict[str, Step]:
    """Updates with a memory as long as a segment."""
    inputs, targets = torch.randint(VOCABULARY, (2, columns, length))
    both = readers(SIZES[size], columns, Reach(length))
    return {name: update(model, lambda read=read: read(inputs, targets).mean()) for name, (model, read) in both.items()}


def evaluation() -> dict[str, Step]:
    """A segment of 80 symbols with a full memory of 2,100."""
    segment, ways = torch.randint(VOCABULARY, (1, 80)), dict[str, Step]()
    for name, (_, read) in readers(SIZES["enwik8"], 1, LONG).items():
        ways[name] = torch.inference_mode()(partial(read, segment, segment))
        for _ in range(-(-LONG.memory // 80)):
            ways[name]()
    return ways


def softmax() -> dict[str, Step]:
    """The losses of words, as frequent as in a text, and their gradients."""
    targets = torch.multinomial(1 / torch.arange(3, WORDS + 3), STATES, replacement=True).unsqueeze(0)
    h = torch.randn(1, STATES, WIDTH, requires_grad=True)
    shape: dict[str, Any] = {"vocabulary": WORDS, "width": WIDTH}

    def ours(**clusters: Any) -> Step:
        layer = AdaptiveSoftmax(AdaptiveEmbedding(**shape, **clusters))
        return lambda: torch.autograd.grad(layer(h, targets).sum(), [h, *layer.embedding.tables])

    def plain(**clusters: Any) -> Step:
        layer = PlainTransformerXL(**shape, layers=0, heads=1, key_size=1, hidden_size=1, **clusters)
        wanted = targets.unsqueeze(2)
        return lambda: torch.autograd.grad(-layer.log_probs(h).gather(2, wanted).sum(), [h, *layer.embeddings])

    narrowing: dict[str, Any] = {"cutoffs": CUTOFFS, "div_val": 4}
    return {
        "full": ours(), "clusters, all words": plain(cutoffs=CUTOFFS), "clusters": ours(cutoffs=CUTOFFS),
        "narrowing clusters, all words": plain(**narrowing), "narrowing clusters": ours(**narrowing),
    }  # fmt: skip


COMPARISONS = {
    "training, quick": partial(training, "quick", 16, 32), "training, enwik8": partial(training, "enwik8", 2, 512),
    "evaluation with a long memory": evaluation, "softmax": softmax,
}  # fmt: skip
