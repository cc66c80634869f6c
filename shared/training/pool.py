"""Jobs side by side, each in a process of its own, so that one that fails or is killed harms no other.

The processes are forked from a server that has imported torch and Lightning once; this module imports neither. A job
has the threads that it is given, one by default, however many cores and other jobs there are: so the number of workers
does not change the results. A worker ends when the process that started it ends, for whatever reason.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from io import TextIOBase
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any

from shared.errors import ReplicationError
from shared.training.disk import disk_sentence
from shared.training.progress import Board, Progress

PRELOAD = ("shared.training.preload",)
GRACE = 30.0
"""Seconds that interrupted jobs have to end by themselves, before they are killed; they may be killed at any moment."""


@dataclass(frozen=True)
class Job:
    """A call that is made in another process.

    Attributes:
        label: names the job in progress and errors.
        function: importable by its name; called as ``function(*arguments, report=...)``, where ``report`` takes a
            :class:`shared.training.progress.Progress`.
        arguments: must be picklable, as must the result.
    """

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """What a job returned."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """Why a job returned nothing."""

    reason: str


Outcome = Done | Failed
Message = Progress | str
Send = Callable[[Message], None]


def run_jobs(
    jobs: Sequence[Job], *, workers: int, scheduler: str | None = None, threads: int = 1,
    preload: Sequence[str] = PRELOAD,
) -> list[Any]:  # fmt: skip
    """Run all jobs; returns their results in the order of the jobs.

    Args:
        jobs: to be run, with different labels.
        workers: how many run at once; with a scheduler that is for its cluster to decide.
        scheduler: the address of a Dask scheduler, ``tcp://host:port``, whose workers see the same folder.
        threads: of each job.
        preload: modules that are imported once for all workers of this process; ``()`` for jobs without training.

    Raises:
        ReplicationError: jobs have failed, after all others have ended; it names each of them and its error.
        KeyboardInterrupt, SystemExit: after Ctrl-C and SIGTERM (143), when all workers have ended.
    """
    with Board(len(jobs)) as board, _exit_on_sigterm():
        if scheduler:
            from shared.training.cluster import run_on_cluster

            outcomes = run_on_cluster(jobs, scheduler, threads, board)
        else:
            outcomes = _run_here(jobs, workers, threads, board, preload)
    failed = {job.label: outcome for job, outcome in zip(jobs, outcomes, strict=True) if isinstance(outcome, Failed)}
    if failed:
        reasons = [f"{label}: {outcome.reason}" for label, outcome in failed.items()]
        head = f"{len(failed)} of {len(jobs)} runs failed, the others are finished:"
        raise ReplicationError(reasons[0] if len(jobs) == 1 else "\n  ".join([head, *reasons]))
    return [outcome.value for outcome in outcomes if isinstance(outcome, Done)]


def perform(payload: bytes, send: Send) -> Outcome:
    """Run a pickled job in this process; what it prints is sent in lines."""
    try:
        job: Job = pickle.loads(payload)
        with closing(_Lines(send)) as lines, redirect_stdout(lines):
            return Done(job.function(*job.arguments, report=send))
    except ReplicationError as error:
        return Failed(str(error))
    except Exception as error:
        if sentence := disk_sentence(error):
            return Failed(sentence)
        send(traceback.format_exc())
        return Failed(f"{type(error).__name__}: {error}")


def show(board: Board, label: str, message: Message) -> None:
    """Show what a job has sent."""
    if isinstance(message, Progress):
        board.update(label, message)
    else:
        board.line(message)


def limit_threads(threads: int) -> None:
    """Give this process so many threads for arithmetic, also if it imports torch later."""
    os.environ.update(_thread_settings(threads))
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


class _Lines(TextIOBase):
    """A text stream that sends its lines, the last one when it is closed."""

    def __init__(self, send: Send) -> None:
        self._send, self._rest = send, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._send(line)
        return len(text)

    def close(self) -> None:
        if self._rest:
            self.write("\n")
        super().close()


class _Worker:
    """A process that runs one job.

    Attributes:
        connection: its messages; readable also when it has ended.
        outcome: of the job, None before it has one.
    """

    def __init__(self, number: int, job: Job, threads: int) -> None:
        context = multiprocessing.get_context("forkserver")
        self.number, self.label = number, job.label
        self.outcome: Outcome | None = None
        self.connection, other = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_work, args=(pickle.dumps(job), other, threads), name=job.label, daemon=True
        )
        self.process.start()
        other.close()

    def receive(self, board: Board) -> bool:
        """Take one message; False if the process has ended, and then there is an outcome."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            self.outcome = self.outcome or Failed(_ending(self.process.exitcode or 0))
            self.connection.close()
            return False
        if isinstance(message, (Done, Failed)):
            self.outcome = message
        else:
            show(board, self.label, message)
        return True


def _run_here(jobs: Sequence[Job], workers: int, threads: int, board: Board, preload: Sequence[str]) -> list[Outcome]:
    """Run jobs in processes of this machine."""
    waiting, outcomes = deque(enumerate(jobs)), dict[int, Outcome]()
    running: dict[Connection, _Worker] = {}
    _start_server(threads, preload)
    try:
        while waiting or running:
            while waiting and len(running) < max(1, workers):
                worker = _Worker(*waiting.popleft(), threads)
                running[worker.connection] = worker
                board.start(worker.label)
            for connection in wait([*running], timeout=1.0):
                worker = running[connection]  # type: ignore[index]
                if worker.receive(board):
                    continue
                assert worker.outcome is not None
                outcomes[worker.number] = worker.outcome
                if isinstance(worker.outcome, Failed):
                    board.line(f"{worker.label} failed: {worker.outcome.reason}")
                board.end(worker.label)
                del running[connection]  # type: ignore[arg-type]
            board.tick()
    finally:
        _stop(running.values())
    return [outcomes[number] for number in range(len(jobs))]


def _stop(workers: Iterable[_Worker]) -> None:
    """End what is still running: politely, and by force where that takes too long or is interrupted again."""
    processes = [worker.process for worker in workers]
    try:
        for process in processes:
            process.terminate()
        end = time.monotonic() + GRACE
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
    finally:
        for process in processes:
            process.kill()


def _ending(exitcode: int) -> str:
    """The reason why a process ended without an outcome."""
    if exitcode == -signal.SIGKILL:
        return "its process was killed by SIGKILL, as happens when memory runs out; the same command continues it"
    if exitcode < 0:
        return f"its process was ended by {signal.Signals(-exitcode).name}; the same command continues it"
    return f"its process ended with exit status {exitcode}; the same command continues it"


def _work(payload: bytes, connection: Connection, threads: int) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(threads)

    def send(message: Message) -> None:
        # Progress that finds the pipe full is dropped: training does not wait for a stopped terminal.
        if isinstance(message, str) or select.select([], [connection], [], 0)[1]:
            connection.send(message)

    connection.send(perform(payload, send))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by SIGKILL; killing a run at any moment is safe."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _start_server(threads: int, preload: Sequence[str]) -> None:
    """Start the fork server, unless it runs; it has the environment of the workers and ignores Ctrl-C."""
    multiprocessing.get_context("forkserver").set_forkserver_preload([*preload])
    before = dict(os.environ)
    os.environ.update(_thread_settings(threads))
    try:
        with _handler(signal.SIGINT, signal.SIG_IGN):
            forkserver.ensure_running()
    finally:
        for name in _thread_settings(threads):
            os.environ.pop(name)
            if name in before:
                os.environ[name] = before[name]


def _thread_settings(threads: int) -> Mapping[str, str]:
    """Environment variables that OpenMP, MKL and OpenBLAS read when they are loaded; waiting threads do not spin."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads)) | {"OMP_WAIT_POLICY": "PASSIVE"}


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Make SIGTERM raise SystemExit(143), so that workers are ended and the bars taken away."""

    def leave(*_: object) -> None:
        raise SystemExit(143)

    with _handler(signal.SIGTERM, leave):
        yield


@contextmanager
def _handler(number: signal.Signals, action: Any) -> Iterator[None]:
    """Set a signal's handler for a while; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)
