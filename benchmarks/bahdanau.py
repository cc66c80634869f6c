"""Speed of RNNsearch beside a straightforward implementation, as ratios within one run.

    python -m benchmarks.bahdanau [--threads 2] [--out FILE]

Training is a whole update of a batch of real shape at the quick scale's sizes, decoding is beam search of width 5 over
64 sentences; see timing.py for how contenders are compared.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from benchmarks.plain_rnnsearch import PlainRNNsearch
from benchmarks.timing import Step, decoding, gemm_rate, run, seconds_in_turns, training_step
from replications.bahdanau.model import RNNsearch
from shared.data.batching import epoch_batches, padding_share
from shared.data.ragged import RaggedArray
from shared.tasks.translation.corpus import ParallelText

VOCABULARY, M, N, A, L = 4000, 128, 256, 256, 128
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": M, "hidden_size": N,
    "alignment_size": A, "maxout_size": L,
}  # fmt: skip
BATCH, SOURCE, TARGET = 36, 27, 28  # a budget of 1,000 target tokens


def contender(name: str) -> Step:
    """The training step of a contender."""
    torch.manual_seed(0)
    if name.startswith("ours"):
        model: torch.nn.Module = RNNsearch(**SIZES)
    else:
        model = PlainRNNsearch(**SIZES, batched_readout="after" in name)
    shape = {"vocabulary": VOCABULARY, "batch": BATCH, "source": SOURCE, "target": TARGET}
    return training_step(model, **shape, bfloat16="bfloat16" in name)


NAMES = ("plain, read-out in the loop", "plain, read-out after the loop", "ours, float32", "ours, bfloat16")
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def multiply_adds_per_update() -> int:
    """Of a forward and backward pass of RNNsearch (three times the forward pass's) over one batch."""
    encoder = 2 * 3 * (M * N + N * N)
    keys_and_values = 2 * N * A + 2 * N * 3 * N
    decoder = 3 * (M * N + N * N) + N * A + SOURCE * (A + A + 3 * N) + SOURCE * 2 * N
    read_out = (N + M + 2 * N) * 2 * L + L * VOCABULARY
    return 3 * BATCH * (SOURCE * (encoder + keys_and_values) + TARGET * (decoder + read_out))


def training(turns: int) -> dict[str, object]:
    """Target tokens per second of every contender."""
    seconds = seconds_in_turns({name: prepare() for name, prepare in CONTENDERS.items()}, turns)
    peak = gemm_rate()
    return {
        name: {
            "tokens_per_second": round(BATCH * TARGET / value),
            "times_plain_in_loop": round(seconds[NAMES[0]] / value, 2),
            "times_plain_after_loop": round(seconds[NAMES[1]] / value, 2),
            "share_of_float32_gemm_rate": round(multiply_adds_per_update() / value / peak, 2),
        }
        for name, value in seconds.items()
    }


def data_loading() -> dict[str, object]:
    """Batches per second from arrays on disk's layout, and the padding in them."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(4, 7, 30_000).astype(int), 3, 60)
    other = np.clip(lengths + rng.normal(0, 3, 30_000).astype(int), 3, 70)
    sides = [RaggedArray.pack([rng.integers(4, VOCABULARY, n).tolist() for n in side]) for side in (other, lengths)]
    text = ParallelText(sides[0], sides[1], np.maximum(lengths, other))
    axes = (text.target.lengths, text.source.lengths)
    begin = time.perf_counter()
    order = epoch_batches(axes, pool=400, seed=1, epoch=0, tokens=1000)
    tokens = sum(text.batch(indices).tokens for indices in order)
    return {
        "tokens_per_second": round(tokens / (time.perf_counter() - begin)),
        "padding_share": round(padding_share(axes, order), 4),
    }


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    model = RNNsearch(**SIZES, init_std=0.3).eval()  # far from uniform, so that the searches have to decide
    return {
        "training": training(turns),
        "decoding": decoding(model, VOCABULARY, max(3, turns // 3)),
        "data_loading": data_loading(),
    }


if __name__ == "__main__":
    run("benchmarks.bahdanau", __doc__, CONTENDERS, measure)
