"""What the board shows of running jobs, and loggers of their curves."""

import csv
import io
import sys
import time
from pathlib import Path

import pytest
from lightning.pytorch import loggers

from shared.training import progress
from shared.training.progress import Board, Progress
from tests.refused import assert_refused
from tests.training.killable_run import run


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
