"""Classifiers of Lin et al. small enough for every test, with every encoder and head, and texts for them."""

import torch
from torch import nn

from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig

F64 = torch.float64
VOCABULARY, CLASSES = 17, 3
SIZES = {
    "encoder": "attention", "d": 4, "u": 3, "attention": {"d_a": 5, "r": 3, "penalty": 0.5},
    "cnn": {"features": 5, "window": 3}, "b": 7, "dropout": 0.0,
}  # fmt: skip
VARIANTS = {
    "attention": {},
    "rows-1": {"attention": {"d_a": 5, "r": 1, "penalty": 0.5}},
    "penalty-0": {"attention": {"d_a": 5, "r": 3, "penalty": 0.0}},
    "pruned": {"b": None, "pruned": {"p": 2, "q": 1}},
    "max": {"encoder": "max"},
    "mean": {"encoder": "mean"},
    "cnn": {"encoder": "cnn"},
    "two texts": {"relation": 4},
    "two texts, max": {"encoder": "max", "relation": 4},
}


def small(variant="attention", **changes):
    """With weights large enough to matter."""
    model = build_model(ModelConfig.model_validate(SIZES | VARIANTS[variant] | changes), VOCABULARY, CLASSES)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.to(F64).eval()


def one_text(lengths):
    """Symbols (B, n), right-padded with zeros, and their mask."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return torch.randint(4, VOCABULARY, mask.shape).masked_fill(~mask, 0), mask


def texts_of(variant, lengths=(6, 4, 1)):
    """What a model reads: symbols and masks of one text, or of two, the second in reverse order of length."""
    sides = [lengths, lengths[::-1]] if "two" in variant else [lengths]
    symbols, masks = zip(*map(one_text, sides), strict=True)
    return symbols, masks
