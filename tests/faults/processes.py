"""Which processes there are, by /proc, and how one is started whose whole group can be killed."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.pipeline.scratch import ROOT, environment

LIMIT = 240.0
"""Seconds after which a stage hangs."""


def runs(pid: int) -> bool:
    """Whether there is such a process; one that has ended and that nobody has waited for is none."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """The living children of a process."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            pids.append(int(stat.parent.name))
    return pids


def workers(pid: int) -> list[int]:
    """The workers of a stage: what its fork server has forked."""
    return [worker for server in children(pid) for worker in children(server)]


def inside(folder: Path) -> dict[int, str]:
    """The living processes whose current folder or command line is of a folder, and their command lines."""
    names, text = {}, str(folder)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = (process / "cwd").readlink()
        except OSError:
            continue
        if text in command or f"{place}/".startswith(f"{text}/"):
            names[int(process.name)] = command
    return names


def remaining(folder: Path, seconds: float = 20.0) -> dict[int, str]:
    """The processes that are still inside a folder after some seconds; none, as soon as there are none."""
    end = time.monotonic() + seconds
    while (left := inside(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


@dataclass
class Started:
    """A stage that runs.

    Attributes:
        pid: of its process, which leads a group.
        output: the file of what it prints.
        ending: waits so many seconds for the end, see :meth:`wait`.
    """

    pid: int
    output: Path
    ending: Callable[[float], int | None]

    def wait(self, seconds: float) -> int | None:
        """The exit status, or minus the number of the signal that ended it; None if it still runs."""
        return self.ending(seconds)

    def end(self) -> int:
        """Wait for the end; a stage that hangs is killed."""
        status = self.wait(LIMIT)
        if status is None:
            os.killpg(self.pid, signal.SIGKILL)
            raise AssertionError(f"the stage has not ended in {LIMIT:.0f} s:\n{self.printed()}")
        return status

    def printed(self) -> str:
        return self.output.read_text(errors="replace")


class Server:
    """Starts commands of the pipeline as forks of ``stage.py``, which takes a fifth of a program's time.

    Args:
        temporary: folder of temporary files.
    """

    def __init__(self, temporary: Path) -> None:
        self.environment = environment() | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tests.faults.stage import serve; serve()"], cwd=temporary,
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.process.stdout.readline()  # when all is imported
        self._statuses: dict[int, int | None] = {}

    def start(
        self, folder: Path, arguments: list[str], output: Path, largest: int | None = None,
        temporary: Path | None = None,
    ) -> Started:  # fmt: skip
        """Start a command.

        Args:
            folder: of the project.
            arguments: of the command.
            output: the file of what it prints.
            largest: bytes that no file which it writes can have more of.
            temporary: folder of temporary files instead of the server's.
        """
        assert self.process.stdin is not None
        request = {
            "folder": str(folder), "arguments": arguments, "output": str(output), "largest": largest,
            "temporary": None if temporary is None else str(temporary),
        }  # fmt: skip
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        while (answer := self._answer(LIMIT)) is None or "status" in answer:
            continue
        pid = int(answer["pid"])
        return Started(pid, output, lambda seconds: self._ending(pid, seconds))

    def program(self, command: list[str], folder: Path, output: Path) -> Started:
        """Start another program, whose group it leads and which can be interrupted."""
        with output.open("a") as file:
            process = subprocess.Popen(
                command, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip

        def ending(seconds: float) -> int | None:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None

        return Started(process.pid, output, ending)

    def _answer(self, seconds: float) -> dict[str, int] | None:
        """The next line, after its status is kept; None if there is none yet."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], max(0.0, seconds))[0]:
            return None
        answer: dict[str, int] = json.loads(self.process.stdout.readline())
        self._statuses[answer["pid"]] = answer.get("status")
        return answer

    def _ending(self, pid: int, seconds: float) -> int | None:
        end = time.monotonic() + seconds
        while self._statuses[pid] is None and self._answer(end - time.monotonic()) is not None:
            continue
        return self._statuses[pid]

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        with self.process:  # which closes both pipes and waits
            self.process.stdin.close()
