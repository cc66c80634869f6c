"""Jobs on the workers of a Dask cluster that share a folder with this process.

Start the workers in the project's folder with ``python -m distributed.cli.dask_worker tcp://host:port --nthreads 1``.
If one dies, the scheduler gives its job to another, which continues from the last checkpoint to the same bits.
"""

from __future__ import annotations

import os
import pickle
import queue
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.training.pool import Failed, Job, Message, Outcome, limit_threads, perform, show
from shared.training.progress import Board, Progress

_one_at_a_time = threading.Lock()
"""Jobs of one process share its random generator and its folder, so they take turns."""


class _Cancelled(BaseException):
    """The client that submitted the job has cancelled it or has disconnected."""


def run_on_cluster(jobs: Sequence[Job], scheduler: str, threads: int, board: Board) -> list[Outcome]:
    """Run jobs on the workers of a scheduler; returns their outcomes in the order of the jobs.

    Raises:
        ReplicationError: Dask is not installed, or the scheduler does not answer.
    """
    client, inbox = _client(scheduler), queue.SimpleQueue[tuple[int, Any]]()
    outcomes: dict[int, Outcome] = {}
    with client:
        topic = f"runs-{uuid.uuid4().hex}"
        client.subscribe_topic(topic, lambda event: inbox.put(event[1]))
        futures = [
            client.submit(_task, pickle.dumps(job), number, topic, threads, str(Path.cwd()), key=f"{topic}-{number}")
            for number, job in enumerate(jobs)
        ]
        for number, future in enumerate(futures):
            future.add_done_callback(lambda future, number=number: inbox.put((number, future)))
        try:
            while len(outcomes) < len(jobs):
                board.tick()
                try:
                    number, message = inbox.get(timeout=1.0)
                except queue.Empty:
                    continue
                label = jobs[number].label
                if message is futures[number]:
                    outcomes[number] = outcome = _outcome(message)
                    if isinstance(outcome, Failed):
                        board.line(f"{label} failed: {outcome.reason}")
                    board.end(label)
                else:
                    show(board, label, Progress(**message) if isinstance(message, dict) else message)
        finally:
            client.cancel([future for future in futures if not future.done()], force=True)
    return [outcomes[number] for number in range(len(jobs))]


def _client(scheduler: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ReplicationError(
            f"the scheduler {scheduler} is one of Dask, which is not installed; run pip install -e '.[cluster]', or "
            "leave out the scheduler to train on this machine."
        ) from None
    try:
        return Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ReplicationError(
            f"the scheduler {scheduler} does not answer ({error}); start it with 'dask scheduler', or leave it out to "
            "train on this machine."
        ) from None


def _outcome(future: Any) -> Outcome:
    """The outcome in a future; an error of the scheduler, such as KilledWorker after three deaths, becomes `Failed`."""
    error = future.exception()
    return Failed(f"{type(error).__name__}: {error}") if error is not None else future.result()


def _task(payload: bytes, number: int, topic: str, threads: int, root: str) -> Outcome:
    """Run a job in a worker's process."""
    from distributed import get_worker

    worker: Any = get_worker()
    stopped = _stop_signal(worker)

    def send(message: Message) -> None:
        if stopped():
            raise _Cancelled
        worker.log_event(topic, (number, asdict(message) if isinstance(message, Progress) else message))

    with _one_at_a_time:
        if stopped():
            raise _Cancelled
        if not Path(root).is_dir():
            return Failed(f"the worker {worker.address} does not see {root}; give all machines the same folder")
        os.chdir(root)
        limit_threads(threads)
        return perform(payload, send)


def _stop_signal(worker: Any) -> Callable[[], bool]:
    """Tells whether the current task was cancelled, which is also what happens when its client is gone."""
    key = worker.get_current_task()
    return lambda: key not in worker.state.tasks or worker.state.tasks[key].state == "cancelled"
