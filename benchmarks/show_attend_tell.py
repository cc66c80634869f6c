"""The caption generator of Xu et al. beside a straightforward implementation, and the encoder of its pictures."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.plain_show_attend_tell import PlainCaptioner
from benchmarks.steps import Step, searches, update
from replications.show_attend_tell.learning import doubly_stochastic_penalty
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import EOS, PAD
from shared.vision.features import Grid

QUICK: dict[str, Any] = {"m": 64, "n": 128, "a": 64, "attention_layers": 1, "initial_layers": 1, "dropout": 0.0}
COCO: dict[str, Any] = {"m": 512, "n": 1800, "a": 512, "attention_layers": 2, "initial_layers": 2, "dropout": 0.5}
SIZES: dict[str, tuple[dict[str, Any], int, Grid, int]] = {  # and vocabulary, places, captions of a batch
    "quick": (QUICK, 300, Grid(7, 7, 112), 32), "COCO": (COCO, 10_000, Grid(14, 14, 512), 4),
}  # fmt: skip


def ours(size: str, **changes: object) -> Any:
    """Soft attention."""
    settings, vocabulary, grid, _ = SIZES[size]
    config = ModelConfig.model_validate(settings | {"attention": "soft", "penalty": 1.0} | changes)
    return build_model(config, vocabulary, grid)


def training(size: str) -> dict[str, Step]:
    """Updates of captions of 13 symbols."""
    settings, vocabulary, grid, count = SIZES[size]
    features = torch.randn(count, grid.rows * grid.columns, grid.size)
    captions = torch.randint(EOS + 1, vocabulary, (count, 13))
    model = ours(size)
    plain: Any = PlainCaptioner(attention="soft", vocabulary=vocabulary, d=grid.size, gate=True, **settings)

    def loss_of_ours() -> Tensor:
        out = model(features, captions)
        return (out.nats.sum() + out.auxiliary.sum()) / count

    def loss_of_plain() -> Tensor:
        told = plain(features, captions, None)
        return (told.nats.sum() + doubly_stochastic_penalty(told.alpha, captions != PAD).sum()) / count

    return {"plain": update(plain, loss_of_plain), "ours": update(model, loss_of_ours)}


@torch.no_grad()
def decoding() -> dict[str, Step]:
    """Beam search of 32 captions; weights so that the searches have to decide."""
    model, grid = ours("quick", init_std=0.3, word_std=0.3).eval(), SIZES["quick"][2]
    features, least = torch.randn(32, grid.rows * grid.columns, grid.size), torch.full((32,), 5)
    return searches(model, [(features,), *((each,) for each in features.split(1))], least, least + 10)


COMPARISONS = {
    "training, quick": partial(training, "quick"), "training, COCO": partial(training, "COCO"), "decoding": decoding,
}  # fmt: skip
