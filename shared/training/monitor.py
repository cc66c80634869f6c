"""What a run shows and writes while it goes on: throughput, the learning curve, the progress bar."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import Callback
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from shared.training.protocol import TrainingBatch


class Throughput(Callback):
    """Tokens (of the target, or read) and seconds of training, validation excluded, over all the starts of a run."""

    def __init__(self) -> None:
        self.tokens, self.seconds = 0, 0.0
        self._begin = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of training so far."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def on_train_batch_start(self, *_: Any) -> None:
        self._begin = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: TrainingBatch, *_: Any) -> None:
        self.tokens += batch.tokens
        self.seconds += time.perf_counter() - self._begin

    def state_dict(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.tokens, self.seconds = state_dict["tokens"], state_dict["seconds"]


class CurveWriter(Callback):
    """Appends ``step,split,metric,value`` rows to a CSV file: all that is logged as ``train_…`` or ``valid_…``.

    Args:
        path: of the file.
        start: the update that the run continues from; rows after it are of a start that was killed, and dropped.
        every: updates between training rows.
    """

    HEADER = ("step", "split", "metric", "value")

    def __init__(self, path: Path, start: int, every: int = 20) -> None:
        self._path, self._start, self._every, self._written = path, start, every, start

    def on_train_start(self, trainer: Any, module: Any) -> None:
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
        logged, prefix = trainer.callback_metrics, f"{split}_"
        metrics = {name.removeprefix(prefix): logged[name] for name in logged if name.startswith(prefix)} | more
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerows(
                [trainer.global_step, split, name, f"{float(value):.6g}"] for name, value in metrics.items()
            )


class Progress(Callback):
    """A bar with loss, tokens/s and time left on a terminal; elsewhere one line when the run is done."""

    def __init__(self, label: str, updates: int, throughput: Throughput) -> None:
        self._label, self._throughput = label, throughput
        console = Console()
        self._bar = RichProgress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console,
            disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task(label, total=updates, figures="")

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._bar.start()

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        if self._bar.disable:
            return
        metrics = trainer.callback_metrics
        figures = [f"loss {float(metrics['train_loss']):.3f}", *_validated(metrics)]
        figures.append(f"{self._throughput.tokens_per_second:,.0f} tokens/s")
        self._bar.update(self._task, completed=trainer.global_step, figures="  ".join(figures))

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._bar.stop()
        line = f"{self._label}: {trainer.global_step} updates in {self._throughput.seconds:.0f} s"
        speed = f"{self._throughput.tokens_per_second:,.0f} tokens/s"
        print(line, speed, *_validated(trainer.callback_metrics), sep=", ")

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._bar.stop()


def _validated(metrics: Mapping[str, Any]) -> list[str]:
    """What the last validation found; nothing before the first, and where a killed run had only its end to reach."""
    shown = {"valid_loss": "valid loss {:.3f}", "valid_error": "valid error {:.1%}", "valid_bleu": "valid BLEU {:.1f}"}
    return [text.format(float(metrics[name])) for name, text in shown.items() if name in metrics]
