"""What the benchmarks of linear attention share, see timing.py: inputs, passes, and what is measured in both.

Shape letters: B batch, H heads, T positions, K width of a head's queries, keys and values, D model width.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.timing import Step, run, seconds_in_turns
from shared.tasks.sequences.scaling import RIVAL, Layers, crossover, training_pass
from shared.tasks.sequences.settings import ScalingConfig

Tensors = tuple[Tensor, ...]
LENGTHS = (64, 128, 256, 512, 1024, 2048)


def heads_of(length: int, heads: int, key_size: int, *, positive: bool = False) -> Tensors:
    """Queries, keys and values (1, H, T, K), that lie in memory as a layer's projections leave them: (1, T, H, K)."""
    q, k, v = torch.randn(3, 1, length, heads, key_size).transpose(2, 3)
    if positive:
        q, k = q.abs() + 0.1, k.abs() + 0.1
    return tuple(x.requires_grad_() for x in (q, k, v))


def both_ways(form: Callable[..., Tensor], inputs: Tensors) -> Step:
    """Forward and backward, to all inputs."""
    cotangent = torch.randn_like(form(*inputs).detach())
    return lambda: torch.autograd.grad(form(*inputs), inputs, cotangent)


def compared(seconds: Mapping[str, float], reference: str) -> dict[str, object]:
    """Milliseconds, and how many times those of the reference."""
    base, label = seconds[reference], f"times_{reference}"
    return {
        name: {"milliseconds": round(1000 * value, 2), label: round(value / base, 2)} for name, value in seconds.items()
    }


def training_step(model: nn.Module, inputs: Tensor, targets: Tensor) -> Step:
    """One whole update of a model of sequences: forward, backward, clipping and Adam."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        model.output(model(inputs), targets).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def updates(
    contender: Callable[[str], Step], sizes: Iterable[str], kinds: Sequence[str], reference: str, turns: int
) -> dict[str, object]:  # fmt: skip
    """At every size the milliseconds of an update of all kinds, and how many times those of the reference."""
    figures: dict[str, object] = {}
    for which in sizes:
        steps = {kind: contender(f"{which}: {kind}") for kind in kinds}
        figures[which] = compared(seconds_in_turns(steps, turns), reference)
    return figures


def crossovers(known: Layers, subjects: Sequence[str], turns: int) -> dict[str, object]:
    """Milliseconds of a layer and its gradients, B = 1, by length, and from which length on it beats fused softmax."""
    torch.manual_seed(0)
    settings = ScalingConfig.model_validate(
        {"study": "", "subjects": [RIVAL, *subjects], "lengths": LENGTHS, "width": 256, "heads": 8}
    )
    layers = {name: known[name](settings) for name in settings.subjects}
    seconds: dict[str, dict[int, float]] = {name: {} for name in layers}
    for length in LENGTHS:
        passes = {
            name: training_pass(layer, length, settings.width, torch.device("cpu")) for name, layer in layers.items()
        }
        for name, value in seconds_in_turns(passes, turns).items():
            seconds[name][length] = value
    found = {name: crossover(points, seconds[RIVAL]) for name, points in seconds.items() if name != RIVAL}
    return {
        "milliseconds": {name: {str(n): round(1000 * t, 2) for n, t in of.items()} for name, of in seconds.items()},
        "quicker_than_softmax_from_length": {name: length and round(length) for name, length in found.items()},
    }


def run_with_packages(
    module: str, description: str | None, contenders: Mapping[str, Callable[[], Step]],
    measure: Callable[[int, Path | None], Mapping[str, object]],
) -> None:  # fmt: skip
    """The command line of :func:`benchmarks.timing.run`, and ``--packages FOLDER``."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--packages", type=Path)
    options, sys.argv[1:] = parser.parse_known_args()
    folder = None if options.packages is None else options.packages.resolve()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    run(module, description, contenders, lambda turns: measure(turns, folder))
