"""A cluster as CONTRIBUTING.md starts it: a scheduler and workers that are programs of their own and meet over TCP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shared.training.pool import run_jobs
from tests.training.conftest import SEEDS, Alone, assert_same_runs
from tests.training.pooled import training_jobs

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # for what Dask does when its workers are killed
ROOT = Path(__file__).resolve().parents[2]
LIMIT = 240
"""Seconds after which a cluster that has not come up never will."""


class Cluster:
    """A scheduler and two workers.

    Attributes:
        address: of the scheduler.
        workers: the processes of the workers, which nobody starts again when they end.
        said: the file of what all of them print.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.said = f"tcp://127.0.0.1:{port}", folder / "said"
        self._folder, self._stack = folder, stack
        self._start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        worker = [self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers = [self._start("worker", *worker, "--local-directory", str(folder / name)) for name in "ab"]
        with distributed.Client(self.address, timeout=LIMIT) as client:
            client.wait_for_workers(2, timeout=LIMIT)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        with self.said.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command], cwd=self._folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=said,
            )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def test_the_run_of_a_killed_worker_continues_on_the_other_to_the_same_bits(
    cluster: Cluster, alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = {"kill": "train:9", "number": signal.SIGKILL, "mark": str(tmp_path / "killed")}
    jobs = training_jobs(tmp_path, [SEEDS[0] | kill, *SEEDS[1:]])
    assert run_jobs(jobs, workers=1, scheduler=cluster.address) == alone[1], cluster.said.read_text()
    ended = [worker.poll() for worker in cluster.workers]
    assert sorted(ended, key=str) == [-signal.SIGKILL, None]
    survivor = cluster.workers[ended.index(None)].pid
    assert (tmp_path / "seed0.pid").read_text() == str(survivor)  # the other has written its own number before
    assert "run: continuing from update 6." in capsys.readouterr().out
    assert_same_runs(alone[0], tmp_path)
