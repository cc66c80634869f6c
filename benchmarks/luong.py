"""Speed of the models of Luong et al. beside a straightforward implementation, as ratios within one run.

    python -m benchmarks.luong [--threads 2] [--out FILE]

Training is a whole update of a batch of real shape at the quick scale's sizes, with and without input feeding.
Attention alone is measured over a short and a long source, whole and in a window: for a target at once, forward and
backward, and for one word of it, forward only. Decoding is beam search of width 5 over 64 sentences. See timing.py for
how contenders are compared.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from benchmarks.plain_luong import PlainLuong
from benchmarks.timing import Step, decoding, gemm_rate, run, seconds_in_turns, training_step
from replications.luong.model import EncoderDecoder
from shared.attention.alignments import Alignment, GeneralScore, GlobalAlignment, LocalMonotonic, LocalPredictive

VOCABULARY, M, N, D = 8000, 256, 256, 5
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": M, "hidden_size": N,
    "layers": 1,
}  # fmt: skip
BATCH, LENGTH = 40, 27  # a budget of 1,200 target tokens, with a little padding
ATTENDED = (25, 400)  # source words where attention alone is measured


def ours(*, input_feeding: bool, init_range: float = 0.1) -> EncoderDecoder:
    """Global attention with the score general."""
    attention = (GeneralScore(query_size=N, key_size=N), GlobalAlignment())
    return EncoderDecoder(**SIZES, attention=attention, input_feeding=input_feeding, init_range=init_range)


def contender(name: str) -> Step:
    """The training step of a contender."""
    torch.manual_seed(0)
    fed = "with input feeding" in name
    if name.startswith("ours"):
        model: nn.Module = ours(input_feeding=fed)
    else:
        model = PlainLuong(**SIZES, general=True, input_feeding=fed)
    shape = {"vocabulary": VOCABULARY, "batch": BATCH, "source": LENGTH, "target": LENGTH}
    return training_step(model, **shape, bfloat16="bfloat16" in name)


KINDS = ("without input feeding", "with input feeding")
NAMES = [f"{who} {kind}" for kind in KINDS for who in ("plain", "ours, float32,", "ours, bfloat16,")]
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def multiply_adds_per_update(*, input_feeding: bool) -> int:
    """Of a forward and backward pass of ours (three times the forward pass's) over one batch."""
    encoder = 4 * N * (M + N)
    keys = N * N
    decoder = 4 * N * (M + N + input_feeding * N)
    attention = 2 * (LENGTH - 1) * N + 2 * N * N
    return 3 * BATCH * LENGTH * (encoder + keys + decoder + attention + N * VOCABULARY)


def training(turns: int) -> dict[str, object]:
    """Target tokens per second of every contender, and how many times those of the plain model of its kind."""
    seconds = seconds_in_turns({name: prepare() for name, prepare in CONTENDERS.items()}, turns)
    peak = gemm_rate()
    figures: dict[str, object] = {}
    for kind in KINDS:
        work = multiply_adds_per_update(input_feeding=kind == KINDS[1])
        for name in (name for name in NAMES if name.endswith(kind)):
            figures[name] = {
                "tokens_per_second": round(BATCH * LENGTH / seconds[name]),
                "times_plain": round(seconds[f"plain {kind}"] / seconds[name], 2),
                "share_of_float32_gemm_rate": round(work / seconds[name] / peak, 2),
            }
    return figures


def attending(alignment: Alignment, words: int, queries: int) -> Step:
    """Scores, weights and contexts of queries at once, from keys made before; of several also the backward pass."""
    score = GeneralScore(query_size=N, key_size=N)
    training = queries > 1
    inputs = [torch.randn(BATCH, n, N, requires_grad=training) for n in (queries, words, words)]
    mask = torch.ones(BATCH, words, dtype=torch.bool)

    def step() -> None:
        with torch.set_grad_enabled(training):
            contexts, _ = alignment(score, *inputs, mask)
        if training:
            torch.autograd.grad(contexts.sum(), inputs)

    return step


def attention(turns: int) -> dict[str, object]:
    """Milliseconds of every alignment, and how many times as fast as the global one it is."""
    alignments = {
        "global": GlobalAlignment(), "local-m": LocalMonotonic(window=D), "local-p": LocalPredictive(window=D, size=N),
    }  # fmt: skip
    figures: dict[str, object] = {}
    for words in ATTENDED:
        for queries in (1, LENGTH):
            steps = {name: attending(alignment, words, queries) for name, alignment in alignments.items()}
            seconds = seconds_in_turns(steps, turns)
            figures[f"{queries} target word{'s' * (queries > 1)} over {words}"] = {
                name: {"milliseconds": round(1000 * value, 3), "times_global": round(seconds["global"] / value, 2)}
                for name, value in seconds.items()
            }
    return figures


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    model = ours(input_feeding=True, init_range=0.3).eval()  # far from uniform, so that the searches have to decide
    return {
        "training": training(turns),
        "attention": attention(turns),
        "decoding": decoding(model, VOCABULARY, max(3, turns // 3)),
    }


if __name__ == "__main__":
    run("benchmarks.luong", __doc__, CONTENDERS, measure)
