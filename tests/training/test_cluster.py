"""Jobs on a Dask cluster, started as CONTRIBUTING.md says, end as they do here, whatever dies or goes away."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shared.errors import ReplicationError
from shared.training.pool import Job, run_jobs
from tests.training.conftest import Alone
from tests.training.killed import ROOT, assert_same_run, assert_same_seeds
from tests.training.pooled import SEEDS, fail, report_for_ever, talk, threads, training_jobs

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # for what Dask does when its workers are killed
LIMIT = 240
"""Seconds after which a cluster that has not come up never will."""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers, programs of their own in another folder."""
    folder = tmp_path_factory.mktemp("cluster")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    with ExitStack() as stack:
        for command in (
            ["scheduler", "--port", str(port), *here],
            ["worker", address, "--nthreads", "1", "--nworkers", "2", "--local-directory", str(folder), *here],
        ):
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command], cwd=folder, stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
        with distributed.Client(address, timeout=LIMIT) as client:
            client.wait_for_workers(2, timeout=LIMIT)
        yield address


def test_a_cluster_trains_to_the_same_bits_also_where_a_worker_is_killed(
    scheduler: str, alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = {"kill": "train:9", "number": signal.SIGKILL, "mark": str(tmp_path / "killed")}
    jobs = training_jobs(tmp_path, [SEEDS[0] | kill, *SEEDS[1:]])
    assert run_jobs(jobs, workers=1, scheduler=scheduler) == alone[1]
    assert (tmp_path / "killed").exists()
    said = capsys.readouterr().out
    assert "run: continuing from update 6." in said
    assert said.count("run: 18 updates in") == len(SEEDS)
    assert_same_seeds(alone[0], tmp_path)


def test_a_failed_job_is_named_and_the_others_finish(scheduler: str, alone: Alone, tmp_path: Path) -> None:
    jobs = [Job("broken", fail, ("no such key",)), *training_jobs(tmp_path, SEEDS[:1])]
    with pytest.raises(ReplicationError, match=r"^1 of 2 runs failed.*\n  broken: TypeError: no such key$"):
        run_jobs(jobs, workers=1, scheduler=scheduler)
    assert_same_run(alone[0] / "seed0", tmp_path / "seed0")


def test_ctrl_c_stops_what_runs_on_the_cluster(scheduler: str, tmp_path: Path) -> None:
    file = tmp_path / "state"

    def interrupt() -> None:
        while not file.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([Job("endless", report_for_ever, (str(file),))], workers=1, scheduler=scheduler)
    time.sleep(2.0)
    file.unlink()
    time.sleep(1.0)
    assert not file.exists()


def test_a_job_on_a_cluster_has_one_thread(scheduler: str) -> None:
    ((number, environment, _),) = run_jobs([Job("count", threads, ())], workers=1, scheduler=scheduler)
    assert (number, environment["OMP_NUM_THREADS"]) == (1, "1")


def test_a_scheduler_that_does_not_answer_is_named() -> None:
    with pytest.raises(ReplicationError, match="the scheduler nonsense://x does not answer"):
        run_jobs([Job("one", talk, ("word",))], workers=1, scheduler="nonsense://x")
