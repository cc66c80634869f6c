"""A small Transformer that is far from its initial values, and a batch with padding for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from replications.transformer.model import Transformer
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.constraints import Constraints
from shared.layers.positions import SinusoidalPositions
from tests.checklist import F64, sequences

TOLERANCES = [(F64, 1e-10), (torch.float32, 1e-5)]
VOCABULARY, WIDTH = 17, 8


def transformer(**changes) -> Transformer:
    sizes = {
        "vocabulary": VOCABULARY, "width": WIDTH, "layers": 2, "heads": 2, "key_size": 4, "value_size": 4,
        "hidden_size": 12, "dropout": 0.0, "positions": SinusoidalPositions(width=WIDTH),
    }  # fmt: skip
    return shaken(Transformer(**sizes | changes))


def shaken(module: nn.Module) -> nn.Module:
    """Random parameters; norms with either sign, so that a symbol does not predict itself for ever."""
    for name, parameter in module.named_parameters():
        nn.init.normal_(parameter, std=1.0 if name.endswith("norm.weight") else 0.3)
    return module


def batch(lengths: tuple[int, ...] = (7, 4, 2), steps: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Sources (B, S) of these lengths, end symbols included, their mask (B, S) and targets (B, steps)."""
    source, mask = sequences(VOCABULARY, lengths)
    target = torch.randint(4, VOCABULARY, (len(lengths), steps))
    target[:, 0] = BOS
    return source, mask, target


def limits(sources: int, minimum: int, maximum: int) -> Constraints:
    return Constraints(BOS, EOS, PAD, torch.full((sources,), minimum), torch.full((sources,), maximum))
