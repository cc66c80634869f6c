"""Jobs side by side, each in a process of its own, so that one that fails or is killed harms no other.

Here, processes are forked from a server that has imported torch and Lightning once; this module imports neither. A job
has one thread, however many cores and other jobs there are: so the number of workers does not change the results. A
worker ends when the process that started it ends, for whatever reason.

On a cluster, jobs run on the workers of a Dask scheduler that share a folder with this process. If a worker dies, the
scheduler gives its job to another one, which continues from the last checkpoint to the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from io import TextIOBase
from multiprocessing import connection, forkserver
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError, system_sentence
from shared.training.progress import LISTENER, Board, Progress

PRELOAD = ("shared.training.preload",)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""Environment variables that OpenMP, MKL and OpenBLAS read when they are loaded; waiting threads do not spin."""

Message = Progress | str
Send = Callable[[Message], None]

_one_at_a_time = threading.Lock()
"""Of the jobs of one worker of a cluster, which share its random generator and its folder."""


@dataclass(frozen=True)
class Job:
    """A call that is made in another process, in the folder of this one.

    Attributes:
        label: names the job in progress and errors.
        function: importable by its name; what it prints, and the progress that it reports, is shown here.
        arguments: must be picklable, as must the result.
    """

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class _Outcome:
    """What a job returned, or why it failed."""

    value: Any = None
    failed: str = ""


Ended = Generator[tuple[Job, _Outcome]]


def run_jobs(
    jobs: Sequence[Job], *, workers: int, scheduler: str | None = None, preload: Sequence[str] = PRELOAD,
    title: str = "",
) -> list[Any]:  # fmt: skip
    """Run all jobs; returns their results in the order of the jobs.

    Args:
        jobs: to be run, with different labels.
        workers: how many run at once; with a scheduler that is for its cluster to decide.
        scheduler: the address of a Dask scheduler, ``tcp://host:port``, whose workers see the same folder.
        preload: modules that are imported once for all workers of this process; ``()`` for jobs without training.
        title: what the jobs are a part of, for who watches.

    Raises:
        ReplicationError: jobs have failed, after all others have ended; it names each of them and its error.
        KeyboardInterrupt, SystemExit: after Ctrl-C and SIGTERM (143), when all workers have ended.
    """
    outcomes: dict[int, _Outcome] = {}  # by the job's identity
    with Board(len(jobs), title=title) as board, _handler(signal.SIGTERM, _leave):
        if scheduler:
            ended = _on_cluster(jobs, scheduler, board)
        else:
            ended = _in_processes(jobs, max(1, workers), preload, board)
        with closing(ended):
            for job, outcome in ended:
                outcomes[id(job)] = outcome
                if outcome.failed:
                    board.line(f"{job.label} failed: {outcome.failed}")
                board.end(job.label)
    found = [outcomes[id(job)] for job in jobs]
    failed = [f"{job.label}: {outcome.failed}" for job, outcome in zip(jobs, found, strict=True) if outcome.failed]
    if failed:
        head = f"{len(failed)} of {len(jobs)} runs failed, the others are finished:"
        raise ReplicationError(failed[0] if len(jobs) == 1 else "\n  ".join([head, *failed]))
    return [outcome.value for outcome in found]


def limit_threads() -> None:
    """Give this process one thread for arithmetic, also if it imports torch later."""
    os.environ.update(ONE_THREAD)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _in_processes(jobs: Sequence[Job], workers: int, preload: Sequence[str], board: Board) -> Ended:
    """Run jobs in processes of this machine; yields each as it ends. What still runs when it is closed is killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    os.environ.update(ONE_THREAD)  # for the server, which imports what reads them
    with _handler(signal.SIGINT, signal.SIG_IGN):
        forkserver.ensure_running()
    waiting, running = [*reversed(jobs)], dict[Any, tuple[Job, Any]]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(pickle.dumps(job), sender), daemon=True)
                process.start()
                sender.close()
                running[receiver] = job, process
                board.start(job.label)
            ready: list[Any] = connection.wait([*running], timeout=1.0)
            for receiver in ready:
                job, process = running[receiver]
                try:
                    message = receiver.recv()
                except (EOFError, OSError):
                    process.join()
                    message = _Outcome(failed=_ending(process.exitcode))
                if isinstance(message, _Outcome):
                    del running[receiver]
                    receiver.close()
                    process.join()
                    yield job, message
                else:
                    board.show(job.label, message)
            board.tick()
    finally:
        for _, process in running.values():
            process.kill()
            process.join()


def _work(payload: bytes, pipe: connection.Connection) -> None:
    """What a process of this machine does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads()

    def send(message: Message) -> None:
        # Progress that finds the pipe full is dropped: training does not wait for a stopped terminal.
        if isinstance(message, str) or select.select([], [pipe], [], 0)[1]:
            pipe.send(message)

    pipe.send(_perform(payload, send))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by SIGKILL; killing a run at any moment is safe."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _perform(payload: bytes, send: Send) -> _Outcome:
    """Run a pickled job in this process; what it prints is sent in lines, and so is the traceback of a mistake."""
    try:
        job: Job = pickle.loads(payload)
        LISTENER.set(send)
        with closing(_Lines(send)) as lines, redirect_stdout(lines):
            return _Outcome(job.function(*job.arguments))
    except ReplicationError as error:
        return _Outcome(failed=str(error))
    except Exception as error:
        if (sentence := system_sentence(error)) is None:
            send(traceback.format_exc())
        return _Outcome(failed=sentence or f"{type(error).__name__}: {error}")


class _Lines(TextIOBase):
    """A text stream that sends its lines, the last one when it is closed."""

    def __init__(self, send: Send) -> None:
        self._send, self._rest = send, ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._send(line)
        return len(text)

    def close(self) -> None:
        if self._rest:
            self.write("\n")
        super().close()


def _ending(exitcode: int) -> str:
    """The reason why a process ended without an outcome."""
    if exitcode == -signal.SIGKILL:
        return "its process was killed by SIGKILL, as happens when memory runs out; the same command continues it"
    how = f"was ended by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"ended with exit status {exitcode}"
    return f"its process {how}; the same command continues it"


def _leave(*_: object) -> None:
    raise SystemExit(143)


@contextmanager
def _handler(number: signal.Signals, action: Any) -> Iterator[None]:
    """Set a signal's handler for a while."""
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)


def _on_cluster(jobs: Sequence[Job], scheduler: str, board: Board) -> Ended:
    """Run jobs on the workers of a scheduler; yields each as it ends. What still runs when it is closed is cancelled.

    Raises:
        ReplicationError: Dask is not installed, or the scheduler does not answer.
    """
    try:
        from distributed import Client

        client = Client(scheduler, timeout=10)
    except ModuleNotFoundError:
        raise ReplicationError(
            f"the scheduler {scheduler} is one of Dask, which is not installed; run pip install -e '.[cluster]', or "
            "leave out the scheduler to train on this machine."
        ) from None
    except (OSError, ValueError) as error:
        raise ReplicationError(
            f"the scheduler {scheduler} does not answer ({error}); start it with 'dask scheduler', or leave it out to "
            "train on this machine."
        ) from None
    topic = f"runs-{uuid.uuid4().hex}"

    def receive(event: tuple[Any, tuple[str, Any]]) -> None:
        label, message = event[1]
        board.show(label, Progress(**message) if isinstance(message, dict) else message)

    with client:
        client.subscribe_topic(topic, receive)
        executor, root = client.get_executor(pure=False), str(Path.cwd())
        try:
            futures = {executor.submit(_task, pickle.dumps(job), job.label, topic, root): job for job in jobs}
            running = set(futures)
            while running:
                ended, running = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in ended:
                    died = future.exception()  # Dask's own, such as KilledWorker after three deaths
                    outcome = _Outcome(failed=f"{type(died).__name__}: {died}") if died else future.result()
                    yield futures[future], outcome
                board.tick()
        finally:
            executor.shutdown(wait=False)  # which cancels what runs


class _Cancelled(BaseException):
    """The client that submitted the job has cancelled it or has disconnected."""


def _task(payload: bytes, label: str, topic: str, root: str) -> _Outcome:
    """What a worker of a cluster does."""
    from distributed import get_worker

    worker: Any = get_worker()
    key = worker.get_current_task()

    def check() -> None:
        if key not in worker.state.tasks or worker.state.tasks[key].state == "cancelled":
            raise _Cancelled

    def send(message: Message) -> None:
        check()
        worker.log_event(topic, (label, asdict(message) if isinstance(message, Progress) else message))

    with _one_at_a_time:
        check()
        if not Path(root).is_dir():
            return _Outcome(
                failed=f"the worker {worker.address} does not see {root}; give all machines the same folder"
            )
        os.chdir(root)
        limit_threads()
        return _perform(payload, send)
