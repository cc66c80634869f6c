"""Jobs side by side end as if each were alone, whatever happens to others or their parent; the board they are on."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import loggers

from shared.errors import ReplicationError
from shared.training import progress
from shared.training.pool import Job, run_jobs
from shared.training.progress import Board, Progress
from tests.faults.processes import runs
from tests.refused import assert_refused
from tests.training.conftest import Alone
from tests.training.killable_run import run
from tests.training.killed import ROOT, assert_same_run, assert_same_seeds
from tests.training.pooled import SEEDS, end, fail, talk, threads, training_jobs


def program(folder: Path, settings: list[dict[str, Any]], workers: int = 2) -> subprocess.CompletedProcess[str]:
    """A parent of its own, in a process group of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.training.pooled", str(folder), str(workers), json.dumps(settings)],
        cwd=ROOT, text=True, capture_output=True, start_new_session=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_changes_no_digit(alone: Alone, tmp_path: Path, workers: int) -> None:
    assert run_jobs(training_jobs(tmp_path, SEEDS), workers=workers) == alone[1]
    assert_same_seeds(alone[0], tmp_path)


def test_a_killed_worker_is_named_the_others_finish_and_the_same_command_continues(
    alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = {"kill": "train:9", "number": signal.SIGKILL}
    with pytest.raises(ReplicationError) as caught:
        run_jobs(training_jobs(tmp_path, [SEEDS[0], SEEDS[1] | kill, SEEDS[2]]), workers=2)
    assert re.fullmatch(
        r"1 of 3 runs failed, the others are finished:\n  toy seed 1: its process was killed by SIGKILL, .* it",
        str(caught.value),
    )
    for n in (0, 2):
        assert_same_run(alone[0] / f"seed{n}", tmp_path / f"seed{n}")
    capsys.readouterr()
    assert run_jobs(training_jobs(tmp_path, SEEDS), workers=2) == alone[1]
    assert "run: continuing from update 6." in capsys.readouterr().out
    assert_same_seeds(alone[0], tmp_path)


def test_each_failed_seed_is_named_with_its_error_and_the_others_finish(
    alone: Alone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trains = training_jobs(tmp_path, [SEEDS[0] | {"poison": 4}, SEEDS[1]])
    jobs = [trains[0], Job("broken", fail, ("no such key",)), Job("status", end, (-3,)), trains[1]]
    with pytest.raises(ReplicationError) as caught:
        run_jobs(jobs, workers=2)
    head, *failed = str(caught.value).split("\n  ")
    assert head == "3 of 4 runs failed, the others are finished:"
    assert failed[0].startswith("toy seed 0: the gradient is not finite at update 4; lower")
    assert failed[1:] == [
        "broken: TypeError: no such key",
        "status: its process ended with exit status 3; the same command continues it",
    ]
    assert capsys.readouterr().out.count("Traceback") == 1  # of what no user is meant to see
    assert_same_run(alone[0] / "seed1", tmp_path / "seed1")


def test_of_a_single_job_that_fails_there_is_but_the_error() -> None:
    assert_refused(r"^only: give another value\.$", run_jobs, [Job("only", fail, ("give another value.",))], workers=4)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_polite_signal_stops_all_and_the_same_command_continues_all(
    alone: Alone, tmp_path: Path, number: int, status: int
) -> None:
    victim = "group" if number == signal.SIGINT else "parent"  # a terminal sends Ctrl-C to the whole group
    kill = {"kill": "train:9", "number": number, "victim": victim}
    stopped = program(tmp_path, [SEEDS[0] | kill, SEEDS[1], SEEDS[2]])
    assert stopped.returncode == status, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert [path for path in tmp_path.glob("*.pid") if runs(int(path.read_text()))] == []
    assert not (tmp_path / "seed2").exists()
    continued = program(tmp_path, SEEDS)
    assert continued.stdout.count("run: continuing from update 6.") >= 1
    assert json.loads(continued.stdout.splitlines()[-1]) == alone[1]
    assert_same_seeds(alone[0], tmp_path)


def test_no_worker_outlives_a_killed_parent(alone: Alone, tmp_path: Path) -> None:
    kill = {"kill": "train:9", "number": signal.SIGKILL, "victim": "parent"}
    assert program(tmp_path, [SEEDS[0] | kill, SEEDS[1] | {"updates": 10**6}]).returncode == -signal.SIGKILL
    workers = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    assert len(workers) >= 1
    limit = time.monotonic() + 30
    while any(map(runs, workers)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(map(runs, workers))
    assert run_jobs(training_jobs(tmp_path, SEEDS[:1]), workers=1) == alone[1][:1]
    assert_same_run(alone[0] / "seed0", tmp_path / "seed0")


def test_a_worker_has_one_thread_and_waits_passively() -> None:
    ((torch_threads, environment, large),) = run_jobs([Job("count", threads, ())], workers=1)
    assert torch_threads == 1
    assert environment == {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    assert large == []


def test_what_a_job_prints_comes_in_lines_and_results_in_the_order_of_the_jobs(
    capfd: pytest.CaptureFixture[str],
) -> None:
    jobs = [Job(f"job {n}", talk, (f"word {n}",)) for n in range(4)]
    assert run_jobs(jobs, workers=3) == ["WORD 0", "WORD 1", "WORD 2", "WORD 3"]
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == [*["no end of line"] * 4, "word 0", "word 1", "word 2", "word 3"]


def test_without_a_job_nothing_happens() -> None:
    assert run_jobs([], workers=2) == []


def test_the_parent_imports_neither_torch_nor_lightning() -> None:
    large = "{'torch', 'lightning', 'numpy', 'rich', 'distributed'}"
    code = f"import shared.training.pool, sys; print({large} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True)
    assert done.stdout == "set()\n"


def test_packages_hidden_from_lightning_can_be_imported_afterwards() -> None:
    code = (
        "import shared.training.preload, importlib.metadata, torchvision, scipy, matplotlib;"
        "print(importlib.metadata.version('torchvision') == torchvision.__version__.split('+')[0])"
    )
    done = subprocess.run([sys.executable, "-c", f"import shared; {code}"], cwd=ROOT, text=True, capture_output=True)
    assert done.stdout == "True\n", done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(updates: int, **more: float) -> Progress:
    return Progress(updates=updates, total=1_000, loss=0.5, tokens_per_second=1_234.0, validation=more)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The only element is the time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_a_minute_for_all_jobs(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Board(4) as board:
        for label in ("first", "second", "third"):
            board.start(label)
        board.end("first")
        board.show("second", at(100))
        clock[0] = 130.0
        board.show("second", at(400, loss=0.25, error=0.125))
        board.tick()
        assert capsys.readouterr().out == ""
        clock[0] = 160.0
        board.tick()
        board.tick()
        assert capsys.readouterr().out == (
            "1 of 4 runs ended, 0:04:20 left; second at update 400 of 1,000, loss 0.500  valid loss 0.250  "
            "valid error 12.5%  1,234 tokens/s, 0:01:00 left; third starts\n"
        )
        clock[0] = 220.0
        board.tick()
        assert capsys.readouterr().out.startswith("1 of 4 runs ended")


def test_a_continued_run_has_no_speed_before_its_second_report(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Board(1, every=0.0) as board:
        board.show("run", at(900))
        assert capsys.readouterr().out.endswith("at update 900 of 1,000, loss 0.500  1,234 tokens/s\n")
        clock[0] += 10
        board.show("run", at(950))
        assert capsys.readouterr().out.endswith("1,234 tokens/s, 0:00:10 left\n")


def test_on_a_terminal_each_running_job_has_a_bar_and_lines_stand_above(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("rich._console", None)  # one that another test made remembers that it had no terminal
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    with Board(3, title="stage 2 of 9") as board:
        board.start("second")
        board.end("third")
        board.show("first", at(200))
        clock[0] += 10
        board.show("first", at(250, bleu=21.34))
        board.line("a line [of] 3 words")
        board.tick()
    shown = terminal.getvalue()
    assert "a line [of] 3 words\n" in shown
    last = shown[shown.rindex("stage 2 of 9") :]
    assert "1 of 3 runs ended" in last
    assert "starts" in last
    assert "at update 250 of 1,000, loss 0.500  valid BLEU 21.3  1,234 tokens/s, 0:02:30 left" in last


def test_a_logger_gets_every_row_of_the_learning_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "find_spec", {"tensorboard": True}.get)
    assert_refused("'dvclive' is not installed; run 'pip install", progress.logging_to("dvclive", "seed1").__enter__)
    monkeypatch.setattr(loggers, "TensorBoardLogger", loggers.CSVLogger)
    with progress.logging_to("tensorboard", "seed1"):
        run("run", updates=24)
    with Path("runs/logs/seed1/metrics.csv").open() as logged, Path("run/curve.csv").open() as curve:
        found = {(row["step"], *each) for row in csv.DictReader(logged) for each in row.items() if "/" in each[0]}
        rows = {(row[0], "/".join(row[1:3]), row[3]) for row in [*csv.reader(curve)][1:]}
    assert {(step, name, f"{float(value):.6g}") for step, name, value in found if value} == rows
    assert {name for _, name, _ in rows} >= {"train/loss", "train/learning_rate", "valid/loss"}
