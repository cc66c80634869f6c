"""A stage does not outlive the DVC that started it, also where a shell is between; other parents are left alone."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.processes import runs
from tests.pipeline.scratch import ROOT

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
