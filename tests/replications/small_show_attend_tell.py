"""Caption generators of Xu et al. small enough for every test, of every kind, and what they are called with."""

from typing import NamedTuple

import torch
from torch import Tensor

from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS
from shared.vision.features import Grid
from tests.checklist import spread

F64 = torch.float64
VOCABULARY, GRID = 11, Grid(rows=2, columns=3, size=5)
SIZES = {
    "attention": "soft", "m": 4, "n": 3, "a": 6, "attention_layers": 2, "initial_layers": 2, "penalty": 0.5,
    "hard": {"reinforce": 0.7, "entropy": 0.3},
}  # fmt: skip
HARD = {"attention": "hard", "penalty": 0.0}
VARIANTS = {
    "soft": {}, "no gate": {"gate": False}, "no penalty": {"penalty": 0.0},
    "one layer": {"attention_layers": 1, "initial_layers": 1, "tanh_output": False},
    "supervised": {"penalty": 0.0, "supervision": 0.8},
    "hard": HARD, "hard, no gate": HARD | {"gate": False},
    "hard, sampled": HARD | {"hard": {"reinforce": 0.7, "entropy": 0.3, "sampling": 1.0}},
    "hard, score function": HARD | {"hard": {"reinforce": 0.7, "entropy": 0.3, "pathwise": False, "coin": "batch"}},
    "mean": {"attention": "mean", "penalty": 0.0},
}  # fmt: skip


class Input(NamedTuple):
    """What a model is called with."""

    features: Tensor
    captions: Tensor
    regions: Tensor


def small(variant="soft", **changes):
    """With weights large enough to matter, biases too."""
    config = ModelConfig.model_validate(SIZES | VARIANTS[variant] | changes)
    model = spread(build_model(config, VOCABULARY, GRID), 0.5)
    with torch.no_grad():
        model.embedding.weight[BOS] = 0
    return model


def given(lengths=(5, 3, 1)):
    """Pictures, captions of so many symbols with the end, and where attention should be at every other word."""
    places = GRID.rows * GRID.columns
    words = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    captions = torch.randint(EOS + 1, VOCABULARY, words.shape).masked_fill(~words, 0)
    captions[range(len(lengths)), torch.tensor(lengths) - 1] = EOS
    named = (captions > EOS) & (torch.arange(max(lengths)) % 2 == 0)
    regions = torch.rand(*words.shape, places, dtype=F64).softmax(-1) * named.unsqueeze(2)
    return Input(torch.randn(len(lengths), places, GRID.size, dtype=F64), captions, regions)
