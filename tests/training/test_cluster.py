"""Jobs on a Dask cluster end as they do here, also where a worker dies or whoever asked for them goes away."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import ReplicationError
from shared.training.pool import Job, run_jobs
from tests.training.conftest import SEEDS, Alone, assert_same_runs
from tests.training.killed import assert_same_run
from tests.training.pooled import fail, report_for_ever, talk, threads, training_jobs

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # for what Dask does when its workers are killed


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Two workers, each with more threads than it may use for runs at once."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_trains_to_the_same_bits(
    scheduler: str, alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_jobs(training_jobs(tmp_path, SEEDS), workers=1, scheduler=scheduler) == alone[1]
    assert_same_runs(alone[0], tmp_path)
    assert capsys.readouterr().out.count("run: 18 updates in") == len(SEEDS)


def test_the_run_of_a_killed_worker_continues_elsewhere_to_the_same_bits(
    scheduler: str, alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = {"kill": "train:9", "number": signal.SIGKILL, "mark": str(tmp_path / "killed")}
    jobs = training_jobs(tmp_path, [SEEDS[0] | kill, *SEEDS[1:]])
    assert run_jobs(jobs, workers=1, scheduler=scheduler) == alone[1]
    assert (tmp_path / "killed").exists()
    assert "run: continuing from update 6." in capsys.readouterr().out
    assert_same_runs(alone[0], tmp_path)


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
