"""A Transformer of a few weights and sentences for it, for tests."""

import torch
from torch import nn

from replications.transformer.model import Transformer
from shared.data.tokenizers import BOS, EOS, PAD
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions

F64 = torch.float64
VOCABULARY, D, N, H, K, V, D_FF = 19, 8, 2, 2, 3, 5, 12
POSITIONS = {
    "sinusoidal": lambda: SinusoidalPositions(width=D),
    "learned": lambda: LearnedPositions(count=150, width=D),
    "none": NoPositions,
}


def small(positions="sinusoidal", **changes):
    """Far from its initial values: heads that look sharply, norms of either sign."""
    sizes = {
        "vocabulary": VOCABULARY, "width": D, "layers": N, "heads": H, "key_size": K, "value_size": V,
        "hidden_size": D_FF, "dropout": 0.0, "positions": POSITIONS[positions](),
    }  # fmt: skip
    model = Transformer(**sizes | changes)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    return model.to(F64).eval()


def sentences(lengths=(7, 4, 2), steps=6):
    """Sources of these lengths, their end symbols included, the mask, and targets that begin with BOS."""
    ends = torch.tensor(lengths).unsqueeze(1)
    mask = torch.arange(max(lengths)) < ends
    source = torch.randint(4, VOCABULARY, mask.shape).scatter(1, ends - 1, EOS).masked_fill(~mask, PAD)
    target = torch.randint(4, VOCABULARY, (len(lengths), steps))
    target[:, 0] = BOS
    return source, mask, target
