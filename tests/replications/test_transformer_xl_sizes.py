"""Transformer-XL and its rivals have the parameters that they should, and begin as they should."""

import pytest
import torch

from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from replications.transformer_xl.model import TransformerXL
from tests.replications.small_transformer_xl import TRANSFORMERS, VOCABULARY, D, H, K, N, small


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_weights_begin_as_in_the_released_code(kind):
    clusters = {"cutoffs": (5, 11), "div_val": 2} if kind == "adaptive" else {}
    softmax = AdaptiveSoftmax(AdaptiveEmbedding(vocabulary=VOCABULARY, width=64, **clusters))
    sizes = {"layers": 3, "heads": 4, "key_size": 32, "hidden_size": 96} | TRANSFORMERS[kind]
    model = TransformerXL(softmax=softmax, std=0.02, **sizes)
    for name, parameter in model.layers.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.35)
            around = 1 if "norm" in name else 0
            assert parameter.mean().item() == pytest.approx(around, abs=0.02)


WT103, LM1B = (20_000, 40_000, 200_000), (60_000, 100_000, 640_000)


@pytest.mark.parametrize(
    ("words", "cutoffs", "div_val", "tied", "sizes", "untied", "total"),
    [
        (204, (), 1, (), (12, 512, 8, 64, 2048), False, 41_055_436),
        (27, (), 1, (), (12, 512, 8, 64, 2048), False, 40_964_635),
        (204, (), 1, (), (24, 1024, 8, 128, 3072), False, 277_231_820),
        (267_735, WT103, 1, (0, 1, 1, 1), (16, 410, 10, 41, 2100), False, 151_107_538),
        (267_744, WT103, 1, (0, 1, 1, 1), (16, 410, 10, 41, 2100), True, 151_123_537),
        (267_735, WT103, 4, (0, 1, 1, 1), (18, 1024, 16, 64, 4096), False, 285_170_506),
        (267_735, WT103, 4, (0, 1, 1, 1), (18, 1024, 16, 64, 4096), True, 285_205_322),
        (793_471, LM1B, 4, (0, 0, 0, 0), (18, 1024, 8, 128, 4096), False, 357_812_082),
        (793_471, LM1B, 4, (0, 0, 0, 0), (24, 1280, 16, 80, 8192), False, 841_295_982),
    ],
    ids=[
        "enwik8", "text8", "enwik8 large", "wt103", "wt103 in fairseq", "wt103 large", "wt103 large, untied",
        "lm1b", "lm1b large",
    ],
)  # fmt: skip
def test_released_models_have_the_parameters_they_have(words, cutoffs, div_val, tied, sizes, untied, total):
    layers, width, heads, key_size, hidden = sizes
    with torch.device("meta"):
        embedding = AdaptiveEmbedding(vocabulary=words, width=width, cutoffs=cutoffs, div_val=div_val)
        softmax = AdaptiveSoftmax(embedding, tied_projections=[bool(tie) for tie in tied])
        model = TransformerXL(
            softmax=softmax, layers=layers, heads=heads, key_size=key_size, hidden_size=hidden,
            untied_biases=untied,
        )  # fmt: skip
    assert sum(parameter.numel() for parameter in model.parameters()) == total


@pytest.mark.parametrize(("kind", "less"), [("shaw", N * (D * H * K - 5 * K)), ("absolute", N * D * H * K)])
def test_rivals_have_as_many_parameters_but_for_positions(kind, less):
    full, other = (sum(p.numel() for p in small(each).parameters()) for each in ("relative", kind))
    assert full - other == less + 2 * H * K
