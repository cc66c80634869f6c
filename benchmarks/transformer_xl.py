"""Speed of Transformer-XL beside a straightforward implementation, as ratios within one run.

    python -m benchmarks.transformer_xl [--threads 2] [--out FILE]

Training is a whole update with a full memory, at the quick scale's sizes and, with a single layer, at the paper's for
enwik8. Evaluation has the long memory of enwik8, whose keys and values are kept or made anew for every segment. A
generated symbol is one more step after texts of many lengths. The softmax is measured alone, forward and backward, on
words as frequent as in a text. Scoring with kept states is compared with windows that slide by one symbol, as table 9
of Dai et al. does. See timing.py for how contenders are compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.plain_transformer_xl import PlainTransformerXL
from benchmarks.timing import Step, run, seconds_in_turns
from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from replications.transformer_xl.memory import SegmentMemory, StateMemory
from replications.transformer_xl.model import TransformerXL
from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from replications.transformer_xl.speed import passes
from shared.decoding.protocol import Reach
from shared.tasks.language.settings import LanguageEvaluation
from shared.tasks.language.streams import Stream


class Size(NamedTuple):
    """A model and what it is trained on: B columns of segments of T symbols, with a memory as long."""

    model: dict[str, Any]
    vocabulary: int
    columns: int
    length: int


SIZES = {
    "quick": Size(
        {"d_model": 96, "n_layer": 3, "n_head": 4, "d_head": 24, "d_inner": 256, "dropout": 0.0},
        vocabulary=80, columns=16, length=32,
    ),
    "enwik8": Size(
        {"d_model": 512, "n_layer": 1, "n_head": 8, "d_head": 64, "d_inner": 2048, "dropout": 0.1},
        vocabulary=208, columns=2, length=512,
    ),
}  # fmt: skip
LONG, SEGMENT = Reach(2100, same_length=True, clamp=820), 80  # of evaluation on enwik8
AFTER, REMEMBERED, STEPS = (100, 1000, 4000), 96, 20  # of generation
WORDS, WIDTH, STATES, CUTOFFS = 33_280, 256, 512, (2000, 8000)  # of the softmax alone
ATTENTION_LENGTHS = (100, 200, 400, 800)


def ours(size: Size) -> TransformerXL:
    """The model at a size."""
    model = build_model(ModelConfig.model_validate(size.model), size.vocabulary, None)
    assert isinstance(model, TransformerXL)
    return model


def plain(size: Size) -> PlainTransformerXL:
    """Its twin."""
    m = size.model
    return PlainTransformerXL(
        vocabulary=size.vocabulary, width=m["d_model"], layers=m["n_layer"], heads=m["n_head"],
        key_size=m["d_head"], hidden_size=m["d_inner"], dropout=m["dropout"],
    )  # fmt: skip


def reader(model: Any, columns: int, reach: Reach, memory: SegmentMemory | None = None) -> Callable[..., Tensor]:
    """From inputs and targets of segments to nats; the twin is given back the memory that it gives."""
    if not isinstance(model, PlainTransformerXL):
        return partial(model, memory=model.memory(columns, reach) if memory is None else memory)
    memories = model.begin(columns)

    def read(inputs: Tensor, targets: Tensor) -> Any:
        nonlocal memories
        nats, memories = model(inputs, targets, memories, reach)
        return nats

    return read


def contender(name: str) -> Step:
    """One whole update of a contender: forward, backward, clipping and Adam."""
    torch.manual_seed(0)
    who, which = name.split(", ")
    size = SIZES[which]
    model = (ours if who == "ours" else plain)(size)
    read = reader(model, size.columns, Reach(size.length))
    optimizer = torch.optim.Adam(model.parameters(), lr=2.5e-4, fused=True)
    inputs, targets = torch.randint(size.vocabulary, (2, size.columns, size.length))

    def step() -> None:
        read(inputs, targets).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad()

    return step


NAMES = [f"{who}, {size}" for size in SIZES for who in ("plain", "ours")]
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def training(turns: int) -> dict[str, object]:
    """Symbols per second of every contender, and how many times those of its plain twin."""
    figures: dict[str, object] = {}
    for which, size in SIZES.items():
        names = [name for name in NAMES if name.endswith(which)]
        few = turns if which == "quick" else max(1, turns // 4)
        seconds = seconds_in_turns({name: CONTENDERS[name]() for name in names}, few)
        for name, value in seconds.items():
            figures[name] = {
                "symbols_per_second": round(size.columns * size.length / value),
                "times_plain": round(seconds[f"plain, {which}"] / value, 2),
            }
    return figures


@torch.inference_mode()
def evaluation(turns: int) -> dict[str, object]:
    """Symbols per second of one column with a full memory, and how many times those of the plain twin."""
    torch.manual_seed(0)
    size = SIZES["enwik8"]
    model = ours(size).eval()
    states = StateMemory(
        LONG, layers=len(model.layers), columns=1, width=size.model["d_model"], like=model.softmax.biases[0]
    )
    readers = {
        "plain": reader(plain(size).eval(), 1, LONG),
        "states kept": reader(model, 1, LONG, states),
        "keys and values kept": reader(model, 1, LONG),
    }
    segment = torch.randint(size.vocabulary, (1, SEGMENT))
    for read in readers.values():
        for _ in range(-(-LONG.memory // SEGMENT)):
            read(segment, segment)
    seconds = seconds_in_turns({name: partial(read, segment, segment) for name, read in readers.items()}, turns)
    return {
        name: {
            "symbols_per_second": round(SEGMENT / value),
            "times_plain": round(seconds["plain"] / value, 2),
        }
        for name, value in seconds.items()
    }


@torch.inference_mode()
def generation(turns: int) -> dict[str, object]:
    """Milliseconds of one more symbol after texts of many lengths, beside reading all of the text without memory."""
    torch.manual_seed(0)
    size = SIZES["quick"]
    model, seconds = ours(size).eval(), {}
    symbol = torch.randint(size.vocabulary, (1, 1))
    for length in AFTER:
        text, times = torch.randint(size.vocabulary, (1, length)), []
        for _ in range(turns):
            memory = model.memory(1, Reach(REMEMBERED))
            for segment in text.split(REMEMBERED, dim=1):
                model.states(segment, memory)
            for _ in range(STEPS):
                begin = time.perf_counter()
                model.next_log_probs(symbol, memory)
                times.append(time.perf_counter() - begin)
        again = seconds_in_turns({"": partial(model.next_log_probs, text)}, 1)[""]
        seconds[f"after {length}"] = statistics.median(times), again
    (first, _), *_ = seconds.values()
    return {
        name: {
            "milliseconds": round(1000 * one, 3),
            "times_the_first": round(one / first, 2),
            "reading_anew_times_it": round(again / one, 1),
        }
        for name, (one, again) in seconds.items()
    }


def softmax(turns: int) -> dict[str, object]:
    """Milliseconds of the losses of words and their gradients, and how many times as fast as a full softmax."""
    torch.manual_seed(0)
    targets = torch.multinomial(1 / torch.arange(3, WORDS + 3), STATES, replacement=True).unsqueeze(0)
    h = torch.randn(1, STATES, WIDTH, requires_grad=True)
    shape: dict[str, Any] = {"vocabulary": WORDS, "width": WIDTH}
    no_layers: dict[str, Any] = {"layers": 0, "heads": 1, "key_size": 1, "hidden_size": 1}

    def ours(**clusters: Any) -> Step:
        layer = AdaptiveSoftmax(AdaptiveEmbedding(**shape, **clusters))
        return lambda: torch.autograd.grad(layer(h, targets).sum(), [h, *layer.embedding.tables])

    def plain(**clusters: Any) -> Step:
        layer = PlainTransformerXL(**shape, **no_layers, **clusters)
        return lambda: torch.autograd.grad(
            -layer.log_probs(h).gather(2, targets.unsqueeze(2)).sum(), [h, *layer.embeddings]
        )

    narrowing = {"cutoffs": CUTOFFS, "div_val": 4}
    functions = {
        "full": ours(),
        "clusters, all words": plain(cutoffs=CUTOFFS),
        "clusters": ours(cutoffs=CUTOFFS),
        "narrowing clusters, all words": plain(**narrowing),
        "narrowing clusters": ours(**narrowing),
    }
    seconds = seconds_in_turns(functions, turns)
    return {
        name: {"milliseconds": round(1000 * value, 1), "times_full": round(seconds["full"] / value, 2)}
        for name, value in seconds.items()
    }


@torch.inference_mode()
def ways_of_evaluation(turns: int) -> dict[str, object]:
    """Microseconds per scored symbol with kept states and in sliding windows, by attention length."""
    torch.manual_seed(0)
    size = SIZES["quick"]
    model, figures = ours(size).eval(), dict[str, object]()
    symbols = size.columns * (2 * max(ATTENTION_LENGTHS) + 5 * size.length)
    stream = Stream(torch.randint(4, size.vocabulary, (symbols,)).numpy())
    settings = LanguageEvaluation.model_validate(
        {"length": size.length, "columns": size.columns, "reach": {"memory": 0}}
    )
    for length in ATTENTION_LENGTHS:
        ways = passes(model, model, stream, length, settings)
        seconds = seconds_in_turns(ways, turns)
        each = {way: 1e6 * seconds[way] / ways[way].scored for way in ways}
        figures[f"attention length {length}"] = {
            "microseconds": {way: round(value, 1) for way, value in each.items()},
            "speedup": round(each["sliding"] / each["reuse"], 1),
            "symbols_read_per_scored": {way: ways[way].tokens for way in ways},
        }
    return figures


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    few = max(1, turns // 4)
    return {
        "training": training(turns),
        "evaluation_with_a_long_memory": evaluation(few),
        "generation": generation(few),
        "softmax_forward_and_backward": softmax(few),
        "states_kept_or_sliding_windows": ways_of_evaluation(few),
    }


if __name__ == "__main__":
    run("benchmarks.transformer_xl", __doc__, CONTENDERS, measure)
