"""The real DVC is killed, alone or with what it has started: nothing trains on, no lock stays, no byte is another."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
import yaml

from replicate import remove_broken_locks
from shared.pipeline.code import CACHE
from tests.faults.killing import AGAIN, Undisturbed
from tests.faults.marks import marks
from tests.faults.processes import Started, inside, remaining
from tests.pipeline.scratch import ROOT
from tests.pipeline.toys import write_yaml

pytestmark = pytest.mark.slow
KIND = "sequences"
FEW = [(signal.SIGKILL, "dvc"), (signal.SIGINT, "group")]
MORE = [(signal.SIGTERM, "dvc"), (signal.SIGINT, "dvc"), (signal.SIGKILL, "group"), (signal.SIGTERM, "group")]


class Pipeline:
    """The train stage of a toy paper under DVC, as the pipeline of all papers has it."""

    def __init__(self, paper: Undisturbed) -> None:
        self.paper, self.project = paper, paper.project
        paper.reach("train")
        before = marks(self.project)
        template = yaml.safe_load((ROOT / "shared/pipeline/templates/pipeline.yaml").read_text())
        home = f"replications/{paper.name}/smoke"
        write_yaml(self.project / home / "dvc.yaml", {"stages": {"train": template["stages"]["train"]}})
        write_yaml(self.project / f"runs/smoke/{paper.name}/code/train.json", {})
        shutil.copytree(ROOT / ".dvc", self.project / ".dvc", ignore=shutil.ignore_patterns("tmp", "cache", "*.local"))
        shutil.copy(ROOT / ".gitignore", self.project)
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)
        self.added = {path for path, mark in marks(self.project).items() if mark != before.get(path)}
        self.target = f"{home}/dvc.yaml:train@long"

    def start(self, name: str) -> Started:
        """Start ``dvc repro`` of the stage alone; what goes before it was made without DVC."""
        command = [sys.executable, "-m", "dvc", "repro", "--single-item", self.target]
        return self.paper.commands.program(command, self.project, self.paper.output.with_suffix(f".{name}"))

    def when_it_trains(self, started: Started) -> None:
        """Wait until there is a worker beside the server that forks workers."""
        while sum("multiprocessing.forkserver" in command for command in inside(self.project).values()) < 2:
            assert started.wait(0.01) is None, started.printed()

    def differences(self) -> list[str]:
        known = {*self.added, str(CACHE)}  # what a check has looked up once, and would look up again
        return [line for line in self.paper.differences("train") if line.partition(" ")[0] not in known]


@pytest.fixture
def pipeline(undisturbed: Callable[[str], Undisturbed]) -> Pipeline:
    return Pipeline(undisturbed(KIND))


@pytest.mark.parametrize(("number", "target"), [*FEW, *MORE])
def test_a_killed_dvc_leaves_no_process_and_no_lock(number, target, pipeline, request):
    if (number, target) in MORE and not request.config.getoption("--kills", default=0):
        pytest.skip("one of many kills, made with --kills")
    seed = request.config.getoption("--seed", default=7)
    started = pipeline.start(f"{number.name}-{target}")
    pipeline.when_it_trains(started)
    time.sleep(random.Random(f"{seed} {number} {target}").random() * pipeline.paper.seconds["train"])
    (os.killpg if target == "group" else os.kill)(started.pid, number)
    status = started.end()
    left = remaining(pipeline.project)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, left
    for number_of_start in range(AGAIN):
        if status == 0:
            break
        remove_broken_locks(pipeline.project / ".dvc")
        started = pipeline.start(f"{number.name}-{target}-again{number_of_start}")
        status = started.end()
    assert status == 0, started.printed()
    assert pipeline.differences() == []


def test_a_second_dvc_says_what_it_waits_for(pipeline):
    first = pipeline.start("first")
    pipeline.when_it_trains(first)
    trains = {pid: command for pid, command in inside(pipeline.project).items() if "shared.pipeline train" in command}
    (stage,) = (pid for pid, command in trains.items() if " -c " not in command)  # which is the shell around it
    os.kill(stage, signal.SIGSTOP)
    second = pipeline.start("second")
    status = second.end()
    os.kill(stage, signal.SIGCONT)
    assert status != 0
    assert f"(PID {first.pid})" in second.printed(), second.printed()
    assert "try again" in second.printed()
    assert first.end() == 0, first.printed()
    assert pipeline.differences() == []
