"""What benchmarks of translation models share: contenders take turns, and results are ratios within one run.

A machine that is busy slows all contenders alike; the median of the turns counts. The work that a training step needs
is counted from the model's equations and compared with a large matrix product's rate on the same threads.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.metrics.turns import medians_of_turns, timed
from shared.training.loss import smoothed_loss
from tests.decoding.naive_beam import naive_beam_search

Step = Callable[[], object]


def seconds_in_turns(functions: Mapping[str, Step], turns: int) -> dict[str, float]:
    """Median seconds of each function, called in turns after two calls to warm up."""
    contenders = {name: timed(function) for name, function in functions.items()}
    medians_of_turns(contenders, range(2))
    return medians_of_turns(contenders, range(turns))


def gemm_rate() -> float:
    """Multiply-adds per second of a 1024 x 1024 x 1024 float32 product."""
    a = torch.randn(1024, 1024)
    return 1024**3 / seconds_in_turns({"gemm": lambda: a @ a}, 9)["gemm"]


def training_step(model: nn.Module, *, vocabulary: int, batch: int, source: int, target: int, bfloat16: bool) -> Step:
    """A function that makes one whole update: forward, backward, clipping and Adam, of a batch without padding."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    words, previous, labels = (torch.randint(4, vocabulary, (batch, n)) for n in (source, target, target))
    mask = torch.ones(batch, source, dtype=torch.bool)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            logits, _ = model(words, mask, previous)
            loss = smoothed_loss(logits, labels, 0.0)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def decoding(model: Any, vocabulary: int, turns: int) -> dict[str, object]:
    """Sentences per second of beam search of width 5, batched and a sentence at a time; same results."""
    lengths = torch.randint(5, 25, (64,))
    mask = torch.arange(24) < lengths.unsqueeze(1)
    source = torch.randint(4, vocabulary, (64, 24)).masked_fill(~mask, PAD)

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


def run(
    module: str, description: str | None, contenders: Mapping[str, Callable[[], Step]],
    measure: Callable[[int], Mapping[str, object]],
) -> None:  # fmt: skip
    """The command line of a benchmark: print, and write if asked, all figures as JSON.

    Args:
        module: its name, by which it starts itself again to measure memory.
        description: for the help.
        contenders: by name, what prepares a training step of each.
        measure: from the number of turns to figures; the peak memory of every contender is added.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--memory-of", choices=contenders, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        print(_peak_memory(contenders[options.memory_of]()))
        return
    figures = {"threads": options.threads, **measure(options.turns), "peak_memory_mib": _memory(module, [*contenders])}
    print(json.dumps(figures, indent=1))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _memory(module: str, contenders: Sequence[str]) -> dict[str, float]:
    """Peak resident MiB of a process that makes three updates, for every contender (Linux)."""
    command = [sys.executable, "-m", module, "--memory-of"]
    return {
        name: float(subprocess.run([*command, name], capture_output=True, text=True, check=True).stdout)
        for name in contenders
    }


def _peak_memory(step: Step) -> float:
    for _ in range(3):
        step()
    status = Path("/proc/self/status").read_text()  # getrusage would report a larger parent's peak
    found = re.search(r"VmHWM:\s+(\d+)", status)
    assert found
    return int(found[1]) / 1024
