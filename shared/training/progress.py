"""What running jobs say about themselves, and the one place where all of it is shown.

Nothing here imports torch: the process that shows progress trains nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
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


Report = Callable[[Progress], None]
"""What a job calls from time to time to say how far it is."""


def validated(validation: Mapping[str, float]) -> list[str]:
    """What the last validation measured, in words; nothing before the first."""
    return [text.format(validation[name]) for name, text in VALIDATION.items() if name in validation]


class Board:
    """A bar for each running job on a terminal; elsewhere one line a minute for all of them together.

    Args:
        jobs: how many there are.
        every: seconds between the lines without a terminal.
    """

    def __init__(self, jobs: int, *, every: float = 60.0) -> None:
        self._jobs, self._ended, self._every = jobs, 0, every
        self._running: dict[str, Progress | None] = {}
        self._first: dict[str, tuple[float, int]] = {}
        self._last_line = time.monotonic()
        self._bars = _bars() if sys.stdout.isatty() else None
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Board:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def start(self, label: str) -> None:
        """Show a job that has no figures yet."""
        if label in self._running:
            return
        self._running[label] = None
        if self._bars:
            self._rows[label] = self._bars.add_task(label, total=None, figures="", left="")

    def update(self, label: str, progress: Progress) -> None:
        """Show how far a job is."""
        self.start(label)
        self._running[label] = progress
        self._first.setdefault(label, (time.monotonic(), progress.updates))
        if self._bars:
            self._bars.update(
                self._rows[label], completed=progress.updates, total=progress.total, figures=str(progress),
                left=self._left(label, progress),
            )  # fmt: skip

    def line(self, text: str) -> None:
        """Print a line above the bars."""
        if self._bars:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def end(self, label: str) -> None:
        """Show a job no longer."""
        self.start(label)
        self._ended += 1
        del self._running[label]
        self._first.pop(label, None)
        if self._bars:
            self._bars.remove_task(self._rows.pop(label))

    def tick(self) -> None:
        """Print the line for all running jobs if it is due."""
        now = time.monotonic()
        if self._bars or now - self._last_line < self._every:
            return
        self._last_line = now
        runs = [f"{label} {self._words(label, progress)}" for label, progress in self._running.items()]
        self.line("; ".join([f"{self._ended} of {self._jobs} runs ended", *runs]))

    def _words(self, label: str, progress: Progress | None) -> str:
        if progress is None:
            return "starts"
        left = self._left(label, progress)
        return f"at update {progress.updates:,} of {progress.total:,}, {progress}" + (f", {left} left" if left else "")

    def _left(self, label: str, progress: Progress) -> str:
        """Time to the end at the speed since this start of the job; nothing before there is a speed."""
        begin, updates = self._first[label]
        if progress.updates == updates:
            return ""
        seconds = (time.monotonic() - begin) / (progress.updates - updates) * (progress.total - progress.updates)
        minutes, hours = int(seconds // 60 % 60), int(seconds // 3600)
        return f"{hours}:{minutes:02}:{int(seconds % 60):02}"


def _bars() -> Bars:
    """Imported here, since rich takes longer to import than a stage without a terminal needs for its lines."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: list[Any] = [
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(), TextColumn("left"), TextColumn("{task.fields[left]}"),
    ]  # fmt: skip
    return Progress(*columns)
