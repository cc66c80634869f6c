"""Seeds side by side, and training on a busy machine, as ratios within one run.

    python -m benchmarks.side_by_side [--seeds 2] [--updates 25] [--turns 3] [--out FILE]

Every seed trains RNNsearch at the quick scale's sizes on random sentence pairs, in the pool that the train stage uses,
with one thread. First all seeds are trained on one worker and on as many workers as there are processors, up to the
number of seeds. Then one seed is trained alone and beside two programs that count. The ways take turns, the medians
count, and all ways must end with the same weights. The time in which the pool imports torch and Lightning is measured
once and apart. ``processors_had`` says how many processors the host gave to all programs of the benchmark together;
where that is less than the number of workers, no speed-up can be seen.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shared.training.pool import Job, run_jobs
from shared.training.progress import Report

VOCABULARY = 4000
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": 128, "hidden_size": 256,
    "alignment_size": 256, "maxout_size": 128,
}  # fmt: skip
TOKENS = 1000
BUSY = "while True: pass"


def train_seed(updates: int, seed: int, *, report: Report) -> dict[str, object]:
    """Train one seed; returns its seconds, the processor seconds of its process and a digest of its weights."""
    import numpy as np
    import torch

    from replications.bahdanau.model import RNNsearch
    from shared.data.batching import endless_batches, epoch_batches
    from shared.data.ragged import RaggedArray
    from shared.tasks.translation.corpus import ParallelText
    from shared.tasks.translation.module import TranslationModule
    from shared.training.config import TrainingConfig
    from shared.training.run import train_run

    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(4, 7, 3000).astype(int), 3, 60)
    sides = [RaggedArray.pack([rng.integers(4, VOCABULARY, n).tolist() for n in lengths]) for _ in range(2)]
    text = ParallelText(sides[0], sides[1], lengths)
    config = TrainingConfig.model_validate({
        "updates": updates, "validate_every": updates, "batch": {"tokens": TOKENS},
        "optimizer": {"name": "adam", "learning_rate": 0.001},
    })  # fmt: skip
    order = partial(endless_batches, (text.target.lengths, text.source.lengths), pool=40, seed=seed, tokens=TOKENS)
    valid = epoch_batches((lengths[:40],), pool=40, seed=0, epoch=0, tokens=TOKENS)
    torch.manual_seed(seed)
    model = RNNsearch(**SIZES)
    with tempfile.TemporaryDirectory() as folder:
        record = train_run(
            TranslationModule(model, config), config, batches=lambda start: map(text.batch, order(start=start)),
            valid=[text.batch(indices) for indices in valid], folder=Path(folder), seed=seed, fingerprint="benchmark",
            label=f"seed {seed}", progress=report,
        )  # fmt: skip
    digest = hashlib.sha256(b"".join(weight.numpy().tobytes() for weight in model.state_dict().values())).hexdigest()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "training_seconds": record.wall_seconds, "training_processor_seconds": record.processor_seconds,
        "processor_seconds": usage.ru_utime + usage.ru_stime, "weights": digest,
    }  # fmt: skip


def nothing(*, report: Report) -> None:
    """For the pool to start its server."""


def pool(seeds: int, updates: int, workers: int) -> dict[str, object]:
    """Seconds of a call of the pool, processor seconds of all its workers, and the digests of the weights."""
    jobs = [Job(f"seed {seed}", train_seed, (updates, seed)) for seed in range(seeds)]
    begin = time.perf_counter()
    results = run_jobs(jobs, workers=workers)
    return {
        "seconds": time.perf_counter() - begin,
        "processor_seconds": sum(result["processor_seconds"] for result in results),
        "weights": [result["weights"] for result in results],
    }


def beside(programs: int, updates: int) -> dict[str, object]:
    """One seed beside so many programs that count without end, and the processor seconds that they have had."""
    before = _children()
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(programs)]
    try:
        result = pool(1, updates, 1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return result | {"others_processor_seconds": _children() - before}


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)  # of this process; the pool's workers are its server's
    return usage.ru_utime + usage.ru_stime


def in_turns(ways: dict[str, Callable[[], dict[str, object]]], turns: int) -> dict[str, dict[str, float]]:
    """Median seconds of every way, and of the processors that its programs have had at a time.

    Raises:
        RuntimeError: two ways have come to different weights.
    """
    results = {name: [] for name in ways}
    for _ in range(turns):
        for name, way in ways.items():
            results[name].append(way())
    if len({tuple(result["weights"]) for made in results.values() for result in made}) != 1:
        raise RuntimeError(f"{', '.join(ways)} have come to different weights")

    def median(name: str, *keys: str, per: str | None = None) -> float:
        return statistics.median(sum(run.get(key, 0.0) for key in keys) / run.get(per, 1.0) for run in results[name])

    everything = ("processor_seconds", "others_processor_seconds")
    return {
        name: {
            "seconds": round(median(name, "seconds"), 2),
            "processor_seconds": round(median(name, "processor_seconds"), 2),
            "processors_had": round(median(name, *everything, per="seconds"), 2),
        }
        for name in ways
    }


def measure(seeds: int, updates: int, turns: int) -> dict[str, object]:
    """All figures."""
    workers = min(seeds, os.cpu_count() or 1)
    begin = time.perf_counter()
    run_jobs([Job("start", nothing, ())], workers=1)
    start = time.perf_counter() - begin
    side = in_turns({f"workers: {n}": partial(pool, seeds, updates, n) for n in (1, workers)}, turns)
    load = in_turns({"quiet": partial(beside, 0, updates), "two busy loops": partial(beside, 2, updates)}, turns)
    one, most = side["workers: 1"], side[f"workers: {workers}"]
    quiet, loaded = load["quiet"], load["two busy loops"]
    return {
        "processors": os.cpu_count(), "seeds": seeds, "updates": updates, "turns": turns,
        "start_of_the_pool_seconds": round(start, 2),
        "side_by_side": side | {"speed_up": _ratio(one, most, "seconds")},
        "busy_machine": load | {
            "times_quiet": _ratio(loaded, quiet, "seconds"),
            "processor_times_quiet": _ratio(loaded, quiet, "processor_seconds"),
        },
    }  # fmt: skip


def _ratio(one: dict[str, float], other: dict[str, float], key: str) -> float:
    return round(one[key] / other[key], 2)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = json.dumps(measure(options.seeds, options.updates, options.turns), indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
