"""What a run costs here, found by making small parts of it: some updates, some validations, some test examples.

Everything is measured in processor seconds, which say the same on a busy machine as on an idle one, or nearly so.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import prepared_folder
from shared.pipeline.provenance import peak_memory_mib
from shared.training.pool import Job, run_jobs
from shared.training.progress import Report

Tried = TypeVar("Tried")

SLOWEST = 5.0
"""Processor seconds of an update from which on nothing but updates is tried."""
UPDATES = (8, 100)
"""Fewest and most updates of a trial."""
SPENT = 3.0
"""Processor seconds that a trial's updates, its validations or the largest part of a test split may take, about."""
SMALL = 15.0
"""Processor seconds of an evaluation that is made as a whole."""
SMALLEST = 1 / 64
"""The share of a test split that is judged first."""
PATIENCE = 60.0
"""Processor seconds after which an evaluation is given up."""
WHAT_LOADS = """
import sys, time
from shared.pipeline import evaluate, train
from shared.pipeline.code import code_of
from shared.pipeline.config import ScaleFile
settings = ScaleFile(*sys.argv[1:])
times = [time.process_time()]
code_of(settings.kind, settings.paper)
times.append(time.process_time())
import torch
times.append(time.process_time())
import shared.training.preload
print(*times, time.process_time())
"""
"""A program that prints the processor seconds after each of the imports that a stage makes."""


@dataclass(frozen=True)
class Training:
    """Processor seconds of the parts of a run of training.

    Attributes:
        update: of one update, with what goes on around it.
        validation: of one validation, with its checkpoint.
        opening: of what a run does once: to load code and data, to make the model, to write its last checkpoint.
        memory: MiB, the most that the trial has held.
    """

    update: float
    validation: float
    opening: float
    memory: float


@dataclass(frozen=True)
class Judging:
    """Processor seconds of judging one seed, all included, and the most memory that the trial has held, MiB."""

    seconds: float
    memory: float


@dataclass(frozen=True)
class Loading:
    """Processor seconds of what a stage does once for all its seeds: it imports code, and looks for changes in it."""

    train: float
    evaluate: float


def loading(paper: str, scale: str) -> Loading:
    """Measure what the stages of a paper do before their first seed, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WHAT_LOADS, paper, scale], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *filter(None, sys.path)])},
    )  # fmt: skip
    if done.returncode:
        raise ReplicationError(f"the code of {paper} cannot be imported: {(done.stderr.splitlines() or ['?'])[-1]}")
    stage, code, torch, lightning = map(float, done.stdout.split())
    # A stage is a process that leads and, for its workers, a server that has imported torch, and to train Lightning.
    return Loading(train=lightning, evaluate=stage + torch - code)


def tried(function: Callable[..., Tried], *arguments: Any) -> Tried:
    """Run a trial in a process of its own, as the stages run seeds, so that it pays for what each seed pays for.

    Raises:
        ReplicationError: it has failed, and why.
    """
    paper, _, variant, *_ = arguments
    (found,) = run_jobs([Job(f"a trial of {paper}.{variant}", function, (str(Path.cwd()), *arguments))], workers=1)
    result: Tried = found
    return result


def try_training(
    root: str, paper: str, scale: str, variant: str, folder: str, update: float, *, report: Report | None = None
) -> Training:
    """Train four times for a few updates, with different numbers of validations, as the train stage does.

    Args:
        root: the project's folder.
        paper, scale, variant: what is tried.
        folder: an empty one; ``seed1`` in it is then as a run leaves it.
        update: processor seconds of one update, about.
        report: takes progress, as all jobs must; trials report none.
    """
    os.chdir(root)
    train = partial(_train, paper, scale, variant, Path(folder))
    made = ScaleFile(paper, scale).run(variant).training
    train("seed1", 1, 1)
    whole = time.process_time()  # of this process, from its begin: it has loaded all code
    _, once = train("seed2", 1, 1)
    updates = max(2, min(made.updates, UPDATES[1], max(UPDATES[0], round(SPENT / max(update, 1e-9)))))
    first, rest = train("seed3", updates, updates)
    between = max(0.0, rest - once) / (updates - 1)  # what goes on between updates is not in their time
    count = max(2, min(10, made.updates // made.validate_every, updates, round(SPENT / max(once, 1e-9))))
    every = updates // count
    second, more = train("seed4", every * count, every)
    one = (first + second) / (updates + every * count) + between
    validation = min(max(0.0, more - rest + between * (updates - every * count)) / (count - 1), once)
    return Training(one, validation, max(0.0, whole - one - validation), peak_memory_mib())


def _train(
    paper: str, scale: str, variant: str, folder: Path, name: str, updates: int, every: int
) -> tuple[float, float]:
    """Processor seconds of a short run: of its updates, and of all else."""
    from shared.tasks.protocol import load_replication

    config, replication = ScaleFile(paper, scale).run(variant), load_replication(paper)
    short = {"updates": updates, "validate_every": every, "patience": None, "average": None}
    config = config.model_copy(update={"training": config.training.model_copy(update=short)})
    begin = time.process_time()
    with redirect_stdout(io.StringIO()):
        record, _ = replication.train(
            config, prepared=prepared_folder(paper, scale, config.task), folder=folder / name, seed=1, fingerprint="",
            label="a trial", progress=None,
        )  # fmt: skip
    whole = time.process_time() - begin
    return record.processor_seconds, max(0.0, whole - record.processor_seconds)


def try_judging(
    root: str, paper: str, scale: str, variant: str, trained: str, learned: bool, out: str,
    *, report: Report | None = None,
) -> Judging:  # fmt: skip
    """Judge larger and larger parts of the test splits, until one takes long enough or is the whole.

    The last two parts tell what the rest costs.

    Args:
        root, paper, scale, variant, report: as in :func:`try_training`.
        trained: folder of the model that is judged.
        learned: whether training of the model was finished; else it does not know where texts end, and what it
            generates is made as long as the references.
        out: for what evaluation writes.

    Raises:
        ReplicationError: the variant cannot be judged in parts, or a part takes too long.
    """
    os.chdir(root)
    from shared.pipeline.shortened import as_long_as_references, network_runner, shortened_runner
    from shared.tasks.protocol import load_replication

    whole_runner, config = network_runner(load_replication(paper), ScaleFile(paper, scale).run(variant))
    prepared = prepared_folder(paper, scale, config.task)
    if not learned:
        config = as_long_as_references(whole_runner, config, prepared)
    share, past, opening = SMALLEST, list[tuple[float, float]](), 0.0
    while True:
        judge = partial(
            shortened_runner(whole_runner, config.corpus.test, share).evaluate,
            config, prepared=prepared, trained=[Path(trained)], out=Path(out),
        )  # fmt: skip
        try:
            seconds = _timed(judge)
        except (ReplicationError, ValueError, IndexError):
            if share >= 1:
                raise
            share = 2 * share  # so few examples are not enough, for instance for the contexts asked for
            continue
        if not past:
            opening, seconds = time.process_time(), _timed(judge)  # the first time, code was loaded as well
            opening = max(0.0, opening - seconds)
        past.append((share, seconds))
        if share >= 1 or (seconds > SPENT and is_enough(past)):
            all_of_it = seconds if share >= 1 else extrapolated(*past[-2:])
            return Judging(opening + all_of_it, peak_memory_mib())
        share = 2 * share


def try_study(
    root: str, paper: str, scale: str, variant: str, folder: str, *, report: Report | None = None
) -> Judging:  # fmt: skip
    """Make one seed of a variant that trains no network, from its begin to its end; arguments as above.

    Raises:
        ReplicationError: it takes too long, or needs what is not there.
    """
    os.chdir(root)
    from shared.tasks.protocol import load_replication

    config, replication = ScaleFile(paper, scale).run(variant), load_replication(paper)
    prepared, seed1 = prepared_folder(paper, scale, config.task), Path(folder) / "seed1"

    def make() -> None:
        replication.train(
            config, prepared=prepared, folder=seed1, seed=1, fingerprint="", label="a trial", progress=None
        )
        replication.evaluate(config, prepared=prepared, trained=[seed1], out=Path(folder) / "evaluation")

    _timed(make)
    return Judging(spent(), peak_memory_mib())


def is_enough(past: Sequence[tuple[float, float]]) -> bool:
    """Whether the cost of shares of a split, of which each is twice the one before, tells that of the whole.

    It does if it grows evenly. Some costs do not: the contexts of language models are many only where the text is long,
    and then no more. A whole that is small is judged as a whole, and a trial that has taken long is believed.
    """
    if len(past) < 2 or extrapolated(*past[-2:]) < SMALL:
        return False
    if past[-1][1] > PATIENCE / 4:
        return True
    slopes = [(after - before) / (share - less) for (less, before), (share, after) in pairwise(past)]
    return len(slopes) > 1 and abs(slopes[-1] - slopes[-2]) < slopes[-2] / 3


def extrapolated(smaller: tuple[float, float], larger: tuple[float, float]) -> float:
    """Seconds for the whole, from those of two shares of it: what does not depend on the share is paid once."""
    (before, less), (share, seconds) = smaller, larger
    return seconds + max(0.0, seconds - less) / (share - before) * (1 - share)


def spent() -> float:
    """Processor seconds of this process and of those that it has waited for, so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _timed(work: Callable[[], Any]) -> float:
    begin = spent()
    with limited(PATIENCE), redirect_stdout(io.StringIO()):
        work()
    return spent() - begin


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what runs inside as soon as it has taken so many processor seconds.

    Raises:
        ReplicationError: it was stopped.
    """

    def stop(*_: object) -> None:
        raise ReplicationError(f"a trial takes more than {seconds:g} processor seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
