"""Jobs side by side, each in a process of its own, so that one that fails or is killed harms no other.

Here, processes are forked from a server that has imported torch and Lightning once; this module imports neither. A job
has the threads that it is given, one by default, however many cores and other jobs there are: so the number of workers
does not change the results. A worker ends when the process that started it ends, for whatever reason.

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
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from io import TextIOBase
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.training.disk import disk_sentence
from shared.training.progress import Board, Progress

PRELOAD = ("shared.training.preload",)

Message = Progress | str
Send = Callable[[Message], None]

_one_at_a_time = threading.Lock()
"""Here, what starts and joins processes, as that looks at all others too; on a cluster, the jobs of one worker, which
share its random generator and its folder."""


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


Submit = Callable[[Job], Future[Any]]


def run_jobs(
    jobs: Sequence[Job], *, workers: int, scheduler: str | None = None, threads: int = 1,
    preload: Sequence[str] = PRELOAD, title: str = "",
) -> list[Any]:  # fmt: skip
    """Run all jobs; returns their results in the order of the jobs.

    Args:
        jobs: to be run, with different labels.
        workers: how many run at once; with a scheduler that is for its cluster to decide.
        scheduler: the address of a Dask scheduler, ``tcp://host:port``, whose workers see the same folder.
        threads: of each job.
        preload: modules that are imported once for all workers of this process; ``()`` for jobs without training.
        title: what the jobs are a part of, for who watches.

    Raises:
        ReplicationError: jobs have failed, after all others have ended; it names each of them and its error.
        KeyboardInterrupt, SystemExit: after Ctrl-C and SIGTERM (143), when all workers have ended.
    """
    with Board(len(jobs), title=title) as board, _handler(signal.SIGTERM, _leave):
        executor = _cluster(scheduler, threads, board) if scheduler else _processes(workers, threads, preload, board)
        with executor as submit:
            futures = {submit(job): job for job in jobs}
            running = set(futures)
            while running:
                ended, running = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in ended:
                    if reason := _reason(future):
                        board.line(f"{futures[future].label} failed: {reason}")
                    board.end(futures[future].label)
                board.tick()
    reasons = [f"{job.label}: {reason}" for future, job in futures.items() if (reason := _reason(future))]
    if reasons:
        head = f"{len(reasons)} of {len(jobs)} runs failed, the others are finished:"
        raise ReplicationError(reasons[0] if len(jobs) == 1 else "\n  ".join([head, *reasons]))
    return [future.result() for future in futures]


def limit_threads(threads: int) -> None:
    """Give this process so many threads for arithmetic, also if it imports torch later."""
    os.environ.update(_thread_settings(threads))
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


@contextmanager
def _processes(workers: int, threads: int, preload: Sequence[str], board: Board) -> Iterator[Submit]:
    """Runs jobs in processes of this machine, for each of which a thread waits."""
    multiprocessing.get_context("forkserver").set_forkserver_preload([*preload])
    os.environ.update(_thread_settings(threads))  # for the server, which imports what reads them
    with _handler(signal.SIGINT, signal.SIG_IGN):
        forkserver.ensure_running()
    running, futures = set[BaseProcess](), list[Future[Any]]()

    def submit(job: Job) -> Future[Any]:
        futures.append(pool.submit(_run_in_process, job, threads, board, running))
        return futures[-1]

    with ThreadPoolExecutor(max(1, workers)) as pool:
        try:
            yield submit
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in futures):  # after Ctrl-C; a job may be killed at any moment
                for process in [*running]:
                    process.kill()
                time.sleep(0.02)


def _run_in_process(job: Job, threads: int, board: Board, running: set[BaseProcess]) -> Any:
    """Run a job in a process of its own.

    Raises:
        ReplicationError: it failed, or the process was killed.
    """
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(pickle.dumps(job), sender, threads), name=job.label, daemon=True)
    with _one_at_a_time:
        process.start()
    running.add(process)
    sender.close()
    board.start(job.label)
    try:
        while not isinstance(message := receiver.recv(), _Outcome):
            _show(board, job.label, message)
    except (EOFError, OSError):
        message = None
    with _one_at_a_time:
        process.join()
    running.remove(process)
    receiver.close()
    if message is None:
        raise ReplicationError(_ending(process.exitcode or 0))
    if message.failed:
        raise ReplicationError(message.failed)
    return message.value


@dataclass(frozen=True)
class _Outcome:
    """What a job returned, or why it failed."""

    value: Any = None
    failed: str = ""


def _work(payload: bytes, connection: Connection, threads: int) -> None:
    """What a process of this machine does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(threads)

    def send(message: Message) -> None:
        # Progress that finds the pipe full is dropped: training does not wait for a stopped terminal.
        if isinstance(message, str) or select.select([], [connection], [], 0)[1]:
            connection.send(message)

    try:
        connection.send(_Outcome(_perform(payload, send)))
    except ReplicationError as error:
        connection.send(_Outcome(failed=str(error)))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by SIGKILL; killing a run at any moment is safe."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _perform(payload: bytes, send: Send) -> Any:
    """Run a pickled job in this process; what it prints is sent in lines.

    Raises:
        ReplicationError: it failed; of what no user is meant to see, the traceback is sent too.
    """
    try:
        job: Job = pickle.loads(payload)
        with closing(_Lines(send)) as lines, redirect_stdout(lines):
            return job.function(*job.arguments, report=send)
    except ReplicationError:
        raise
    except Exception as error:
        if (sentence := disk_sentence(error)) is None:
            send(traceback.format_exc())
        raise ReplicationError(sentence or f"{type(error).__name__}: {error}") from None


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


def _show(board: Board, label: str, message: Message) -> None:
    if isinstance(message, Progress):
        board.update(label, message)
    else:
        board.line(message)


def _reason(future: Future[Any]) -> str:
    """Why a job failed; nothing if it did not. Dask's own errors are such as KilledWorker, after three deaths."""
    error = future.exception()
    if error is None or isinstance(error, ReplicationError):
        return str(error or "")
    return f"{type(error).__name__}: {error}"


def _ending(exitcode: int) -> str:
    """The reason why a process ended without an outcome."""
    if exitcode == -signal.SIGKILL:
        return "its process was killed by SIGKILL, as happens when memory runs out; the same command continues it"
    how = f"was ended by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"ended with exit status {exitcode}"
    return f"its process {how}; the same command continues it"


def _thread_settings(threads: int) -> dict[str, str]:
    """Environment variables that OpenMP, MKL and OpenBLAS read when they are loaded; waiting threads do not spin."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads)) | {"OMP_WAIT_POLICY": "PASSIVE"}


def _leave(*_: object) -> None:
    raise SystemExit(143)


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


@contextmanager
def _cluster(scheduler: str, threads: int, board: Board) -> Iterator[Submit]:
    """Runs jobs on the workers of a scheduler.

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
        _show(board, label, Progress(**message) if isinstance(message, dict) else message)

    with client:
        client.subscribe_topic(topic, receive)
        executor = client.get_executor(pure=False)
        try:
            yield lambda job: executor.submit(_task, pickle.dumps(job), job.label, topic, threads, str(Path.cwd()))
        finally:
            executor.shutdown(wait=False)  # which cancels what runs


class _Cancelled(BaseException):
    """The client that submitted the job has cancelled it or has disconnected."""


def _task(payload: bytes, label: str, topic: str, threads: int, root: str) -> Any:
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
            raise ReplicationError(
                f"the worker {worker.address} does not see {root}; give all machines the same folder"
            )
        os.chdir(root)
        limit_threads(threads)
        return _perform(payload, send)
