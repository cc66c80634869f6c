"""Speed of the caption generator of Xu et al. beside a straightforward implementation, as ratios within one run.

    python -m benchmarks.show_attend_tell [--threads 2] [--out FILE]

Training is a whole update, at the quick scale's sizes and at the paper's for COCO. Attention's weights are measured
alone, forward and backward over all steps of a caption. Decoding is beam search of width 5, all pictures together and
a picture at a time. Annotation vectors are made by EfficientNet-lite0 up to its last block of 14 x 14 places, without
its trained weights, which make no difference here. See timing.py for how contenders are compared.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.plain_show_attend_tell import PlainCaptioner
from benchmarks.timing import Step, run, seconds_in_turns
from replications.show_attend_tell.attention import log_weights
from replications.show_attend_tell.learning import doubly_stochastic_penalty
from replications.show_attend_tell.model import CaptionGenerator
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.attention.additive import additive_log_weights
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.vision.efficientnet_lite import DEVIATION, MEAN, EfficientNetLite0, fold_norms
from shared.vision.encoders import ImageEncoder
from shared.vision.features import Grid
from shared.vision.settings import LAYERS
from tests.decoding.naive_beam import naive_beam_search


class Size(NamedTuple):
    """A model and what it is trained on."""

    model: dict[str, Any]
    vocabulary: int
    grid: Grid
    captions: int
    symbols: int


SIZES = {
    "quick": Size(
        {"m": 64, "n": 128, "a": 64, "attention_layers": 1, "initial_layers": 1, "dropout": 0.0},
        300, Grid(7, 7, 112), captions=32, symbols=13,
    ),
    "COCO": Size(
        {"m": 512, "n": 1800, "a": 512, "attention_layers": 2, "initial_layers": 2, "dropout": 0.5},
        10_000, Grid(14, 14, 512), captions=16, symbols=11,
    ),
}  # fmt: skip
KINDS = ("soft", "hard")
PICTURES, BEAM = 64, 5
HARD = {"reinforce": 0.1, "entropy": 0.002}


def ours(size: Size, kind: str, **changes: object) -> CaptionGenerator:
    """The model of a kind of attention."""
    sections = {"attention": kind, "penalty": float(kind == "soft"), "hard": HARD}
    config = ModelConfig.model_validate(size.model | sections | changes)
    return build_model(config, size.vocabulary, size.grid)


def plain(size: Size, kind: Any) -> PlainCaptioner:
    """Its twin."""
    return PlainCaptioner(attention=kind, vocabulary=size.vocabulary, d=size.grid.size, gate=True, **size.model)


def cost_of_ours(model: CaptionGenerator, features: Tensor, captions: Tensor) -> Tensor:
    """What training minimises."""
    out = model(features, captions)
    assert out.auxiliary is not None
    return (out.nats.sum() + out.auxiliary.sum()) / len(captions)


def cost_of_plain(model: PlainCaptioner, features: Tensor, captions: Tensor) -> Tensor:
    """The same, of hard attention without a moving average."""
    drawn = torch.rand(len(captions)) < 0.5 if model.attention == "hard" else None
    told = model(features, captions, drawn)
    assert told.alpha is not None
    if drawn is None:
        auxiliary = doubly_stochastic_penalty(told.alpha, captions != PAD)
    else:
        assert told.places is not None
        log_p = told.alpha.log()
        score = log_p.gather(2, told.places.unsqueeze(2)).sum((1, 2)) * drawn
        entropy = -(told.alpha * log_p).sum((1, 2))
        auxiliary = HARD["reinforce"] * told.nats.detach().sum(1) * score - HARD["entropy"] * entropy
    return (told.nats.sum() + auxiliary.sum()) / len(captions)


def contender(name: str) -> Step:
    """One whole update of a contender: forward, backward, clipping and Adam."""
    torch.manual_seed(0)
    who, kind, which = name.split(", ")
    size = SIZES[which]
    model: Any = (ours if who == "ours" else plain)(size, kind)
    cost: Any = cost_of_ours if who == "ours" else cost_of_plain
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    features = torch.randn(size.captions, size.grid.rows * size.grid.columns, size.grid.size)
    captions = torch.randint(EOS + 1, size.vocabulary, (size.captions, size.symbols))
    captions[:, -1] = EOS

    def step() -> None:
        cost(model, features, captions).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


NAMES = [f"{who}, {kind}, {size}" for size in SIZES for kind in KINDS for who in ("plain", "ours")]
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def training(turns: int) -> dict[str, object]:
    """Words per second of every contender, and how many times those of its plain twin."""
    figures: dict[str, object] = {}
    for which, size in SIZES.items():
        names = [name for name in NAMES if name.endswith(which)]
        few = turns if which == "quick" else max(1, turns // 4)
        seconds = seconds_in_turns({name: CONTENDERS[name]() for name in names}, few)
        for name, value in seconds.items():
            figures[name] = {
                "symbols_per_second": round(size.captions * size.symbols / value),
                "times_plain": round(seconds[name.replace("ours", "plain")] / value, 2),
            }
    return figures


def attention_alone(turns: int) -> dict[str, object]:
    """Milliseconds of a caption's attention weights forward and backward, and how many times as fast as the naive."""
    figures: dict[str, object] = {}
    for which, size in SIZES.items():
        places, width = size.grid.rows * size.grid.columns, size.model["a"]
        queries = [torch.randn(size.captions, 1, width, requires_grad=True) for _ in range(size.symbols)]
        keys = torch.randn(size.captions, places, width, requires_grad=True)
        u = torch.randn(width, requires_grad=True)

        def step(function: Any, queries: list[Tensor] = queries, keys: Tensor = keys, u: Tensor = u) -> None:
            looks = torch.cat([function(query, keys, u) for query in queries], dim=1)
            torch.autograd.grad(looks.square().sum(), [*queries, keys, u])

        functions = {"naive": log_weights, "ours": additive_log_weights}
        few = max(1, turns if which == "quick" else turns // 4)
        seconds = seconds_in_turns({name: partial(step, f) for name, f in functions.items()}, few)
        figures[which] = {
            name: {"milliseconds": round(1000 * value, 1), "times_naive": round(seconds["naive"] / value, 2)}
            for name, value in seconds.items()
        }
    return figures


def decoding(turns: int) -> dict[str, object]:
    """Captions per second of beam search, all pictures together and a picture at a time; same results."""
    torch.manual_seed(0)
    size = SIZES["quick"]
    model = ours(size, "soft", init_std=0.3, word_std=0.3).eval()  # so that the searches have to decide
    features = torch.randn(PICTURES, size.grid.rows * size.grid.columns, size.grid.size)

    def limits(count: int) -> Constraints:
        least = torch.full((count,), 5)
        return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=least, maximum=least + 10)

    @torch.no_grad()
    def together() -> list[list[int]]:
        return beam_search(model, model.start(features), limits(PICTURES), beam=BEAM).best()

    @torch.no_grad()
    def one_by_one() -> list[list[int]]:
        found = (
            naive_beam_search(model, model.start(picture), limits(1), beam=BEAM)[0] for picture in features.split(1)
        )
        return [[token for token in hypothesis.tokens if token != EOS] for hypothesis in found]

    agreement = np.mean([a == b for a, b in zip(together(), one_by_one(), strict=True)])
    seconds = seconds_in_turns({"together": together, "a picture at a time": one_by_one}, turns)
    return {
        "captions_per_second": {name: round(PICTURES / value, 1) for name, value in seconds.items()},
        "ratio": round(seconds["a picture at a time"] / seconds["together"], 2),
        "same_captions": float(agreement),
    }


def annotating(turns: int, images: int = 32) -> dict[str, object]:
    """Images per second of the encoder as the features stage has it, of the network as it was trained, and between."""
    torch.manual_seed(0)
    whole = EfficientNetLite0().eval()
    trained = nn.Sequential(whole.stem, whole.blocks[:11])
    pixels = torch.randint(256, (images, 224, 224, 3), dtype=torch.uint8)
    usual = {"layer": LAYERS["efficientnet-lite0"]["block10"], "side": 224, "pool": 1}
    encoder = ImageEncoder(fold_norms(copy.deepcopy(trained)), **usual, mean=[MEAN] * 3, deviation=[DEVIATION] * 3)

    @torch.inference_mode()
    def plainly() -> None:
        trained((pixels.permute(0, 3, 1, 2).float().contiguous() - MEAN) / DEVIATION)

    @torch.inference_mode()
    def folded(batch: int) -> None:
        for some in pixels.split(batch):
            encoder(some)

    steps = {"plain": plainly, "folded": partial(folded, images), "folded, 4 at a time": partial(folded, 4)}
    seconds = seconds_in_turns(steps, turns)
    return {
        name: {
            "images_per_second": round(images / value, 1),
            "times_plain": round(seconds["plain"] / value, 2),
        }
        for name, value in seconds.items()
    }


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    few = max(1, turns // 4)
    return {
        "training": training(turns),
        "attention_forward_and_backward": attention_alone(turns),
        "decoding": decoding(few),
        "annotation": annotating(few),
    }


if __name__ == "__main__":
    run("benchmarks.show_attend_tell", __doc__, CONTENDERS, measure)
