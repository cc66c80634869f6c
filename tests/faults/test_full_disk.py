"""A disk that is full or cannot be written, two processes that would write one file, a DVC that ends."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tests.faults.killing import Undisturbed
from tests.faults.processes import Started, runs, workers
from tests.pipeline.scratch import ROOT
from tests.pipeline.toys import BREAKS, EVERY, write_yaml

KIND, SIZE = "language", 4 << 20
STAGES = ["fetch", "prepare", "train", "evaluate", "report"]
Papers = Callable[[str], Undisturbed]


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[None]:
    """Mount a disk of so many bytes; skips the test where that cannot be done."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk, and not everywhere")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def disk(undisturbed: Papers) -> Iterator[Undisturbed]:
    """A paper whose project lies on a small disk of its own."""
    paper = undisturbed(KIND)
    paper.reach("report")  # all stages are known before
    shutil.rmtree(paper.project)
    paper.project.mkdir()
    with small_disk(paper.project, SIZE):
        yield paper


def put(paper: Undisturbed, when: str) -> None:
    """Copy a state of the project to the disk."""
    for path in paper.project.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(paper.copy(when), paper.project, symlinks=True, dirs_exist_ok=True)


def fill(folder: Path, left: int = 0) -> Path:
    """Fill a disk up to so many bytes."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_bsize
        file.write(bytes(max(0, free - left)))
    return filler


def begun(paper: Undisturbed, put_back: Callable[[], None]) -> dict[Path, bytes]:
    """Train until both seeds have a checkpoint, of which one is then killed; returns what the checkpoints are."""
    put_back()
    write_yaml(paper.project / BREAKS, {"how": "killed", "seed": 3, "batch": EVERY + 5})
    paper.run(paper.command("train"), status=2)
    (paper.project / BREAKS).unlink()
    checkpoints = paper.project / "runs" / "smoke" / paper.name / "long" / "train" / "seed3" / "checkpoints"
    kept = {path: path.read_bytes() for path in checkpoints.iterdir()}
    assert {path.name for path in kept} == {"best.ckpt", "last.ckpt"}
    return kept


def assert_one_sentence(said: str, *words: str) -> None:
    """The error is one sentence, or where several runs have failed, one for each below a line that counts them."""
    assert "Traceback" not in said, said
    _, error = said.split("error: ")
    *head, last = error.splitlines()
    assert "runs failed" in head[0] if head else True, error
    for sentence in (*head[1:], last):
        assert all(word in sentence for word in words), sentence
        assert sentence.endswith("then the same command continues."), sentence


def assert_intact(kept: dict[Path, bytes]) -> None:
    """No checkpoint has become worse: each can be read, and is of the same update or a later one."""
    for path, before in kept.items():
        if path.read_bytes() != before:
            assert torch.load(path, weights_only=True)["global_step"] > EVERY
    assert {path.name for path in next(iter(kept)).parent.iterdir()} == {"best.ckpt", "last.ckpt"}


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_is_one_sentence_and_the_same_command_continues(stage, disk):
    put(disk, f"before {stage}")
    filler = fill(disk.project)
    assert_one_sentence(disk.run(disk.command(stage), status=2), "is full", "No space left on device")
    filler.unlink()
    disk.run(disk.command(stage))
    assert disk.differences(stage) == []


@pytest.mark.parametrize("left", [0.5, 0.9])
def test_a_disk_that_becomes_full_while_training_leaves_the_last_good_checkpoint(left, disk):
    kept = begun(disk, lambda: put(disk, "before train"))
    filler = fill(disk.project, int(left * max(map(len, kept.values()))))
    assert_one_sentence(disk.run(disk.command("train"), status=2), "is full", "No space left on device")
    assert_intact(kept)
    filler.unlink()
    assert f"continuing from update {EVERY}" in disk.run(disk.command("train"))
    assert disk.differences("train") == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_folder_that_cannot_be_written_is_one_sentence(stage, disk):
    put(disk, f"before {stage}")
    remount = ["mount", "-o", "remount,{}", str(disk.project)]
    subprocess.run([word.format("ro") for word in remount], check=True)
    said = disk.run(disk.command(stage), status=2)
    subprocess.run([word.format("rw") for word in remount], check=True)
    assert_one_sentence(said, "cannot be written", "Read-only file system")
    disk.run(disk.command(stage))
    assert disk.differences(stage) == []


def test_a_checkpoint_that_may_not_become_so_large_leaves_the_last_good_one(undisturbed):
    paper = undisturbed(KIND)
    paper.reach("train")
    kept = begun(paper, lambda: paper.restore("before train"))
    said = paper.run(paper.command("train"), status=2, largest=4096)
    assert_one_sentence(said, "is full", "File too large")
    assert_intact(kept)
    assert f"continuing from update {EVERY}" in paper.run(paper.command("train"))
    assert paper.differences("train") == []


def test_training_needs_no_room_on_the_disk_of_temporary_files(undisturbed, tmp_path):
    """A checkpoint that was written there would be copied, not moved, over the last one."""
    paper = undisturbed(KIND)
    paper.reach("train")
    with small_disk(tmp_path, 4 << 10):
        fill(tmp_path)
        paper.run(paper.command("train"), temporary=tmp_path)
    assert paper.differences("train") == []


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
