"""Stages that are killed at random moments, and what is asked of them afterwards."""

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.marks import differences, marks
from tests.faults.processes import Server, Started, remaining, workers
from tests.pipeline.toys import TOYS, write_project

T = TypeVar("T")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TARGETS = ("group", "parent", "worker", "workers")
"""What is killed: all processes of a stage, the first of them, one that trains or judges, or all of these."""
WITH_WORKERS = ("train", "evaluate")
WEIGHTS = {"train": 6, "evaluate": 3, "prepare": 1, "report": 1, "fetch": 1, "features": 1}
"""How often each stage is killed, relative to the others."""
AGAIN, TRIES = 2, 4
"""How often a killed command is run again at most, and one that has ended before it could be killed."""
LEAVING = 5.0
"""Seconds that the servers of a command which has just ended may take to end, too; on a busy machine they need some."""


@dataclass(frozen=True)
class Case:
    """One kill.

    Attributes:
        kind: of the toy paper's tasks.
        stage: that is killed.
        number: of the signal.
        target: that gets it.
        moment: when, as a fraction of the time that the stage takes undisturbed.
    """

    kind: str
    stage: str
    number: signal.Signals
    target: str
    moment: float

    def __str__(self) -> str:
        return f"{self.kind} {self.stage} {self.number.name} {self.target} at {self.moment:.4f}"


def cases(count: int, seed: int) -> list[Case]:
    """Kills spread over stages, kinds, signals and targets."""
    rng = random.Random(seed)
    stages = _dealt([stage for stage, weight in WEIGHTS.items() for _ in range(weight)], rng)
    kinds, kills = _dealt([*TOYS], rng), _dealt([(n, t) for n in SIGNALS for t in TARGETS], rng)
    chosen = []
    for _ in range(count):
        stage, kind, (number, target) = next(stages), next(kinds), next(kills)
        if stage == "features":
            kind = "captioning"
        if stage not in WITH_WORKERS:
            target = "parent" if target == "parent" else "group"
        chosen.append(Case(kind, stage, number, target, rng.random()))
    return chosen


def _dealt(deck: list[T], rng: random.Random) -> Iterator[T]:
    while True:
        yield from rng.sample(deck, len(deck))


class Undisturbed:
    """A toy paper whose stages were run once, with a copy of its project before each of them.

    Args:
        kind: of its tasks.
        folder: that gets the project and its copies.
        commands: starts the stages.
    """

    def __init__(self, kind: str, folder: Path, commands: Server) -> None:
        self.kind, self.name, self.commands = kind, f"toy_{kind}", commands
        self.project, self._copies = folder / "project", folder / "copies"
        self.output, self._started = folder / "output", 0
        self.seconds: dict[str, float] = {}
        self._marks: dict[str, dict[str, str]] = {}
        self._copies.mkdir(parents=True)
        write_project(self.project)
        variants = [f"{self.name}.{name}" for name in ("long", "short", "elsewhere")]
        names = {
            "fetch": [f"{self.name}.task"], "features": [f"{self.name}.task"], "prepare": [f"{self.name}.task"],
            "train": variants, "evaluate": variants, "report": [self.name],
        }  # fmt: skip
        if TOYS[kind].after == "fetched":
            del names["features"]
        self._names = names

    def command(self, stage: str, name: str | None = None) -> list[str]:
        """The command of a stage; of its first variant unless named."""
        return [stage, name or self._names[stage][0], "--scale", "smoke"]

    def reach(self, stage: str) -> None:
        """Run every stage up to this one, unless that was done before; the project is left as it was before it."""
        for each in self._names:
            if each not in self.seconds:
                if self.seconds:
                    self.restore(f"after {[*self.seconds][-1]}")
                self._keep(f"before {each}")
                begin = time.monotonic()
                self.run(self.command(each))
                self.seconds[each] = time.monotonic() - begin
                self._marks[each] = marks(self.project)
                for name in self._names[each][1:]:
                    self.run(self.command(each, name))
                self._keep(f"after {each}")
            if each == stage:
                break
        self.restore(f"before {stage}")

    def start(self, command: list[str], **more: Any) -> Started:
        """Start a command, its output going to a new file."""
        self._started += 1
        return self.commands.start(self.project, command, self.output.with_suffix(f".{self._started}"), **more)

    def run(self, command: list[str], status: int = 0, **more: Any) -> str:
        """Run a command to its end; returns what it printed."""
        started = self.start(command, **more)
        assert started.end() == status, f"{command}: {started.printed()}"
        return started.printed()

    def differences(self, stage: str) -> list[str]:
        """What is not as the undisturbed stage has left it."""
        return differences(self._marks[stage], marks(self.project))

    def restore(self, when: str) -> None:
        """Make the project what it was."""
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self.copy(when), self.project, symlinks=True)

    def copy(self, when: str) -> Path:
        """Where the project lies as it was ``before`` or ``after`` a stage."""
        return self._copies / when

    def _keep(self, when: str) -> None:
        shutil.copytree(self.project, self._copies / when, symlinks=True)


def strike(started: Started, case: Case, seconds: float) -> bool:
    """Send the signal at its moment, or as soon afterwards as there is a worker; False if the stage ended before."""
    if started.wait(case.moment * seconds) is not None:
        return False
    pids = [started.pid]
    if case.target.startswith("worker"):
        while not (pids := workers(started.pid)):
            if started.wait(0.005) is not None:
                return False
    try:
        if case.target == "group":
            os.killpg(started.pid, case.number)
            return True
        for pid in pids[:1] if case.target != "workers" else pids:
            os.kill(pid, case.number)
    except ProcessLookupError:
        return False
    return True


def kill(paper: Undisturbed, case: Case) -> tuple[bool, list[str]]:
    """Kill a stage, run it again to its end, and compare.

    Returns:
        whether the signal was sent before the stage had ended, and all that is wrong.
    """
    command, faults = paper.command(case.stage), []
    for _ in range(TRIES):
        paper.reach(case.stage)
        begin = time.monotonic()
        started = paper.start(command)
        hit = strike(started, case, paper.seconds[case.stage])
        status = started.end()
        if hit:
            break
        paper.seconds[case.stage] = time.monotonic() - begin  # the machine has become less busy
    begin = time.monotonic()
    for _ in range(AGAIN):
        if status == 0:
            break
        started = paper.start(command)
        status = started.end()
        if "Traceback" in (printed := started.printed()):
            faults.append(f"it was not continued at once:\n{printed}")
    if status:
        faults.append(f"it ended with {status} again and again:\n{started.printed()}")
    if left := remaining(paper.project, max(LEAVING, 20 - (time.monotonic() - begin))):
        faults.append(f"these processes go on: {left}")
    return hit, faults + paper.differences(case.stage)


def other_disk(near: Path) -> Path:
    """A new folder for temporary files, on another file system than ``near`` if there is one, as /tmp often is."""
    shared = Path("/dev/shm")
    if os.access(shared, os.W_OK) and shared.stat().st_dev != near.stat().st_dev:
        return Path(tempfile.mkdtemp(dir=shared))
    return Path(tempfile.mkdtemp(dir=near))
