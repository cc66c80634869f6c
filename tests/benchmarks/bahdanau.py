"""Speed of RNNsearch beside a straightforward implementation, as ratios within one run.

    python -m tests.benchmarks.bahdanau [--threads 2] [--out FILE]

Contenders take turns, so that a machine that is busy slows them alike; the median of the turns counts. Training is a
whole update (forward, backward, clipping, Adam) of a batch of real shape at the quick scale's sizes, decoding is beam
search of width 5 over 64 sentences. The work that a training step needs is counted from the model's equations and
compared with a large matrix product's rate on the same threads.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from replications.bahdanau.model import RNNsearch
from shared.data.batching import epoch_batches, padding_share
from shared.data.parallel import ParallelText, Sequences
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.naive import naive_beam_search
from shared.training.loss import smoothed_loss
from tests.benchmarks.plain_rnnsearch import PlainRNNsearch

VOCABULARY, M, N, A, L = 4000, 128, 256, 256, 128
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": M, "hidden_size": N,
    "alignment_size": A, "maxout_size": L,
}  # fmt: skip
BATCH, SOURCE, TARGET = 36, 27, 28  # a budget of 1,000 target tokens
CONTENDERS = ("plain, read-out in the loop", "plain, read-out after the loop", "ours, float32", "ours, bfloat16")


def build(contender: str) -> nn.Module:
    """The model of a contender."""
    torch.manual_seed(0)
    if contender.startswith("ours"):
        return RNNsearch(**SIZES)
    return PlainRNNsearch(**SIZES, batched_readout="after" in contender)


def training_step(contender: str) -> Callable[[], None]:
    """A function that makes one update."""
    model = build(contender)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    source, target, labels = (torch.randint(4, VOCABULARY, (BATCH, n)) for n in (SOURCE, TARGET, TARGET))
    mask = torch.ones(BATCH, SOURCE, dtype=torch.bool)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled="bfloat16" in contender):
            logits, _ = model(source, mask, target)
            loss = smoothed_loss(logits, labels, 0.0)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def seconds_in_turns(functions: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Median seconds of each function, called in turns after two calls to warm up."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(turns + 2):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            if turn >= 2:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def multiply_adds_per_update() -> int:
    """Of a forward and backward pass of RNNsearch (three times the forward pass's) over one batch."""
    encoder = 2 * 3 * (M * N + N * N)
    keys_and_values = 2 * N * A + 2 * N * 3 * N
    decoder = 3 * (M * N + N * N) + N * A + SOURCE * (A + A + 3 * N) + SOURCE * 2 * N
    read_out = (N + M + 2 * N) * 2 * L + L * VOCABULARY
    return 3 * BATCH * (SOURCE * (encoder + keys_and_values) + TARGET * (decoder + read_out))


def gemm_rate() -> float:
    """Multiply-adds per second of a 1024 x 1024 x 1024 float32 product."""
    a = torch.randn(1024, 1024)
    return 1024**3 / seconds_in_turns({"gemm": lambda: a @ a}, 9)["gemm"]


def training(turns: int) -> dict[str, object]:
    """Target tokens per second of every contender."""
    seconds = seconds_in_turns({name: training_step(name) for name in CONTENDERS}, turns)
    peak = gemm_rate()
    return {
        name: {
            "tokens_per_second": round(BATCH * TARGET / value),
            "times_plain_in_loop": round(seconds[CONTENDERS[0]] / value, 2),
            "times_plain_after_loop": round(seconds[CONTENDERS[1]] / value, 2),
            "share_of_float32_gemm_rate": round(multiply_adds_per_update() / value / peak, 2),
        }
        for name, value in seconds.items()
    }


def memory() -> dict[str, float]:
    """Peak resident MiB of a process that makes three updates, for every contender (Linux)."""
    command = [sys.executable, "-m", "tests.benchmarks.bahdanau", "--memory-of"]
    return {
        name: float(subprocess.run([*command, name], capture_output=True, text=True, check=True).stdout)
        for name in CONTENDERS
    }


def decoding(turns: int) -> dict[str, object]:
    """Sentences per second of beam search of width 5, batched and a sentence at a time; same results."""
    model = RNNsearch(**SIZES, init_std=0.3).eval()  # far from uniform, so that the searches have to decide
    lengths = torch.randint(5, 25, (64,))
    mask = torch.arange(24) < lengths.unsqueeze(1)
    source = torch.randint(4, VOCABULARY, (64, 24)).masked_fill(~mask, PAD)

    def limits(rows: slice) -> Constraints:
        n = lengths[rows]
        return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=n // 2, maximum=(1.5 * n).long())

    @torch.no_grad()
    def batched() -> list[list[int]]:
        return beam_search(model, model.start(source, mask), limits(slice(None)), beam=5).best()

    @torch.no_grad()
    def one_by_one() -> list[list[int]]:
        found = []
        for i in range(len(source)):
            row = slice(i, i + 1)
            state = model.start(source[row, : lengths[i]], mask[row, : lengths[i]])
            tokens = naive_beam_search(model, state, limits(row), beam=5)[0].tokens
            found.append([token for token in tokens if token != EOS])
        return found

    agreement = np.mean([a == b for a, b in zip(batched(), one_by_one(), strict=True)])
    seconds = seconds_in_turns({"batched": batched, "a sentence at a time": one_by_one}, turns)
    return {
        "sentences_per_second": {name: round(64 / value, 1) for name, value in seconds.items()},
        "ratio": round(seconds["a sentence at a time"] / seconds["batched"], 2),
        "same_translations": float(agreement),
    }


def data_loading() -> dict[str, object]:
    """Batches per second from arrays on disk's layout, and the padding in them."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(4, 7, 30_000).astype(int), 3, 60)
    other = np.clip(lengths + rng.normal(0, 3, 30_000).astype(int), 3, 70)
    sides = [Sequences.pack([rng.integers(4, VOCABULARY, n).tolist() for n in side]) for side in (other, lengths)]
    text = ParallelText(sides[0], sides[1], np.maximum(lengths, other))
    axes = (text.target.lengths, text.source.lengths)
    begin = time.perf_counter()
    order = epoch_batches(axes, pool=400, seed=1, epoch=0, tokens=1000)
    tokens = sum(text.batch(indices).label_tokens for indices in order)
    return {
        "tokens_per_second": round(tokens / (time.perf_counter() - begin)),
        "padding_share": round(padding_share(axes, order), 4),
    }


def main() -> None:
    """Print, and write if asked, all figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--memory-of", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        step = training_step(options.memory_of)
        for _ in range(3):
            step()
        status = Path("/proc/self/status").read_text()  # getrusage would report a larger parent's peak
        print(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024)
        return
    figures = {
        "threads": options.threads,
        "training": training(options.turns),
        "peak_memory_mib": memory(),
        "decoding": decoding(max(3, options.turns // 3)),
        "data_loading": data_loading(),
    }
    print(json.dumps(figures, indent=1))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
