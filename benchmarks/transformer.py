"""Speed of the Transformer beside straightforward implementations and other packages, as ratios within one run.

    python -m benchmarks.transformer [--threads 2] [--out FILE]

Training is a whole update of a batch of real shape at the small size. Attention alone is measured forward and backward,
over a short and a long text. Decoding makes translations of a fixed length with our caches, by recomputing every prefix
(through our fused layers, and head by head as in the equations), and where the optional group ``parity`` is installed
with Hugging Face's generate and CTranslate2 on the same weights. The cost of a symbol is that of one more step after
prefixes of many lengths. See timing.py for how contenders are compared.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import copied_transformer
from benchmarks.plain_transformer import PlainTransformer, RecomputingTransformer, State
from benchmarks.timing import Step, gemm_rate, run, seconds_in_turns, training_step
from replications.transformer.model import Transformer
from shared.attention.scaled_dot_product import attend
from shared.attention.twins import plain_equations
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.layers.positions import SinusoidalPositions

VOCABULARY, HEAD = 8000, 64
SIZES = {
    "small": {"width": 256, "layers": 3, "heads": 4, "hidden_size": 1024},
    "base": {"width": 512, "layers": 6, "heads": 8, "hidden_size": 2048},
}
BATCH, LENGTH = 40, 27  # of training: a budget of 1,200 target tokens, with a little padding
SOURCES, SOURCE, SYMBOLS, BEAM = 16, 24, 100, 4  # of decoding
PREFIXES = (25, 50, 100, 200, 400, 800)
ATTENDED = (25, 400)


def ours(size: str, dropout: float = 0.1) -> Transformer:
    """A model whose last norm has either sign, so that a symbol does not predict itself for ever."""
    torch.manual_seed(0)
    sizes = SIZES[size]
    model = Transformer(
        vocabulary=VOCABULARY, key_size=HEAD, value_size=HEAD, dropout=dropout,
        positions=SinusoidalPositions(width=sizes["width"]), **sizes,
    )  # fmt: skip
    with torch.no_grad():
        model.decoder[-1].feed_forward_norm.weight.copy_(torch.randint(2, (sizes["width"],)) * 2 - 1)
    return model


class WithWeights(nn.Module):
    """Ours, with all attention by the path that keeps its weights."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, None]:
        """(B, S), (B, S), (B, T) to logits (B, T, V)."""
        model, mask = self.model, mask[:, None, None]
        x, _ = model.encode(source, mask, weights=True)
        y, *_ = model.decode(model.embed(target), model.memory(x), mask, weights="all")
        return model.logits(y), None


def contender(name: str) -> Step:
    """The training step of a contender."""
    kind = {"plain": PlainTransformer, "ours, weights kept": WithWeights}.get(name, lambda model: model)
    model = kind(ours("small", dropout=0.0)).train()  # without dropout, which the plain model has none of
    shape = {"vocabulary": VOCABULARY, "batch": BATCH, "source": LENGTH, "target": LENGTH}
    return training_step(model, **shape, bfloat16="bfloat16" in name)


NAMES = ("plain", "ours, weights kept", "ours, float32", "ours, bfloat16")
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def multiply_adds_per_update() -> int:
    """Of a forward and backward pass (three times the forward pass's) over one batch."""
    s = SIZES["small"]
    d, hidden = s["width"], 2 * s["width"] * s["hidden_size"]
    inner = s["heads"] * HEAD
    encoder = 4 * d * inner + 2 * LENGTH * inner + hidden
    decoder = 8 * d * inner + 4 * LENGTH * inner + hidden
    return 3 * BATCH * LENGTH * (s["layers"] * (encoder + decoder) + d * VOCABULARY)


def training(turns: int) -> dict[str, object]:
    """Target tokens per second of every contender, and how many times those of the plain model."""
    seconds = seconds_in_turns({name: prepare() for name, prepare in CONTENDERS.items()}, turns)
    peak = gemm_rate()
    return {
        name: {
            "tokens_per_second": round(BATCH * LENGTH / value),
            "times_plain": round(seconds["plain"] / value, 2),
            "share_of_float32_gemm_rate": round(multiply_adds_per_update() / value / peak, 2),
        }
        for name, value in seconds.items()
    }


def attention(turns: int) -> dict[str, object]:
    """Milliseconds of causal self-attention's core, forward and backward, by both paths."""

    def step(path: Any, length: int) -> Step:
        inputs = [torch.randn(8, 8, length, HEAD, requires_grad=True) for _ in range(3)]
        return lambda: torch.autograd.grad(path(*inputs, causal=True).sum(), inputs)

    figures: dict[str, object] = {}
    for length in ATTENDED:
        paths = {"fused": attend, "with weights": plain_equations()(attend)}
        seconds = seconds_in_turns({name: step(path, length) for name, path in paths.items()}, turns)
        figures[f"over {length}"] = {name: round(1000 * value, 3) for name, value in seconds.items()}
    return figures


def sources() -> tuple[Tensor, Tensor]:
    """Sources (B, S) of different lengths and their mask."""
    lengths = torch.randint(SOURCE // 2, SOURCE + 1, (SOURCES,)).sort().values
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    source = torch.randint(4, VOCABULARY, mask.shape).masked_fill(~mask, PAD)
    source[torch.arange(SOURCES), lengths - 1] = EOS
    return source, mask


def search(model: Any, source: Tensor, mask: Tensor, beam: int) -> list[list[int]]:
    """Translations of exactly so many symbols."""
    length = torch.full((len(source),), SYMBOLS)
    limits = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=length, maximum=length)
    with torch.no_grad():
        state = model.start(source, mask)
    found = greedy_search(model, state, limits) if beam == 1 else beam_search(model, state, limits, beam=beam)
    return found.best()


def searchers(size: str, beam: int, folder: Path) -> dict[str, Step]:
    """By name, what translates the same sources; packages that are not installed are left out."""
    model = ours(size).eval()
    source, mask = sources()
    found: dict[str, Step] = {"ours": partial(search, model, source, mask, beam)}
    if size == "small":  # the others would take many minutes
        found["recomputing"] = partial(search, RecomputingTransformer(model), source, mask, beam)
        if beam == 1:
            found["recomputing, head by head"] = partial(search, PlainTransformer(model), source, mask, beam)
    fixed = {"beam": beam, "minimum": SYMBOLS, "maximum": SYMBOLS}
    if find_spec("transformers"):
        marian = copied_transformer.marian(model)
        found["Hugging Face generate"] = partial(copied_transformer.generate, marian, source, mask, **fixed)
    if find_spec("ctranslate2"):
        translator = copied_transformer.translator(model, folder, threads=torch.get_num_threads())
        rows = [row[:n] for row, n in zip(source.tolist(), mask.sum(1).tolist(), strict=True)]
        found["CTranslate2"] = partial(copied_transformer.translate, translator, rows, **fixed)
    return found


def decoding(turns: int) -> dict[str, object]:
    """Symbols per second of every search, how many times as fast ours is, and how often they find the same."""
    figures: dict[str, object] = {}
    for size in SIZES:
        for beam in (1, BEAM):
            with tempfile.TemporaryDirectory() as folder:
                found = searchers(size, beam, Path(folder))
                translations = {name: translate() for name, translate in found.items()}
                seconds = seconds_in_turns(found, turns)
            expected = translations["ours"]
            figures[f"{size}, beam {beam}"] = {
                name: {
                    "symbols_per_second": round(SOURCES * SYMBOLS / value, 1),
                    "ours_times_it": round(value / seconds["ours"], 2),
                    "same_translations": agreement(translations[name], expected),
                }
                for name, value in seconds.items()
            }
    return figures


def agreement(found: list[list[int]], expected: list[list[int]]) -> float:
    """The share of equal translations."""
    return float(np.mean([a == b for a, b in zip(found, expected, strict=True)]))


@torch.no_grad()
def one_symbol(size: str, beam: int, turns: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one more step after prefixes of many lengths, and the MiB that it has to read.

    Beams are chosen at random between the steps, which is part of the time.
    """
    model = ours(size).eval()
    source, mask = sources()
    times: dict[int, list[float]] = {length: [] for length in PREFIXES}
    slots = dict.fromkeys(PREFIXES, 0)
    for _ in range(turns):
        state = model.reorder(model.start(source, mask), None, torch.zeros(SOURCES, beam, dtype=torch.long))
        for length in range(max(PREFIXES) + 5):
            tokens, parents = torch.randint(4, VOCABULARY, (SOURCES, beam)), torch.randint(beam, (SOURCES, beam))
            begin = time.perf_counter()
            _, _, state = model.step(tokens, state)
            state = model.reorder(state, None, parents)
            for near in (near for near in PREFIXES if abs(near - length) < 5):
                times[near].append(time.perf_counter() - begin)
                slots[near] = state.cache.used
    milliseconds = {length: 1000 * statistics.median(values) for length, values in times.items()}
    weights = sum(p.numel() for p in model.decoder.parameters()) + model.embedding.weight.numel()
    layer = SIZES[size]["layers"] * SIZES[size]["heads"] * HEAD * 2 * SOURCES  # key and value of one slot
    figures = {}
    for length, value in milliseconds.items():
        read = 4 * (weights + layer * (slots[length] + mask.size(1)))
        figures[str(length)] = {
            "milliseconds": round(value, 2),
            "times_the_first": round(value / milliseconds[PREFIXES[0]], 2),
            "mib_read": round(read / 2**20, 1),
        }
        if beam == 1:
            figures[str(length)]["recomputing_times_it"] = round(1000 * recomputed(model, length) / value, 1)
    return figures


def recomputed(model: Transformer, length: int) -> float:
    """Seconds of a step that computes prefixes of this length anew, through our fused layers."""
    again = RecomputingTransformer(model)
    source, mask = sources()
    prefixes = torch.randint(4, VOCABULARY, (SOURCES, 1, length))
    state = State(again.encode(source, mask), mask, prefixes[:, :, 1:])
    return seconds_in_turns({"": lambda: again.step(prefixes[:, :, 0], state)}, 3)[""]


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    few = max(3, turns // 5)
    return {
        "training": training(turns),
        "attention_milliseconds": attention(turns),
        "decoding": decoding(few),
        "one_symbol_after": {
            f"{size}, beam {beam}": one_symbol(size, beam, few) for size in SIZES for beam in (1, BEAM)
        },
    }


if __name__ == "__main__":
    run("benchmarks.transformer", __doc__, CONTENDERS, measure)
