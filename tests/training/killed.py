"""Runs that may end in a kill -9, and what is asked of them afterwards."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from shared.training.checkpoints import load_checkpoint
from tests.faults.marks import differences, marks

ROOT = Path(__file__).resolve().parents[2]
SERVER = "import shared.training.preload; from tests.training.killable_run import main; main()"
TIMES = ("wall_seconds", "processor_seconds", "tokens_per_second")


@dataclass(frozen=True)
class Outcome:
    """How a run of the server's ended: exit code or minus a signal's number, and what was printed."""

    status: int
    output: str

    @property
    def record(self) -> dict[str, Any]:
        """What training measured, times left out."""
        assert self.status == 0, self.output
        record = json.loads(self.output.splitlines()[-1])
        return {key: value for key, value in record.items() if key not in TIMES}


class Server:
    """``killable_run.py``: starts runs that may end in a kill -9."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], cwd=ROOT, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, folder: Path, **settings: Any) -> Outcome:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"folder": str(folder), **settings}) + "\n")
        self.process.stdin.flush()
        return Outcome(**json.loads(self.process.stdout.readline()))


def last(folder: Path) -> dict[str, Any]:
    return load_checkpoint(folder / "checkpoints" / "last.ckpt")


def weights(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = load_checkpoint(folder / "checkpoints" / f"{name}.ckpt")["state_dict"]
    return state


def unequal(one: Path, other: Path) -> list[str]:
    """The weights that differ."""
    first, second = weights(one), weights(other)
    return [name for name in first if not torch.equal(first[name], second[name])]


def assert_same_run(one: Path, other: Path) -> None:
    """All files hold the same, but for the time that it took; the curve has each row once."""
    assert differences(marks(one), marks(other)) == []
    rows = [tuple(row[:3]) for row in csv.reader((one / "curve.csv").read_text().splitlines())]
    assert len(set(rows)) == len(rows) > 1


def assert_same_seeds(one: Path, other: Path) -> None:
    """Both folders hold the same runs."""
    for seed in one.glob("seed?"):
        assert_same_run(seed, other / seed.name)


def validated(folder: Path, metric: str = "loss") -> dict[int, float]:
    with (folder / "curve.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["split"], row["metric"]) == ("valid", metric)]
    return {int(row["step"]): float(row["value"]) for row in rows}
