"""The self-attentive classifier with its LSTM and with torch's packed one, on texts of similar length and unsorted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.steps import Step, both_ways, update
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig

SIZES: dict[str, tuple[dict[str, Any], int]] = {  # and symbols
    "quick": ({"d": 50, "u": 50, "attention": {"d_a": 50, "r": 10, "penalty": 0.1}, "b": 100}, 15_000),
    "paper": ({"d": 100, "u": 300, "attention": {"d_a": 350, "r": 30, "penalty": 1.0}, "b": 3000}, 20_000),
}
BATCH, MEDIAN, LONGEST = 32, 150, 200


class PackedLSTM(nn.Module):
    """What BidirectionalLSTM is, by torch's packed sequences."""

    def __init__(self, *, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, I) inputs and their mask (B, n) to (B, n, 2u), zero at padding."""
        packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        h: Tensor = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.size(1))[0]
        return h


def models(size: str) -> dict[str, Any]:
    """The model with each of the two LSTMs."""
    settings, symbols = SIZES[size]
    config = ModelConfig.model_validate(settings | {"encoder": "attention", "dropout": 0.5})
    packed, ours = (build_model(config, symbols, 20) for _ in range(2))
    packed.encoder.lstm = PackedLSTM(input_size=config.d, hidden_size=config.u)
    return {"packed": packed, "ours": ours}


def texts(size: str, pool: int) -> tuple[Tensor, Tensor]:
    """The middle one of so many batches of random texts, sorted by length, and its mask."""
    lengths = np.random.default_rng(0).lognormal(np.log(MEDIAN), 0.7, BATCH * pool).clip(5, LONGEST).astype(int)
    own = torch.from_numpy(np.sort(lengths)[BATCH * (pool // 2) :][:BATCH])
    mask = torch.arange(int(own.max())) < own.unsqueeze(1)
    return torch.randint(4, SIZES[size][1], mask.shape) * mask, mask


def lstm(size: str, pool: int) -> dict[str, Step]:
    """The LSTM alone, forward and backward."""
    text, mask = texts(size, pool)
    inputs = torch.randn(*text.shape, SIZES[size][0]["d"], requires_grad=True)
    return {name: both_ways(lambda x, of=m.encoder.lstm: of(x, mask), (inputs,)) for name, m in models(size).items()}


def training(size: str, pool: int) -> dict[str, Step]:
    """Updates of 32 texts."""
    text, mask = texts(size, pool)
    labels = torch.randint(20, (BATCH,))

    def loss(model: Any) -> Tensor:
        out = model((text,), (mask,))
        total: Tensor = cross_entropy(out.logits, labels) + out.auxiliary.mean()
        return total

    return {name: update(model, partial(loss, model)) for name, model in models(size).items()}


COMPARISONS = {
    f"{name}, {size}, {order}": partial(of, size, pool)
    for size in SIZES
    for order, pool in {"sorted": 50, "unsorted": 1}.items()
    for name, of in {"LSTM": lstm, "training": training}.items()
}
