"""What a run shows and writes while it goes on: throughput, the learning curve, progress."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import Callback

from shared.training.processes import Group
from shared.training.progress import VALIDATION, Progress, Report, validated
from shared.training.protocol import TrainingBatch


class Throughput(Callback):
    """Tokens (of the target, or read) and time of training, validation excluded, over all the starts of a run.

    Args:
        group: the processes that share the run.

    Attributes:
        tokens: trained on by this process.
        seconds: by the clock; on a busy machine that says little.
        processor_seconds: user and system time of this process.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self.tokens, self.seconds, self.processor_seconds = 0.0, 0.0, 0.0
        self._begin = self._processor_begin = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of training so far, if all processes are as quick as this one."""
        return self._group.size * self.tokens / self.seconds if self.seconds else 0.0

    def on_train_batch_start(self, *_: Any) -> None:
        self._begin, self._processor_begin = time.perf_counter(), time.process_time()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: TrainingBatch, *_: Any) -> None:
        self.tokens += batch.tokens
        self.seconds += time.perf_counter() - self._begin
        self.processor_seconds += time.process_time() - self._processor_begin

    def state_dict(self) -> dict[str, Any]:
        """What all processes have done together, and the time by the clock of the first; each has to call it."""
        tokens, processor_seconds = self._group.sums([self.tokens, self.processor_seconds])
        return {"tokens": tokens, "seconds": self.seconds, "processor_seconds": processor_seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take an equal part of what was done; there may be more or fewer processes now."""
        self.tokens, self.seconds = state_dict["tokens"] / self._group.size, state_dict["seconds"]
        self.processor_seconds = state_dict["processor_seconds"] / self._group.size


class CurveWriter(Callback):
    """Appends ``step,split,metric,value`` rows to a CSV file: all that is logged as ``train_…`` or ``valid_…``.

    Args:
        path: of the file.
        start: the update that the run continues from; rows after it were written by a killed start and are dropped.
        every: updates between training rows.
    """

    HEADER = ("step", "split", "metric", "value")

    def __init__(self, path: Path, start: int, every: int = 20) -> None:
        self._path, self._start, self._every, self._written = path, start, every, start

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if not trainer.is_global_zero:
            return
        kept: list[list[str]] = []
        if self._start and self._path.exists():
            with self._path.open(newline="") as file:
                kept = [row for row in list(csv.reader(file))[1:] if len(row) == 4 and int(row[0]) <= self._start]
        partial = self._path.with_suffix(".partial")
        with partial.open("w", newline="") as file:
            csv.writer(file).writerows([self.HEADER, *kept])
        partial.replace(self._path)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        update = trainer.global_step
        if update % self._every == 0 and update != self._written:  # batches may accumulate
            self._written = update
            self._append(trainer, "train", learning_rate=trainer.optimizers[0].param_groups[0]["lr"])

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self._append(trainer, "valid")

    def _append(self, trainer: Any, split: str, **more: Any) -> None:
        if not trainer.is_global_zero:
            return
        logged, prefix = trainer.callback_metrics, f"{split}_"
        metrics = {name.removeprefix(prefix): logged[name] for name in logged if name.startswith(prefix)} | more
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerows(
                [trainer.global_step, split, name, f"{float(value):.6g}"] for name, value in metrics.items()
            )


class Reporter(Callback):
    """Reports the progress of a run at most every ``every`` seconds, and prints one line when the run is done.

    Args:
        label: names the run.
        updates: how many there are to be.
        throughput: measures speed.
        report: takes the progress.
        every: seconds between reports.
    """

    def __init__(
        self, label: str, updates: int, throughput: Throughput, report: Report | None, every: float = 0.5
    ) -> None:
        self._label, self._updates, self._throughput, self._report = label, updates, throughput, report
        self._every, self._reported = every, -every

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        now = time.monotonic()
        if self._report is None or not trainer.is_global_zero or now - self._reported < self._every:
            return
        self._reported, metrics = now, trainer.callback_metrics
        self._report(
            Progress(
                updates=trainer.global_step,
                total=self._updates,
                loss=float(metrics["train_loss"]),
                tokens_per_second=self._throughput.tokens_per_second,
                validation=_validation(metrics),
            )
        )

    def on_train_end(self, trainer: Any, module: Any) -> None:
        if not trainer.is_global_zero:
            return
        line = f"{self._label}: {trainer.global_step} updates in {self._throughput.seconds:.0f} s"
        speed = f"{self._throughput.tokens_per_second:,.0f} tokens/s"
        print(line, speed, *validated(_validation(trainer.callback_metrics)), sep=", ")


def _validation(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The results of the last validation; empty before the first one of this process."""
    return {name: float(metrics[f"valid_{name}"]) for name in VALIDATION if f"valid_{name}" in metrics}
