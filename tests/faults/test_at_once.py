"""What holds of two processes that would write the same files, and of a stage and the DVC that started it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faults.killing import Undisturbed
from tests.faults.processes import Started, runs, workers
from tests.pipeline.scratch import ROOT

KIND = "language"
Papers = Callable[[str], Undisturbed]


@contextmanager
def held(paper: Undisturbed, stage: str) -> Iterator[Started]:
    """Stop a stage as soon as it has workers, or holds its lock; let it end afterwards."""
    locks = paper.project / "runs" / ".locks"
    started = paper.start(paper.command(stage))
    while not (workers(started.pid) if stage in ("train", "evaluate") else list(locks.glob(f"*{paper.name}*"))):
        assert started.wait(0.002) is None, started.printed()
    os.kill(started.pid, signal.SIGSTOP)
    try:
        yield started
    finally:
        os.kill(started.pid, signal.SIGCONT)
    assert started.end() == 0, started.printed()


@pytest.mark.parametrize(("first", "second"), [("train", "train"), ("train", "evaluate"), ("evaluate", "train")])
def test_a_second_process_that_would_make_the_same_runs_is_refused(first, second, undisturbed):
    paper = undisturbed(KIND)
    paper.reach(first)
    with held(paper, first) as started:
        said = paper.run(paper.command(second), status=2)
        assert said.startswith(f"error: the runs of {paper.name}.long at smoke scale are being made by process ")
        assert f"process {started.pid} on {os.uname().nodename};" in said
    assert paper.differences(first) == []


def test_who_holds_a_lock_and_is_killed_gives_it_back(undisturbed):
    paper = undisturbed(KIND)
    paper.reach("train")
    started = paper.start(paper.command("train"))
    while not workers(started.pid):
        assert started.wait(0.002) is None, started.printed()
    os.kill(started.pid, signal.SIGKILL)
    assert started.end() == -signal.SIGKILL
    paper.run(paper.command("train"))
    assert paper.differences("train") == []


def test_two_that_fetch_the_same_both_get_it(undisturbed):
    paper = undisturbed(KIND)
    for pause in (0.0, 0.01, 0.02, 0.04):
        paper.reach("fetch")
        both = [paper.start(paper.command("fetch"))]
        time.sleep(pause)
        both.append(paper.start(paper.command("fetch")))
        assert [started.end() for started in both] == [0, 0], [started.printed() for started in both]
        assert paper.differences("fetch") == []


@pytest.mark.parametrize("stage", ["prepare", "report"])
def test_two_that_make_the_same_do_not_spoil_it(stage, undisturbed):
    paper = undisturbed(KIND)
    paper.reach(stage)
    both = [paper.start(paper.command(stage)) for _ in range(2)]
    statuses = sorted(started.end() for started in both)
    assert statuses in ([0, 0], [0, 2]), [started.printed() for started in both]
    if 2 in statuses:
        said = "".join(started.printed() for started in both)
        assert f"of {paper.command(stage)[1]} at smoke scale are being made by process" in said
        assert "Traceback" not in said
    assert paper.differences(stage) == []


STAGE = """
import os, time
from shared.pipeline.__main__ import end_with_dvc
end_with_dvc()
print(os.getpid(), flush=True)
time.sleep(60)
"""
DVC = "import subprocess, sys; subprocess.run(sys.argv[1:])"


@pytest.mark.parametrize("shell", ["sh", "bash", None])
@pytest.mark.parametrize("stage", ["train@long", None])
def test_a_stage_ends_with_its_dvc_alone(shell, stage, tmp_path):
    if shell and shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    program = tmp_path / "stage.py"
    program.write_text(STAGE)
    command = [shell, "-c", f"{sys.executable} {program}"] if shell else [sys.executable, str(program)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | ({"DVC_STAGE": stage} if stage else {})
    started = [sys.executable, "-c", DVC, *command]
    with subprocess.Popen(started, env=environment, stdout=subprocess.PIPE, text=True) as dvc:
        assert dvc.stdout is not None
        pid = int(dvc.stdout.readline())
        time.sleep(1.2)
        assert runs(pid)
        dvc.kill()
        dvc.wait()
        end = time.monotonic() + (30 if stage else 1.5)
        while runs(pid) and time.monotonic() < end:
            time.sleep(0.05)
        assert runs(pid) == (stage is None)
        if stage is None:
            os.kill(pid, signal.SIGKILL)
