"""What running jobs say about themselves, and the one place where all of it is shown.

Nothing here imports torch: the process that shows progress trains nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import ReplicationError

if TYPE_CHECKING:
    from rich.progress import TaskID

VALIDATION = {"loss": "valid loss {:.3f}", "error": "valid error {:.1%}", "bleu": "valid BLEU {:.1f}"}
"""How the quantities of a validation are written."""


@dataclass(frozen=True)
class Progress:
    """How far a training run is.

    Attributes:
        updates: made so far, those before a restart included.
        total: how many there are to be.
        loss: of the last training batch.
        tokens_per_second: of training, validation excluded.
        validation: what the last validation measured, by the names in :data:`VALIDATION`.
    """

    updates: int
    total: int
    loss: float
    tokens_per_second: float
    validation: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return "  ".join(
            [f"loss {self.loss:.3f}", *validated(self.validation), f"{self.tokens_per_second:,.0f} tokens/s"]
        )


LISTENER: ContextVar[Callable[[Progress], None]] = ContextVar("listener", default=lambda progress: None)
"""What takes the progress of the run that this process makes, from time to time; by default nobody does."""


CURVE: ContextVar[Callable[[Mapping[str, float], int], object]] = ContextVar("curve", default=lambda values, step: None)
"""What takes a row of the learning curve of this process's run, by its names and its update, beside ``curve.csv``."""


@contextmanager
def logging_to(logger: str, run: str) -> Iterator[None]:
    """Give a run's learning curve to Lightning's logger of this name, which writes to ``runs/logs``; ``csv``: to none.

    Raises:
        ReplicationError: its package is not installed.
    """
    if logger == "csv":
        yield
        return
    if find_spec(logger) is None:
        raise ReplicationError(
            f"params.yaml: the logger '{logger}' is not installed; run 'pip install {logger}', or set 'logger: csv'."
        )
    log = _logger(logger, run)
    token = CURVE.set(log.log_metrics)
    try:
        yield
    finally:
        CURVE.reset(token)
        log.finalize("success")


def _logger(name: str, run: str) -> Any:
    from lightning.pytorch import loggers

    folder, project = Path("runs/logs"), "attention-replications"
    own = folder / run
    own.mkdir(parents=True, exist_ok=True)
    match name:
        case "tensorboard":
            return loggers.TensorBoardLogger(folder, name=run, version="")
        case "wandb":
            return loggers.WandbLogger(project=project, name=run, save_dir=folder)
        case "mlflow":
            own_file = f"sqlite:///{own}/mlflow.db"  # as two runs cannot begin one at the same time
            return loggers.MLFlowLogger(project, run, tracking_uri=os.getenv("MLFLOW_TRACKING_URI", own_file))
    from dvclive.lightning import DVCLiveLogger

    return DVCLiveLogger(run, dir=str(own), save_dvc_exp=False, dvcyaml=None)


def validated(validation: Mapping[str, float]) -> list[str]:
    """What the last validation measured, in words; nothing before the first."""
    return [text.format(validation[name]) for name, text in VALIDATION.items() if name in validation]


class Board:
    """On a terminal a bar for all jobs and one for each that runs; elsewhere a line a minute.

    Args:
        jobs: how many there are.
        title: what they are part of, such as "stage 3 of 12".
        every: seconds between the lines without a terminal.
    """

    def __init__(self, jobs: int, *, title: str = "", every: float = 60.0) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # which other commands do without

        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}")]
        self._bars = Progress(*columns, get_time=time.monotonic, speed_estimate_period=600.0)
        self._all = self._bars.add_task(title or "all runs", total=jobs, words="")
        self._jobs, self._ended = jobs, 0
        self._rows: dict[str, TaskID] = {}
        self._every, self._last_line = every, time.monotonic()
        self._count()

    def __enter__(self) -> Board:
        if sys.stdout.isatty():
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars.live.is_started:
            self._bars.stop()

    def start(self, label: str) -> None:
        """Show a job that has no figures yet."""
        if label not in self._rows:
            self._rows[label] = self._bars.add_task(label, total=None, words="starts")

    def show(self, label: str, said: Progress | str) -> None:
        """Show how far a job is, or a line that it has printed."""
        if isinstance(said, str):
            return self.line(said)
        self.start(label)
        self._bars.update(self._rows[label], completed=said.updates, total=said.total)
        (row,) = (task for task in self._bars.tasks if task.id == self._rows[label])
        at = f"at update {said.updates:,} of {said.total:,}, {said}"
        self._bars.update(row.id, words=at + _left(row.time_remaining))
        self._count()
        return self.tick()

    def line(self, text: str) -> None:
        """Print a line above the bars."""
        if self._bars.live.is_started:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(f"{text}\n", end="", flush=True)  # at once, since threads share the board

    def end(self, label: str) -> None:
        """Show a job no longer."""
        self._ended += 1
        if label in self._rows:
            self._bars.remove_task(self._rows.pop(label))
        self._count()

    def tick(self) -> None:
        """Without a terminal, print the line for all running jobs if it is due."""
        if self._bars.live.is_started or time.monotonic() - self._last_line < self._every:
            return
        self._last_line = time.monotonic()
        everything, *running = self._bars.tasks
        self.line("; ".join([everything.fields["words"], *(f"{t.description} {t.fields['words']}" for t in running)]))

    def _count(self) -> None:
        """Show how many jobs have ended, and the time left of all, at the speed of those that run."""
        running = self._bars.tasks[1:]
        done = self._ended + sum(task.percentage for task in running) / 100
        speed = sum(task.speed / task.total for task in running if task.speed and task.total)
        left = _left((self._jobs - done) / speed if speed else None)
        self._bars.update(self._all, completed=done, words=f"{self._ended} of {self._jobs} runs ended{left}")


def _left(seconds: float | None) -> str:
    return f", {timedelta(seconds=int(seconds))} left" if seconds else ""
