"""Runs that may end in a kill -9, and what is asked of them afterwards."""

from __future__ import annotations

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

ROOT = Path(__file__).resolve().parents[2]
# Lightning imports omegaconf when it writes its first checkpoint, which would be once in every run.
SERVER = "import shared.training.preload, omegaconf; from tests.training.killable_run import main; main()"
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


def weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = load_checkpoint(folder / "checkpoints" / f"{name}.ckpt")["state_dict"]
    return state


def assert_same_run(one: Path, other: Path, *more: str) -> None:
    """Both checkpoints, and those named besides, hold the same bits, and the curves the same rows, each once."""
    for name in ("best", "last", *more):
        first, second = weights(one, name), weights(other, name)
        assert first.keys() == second.keys()
        assert [key for key in first if not torch.equal(first[key], second[key])] == []
        assert valid_loss(one, name) == valid_loss(other, name)
    curve = (one / "curve.csv").read_text()
    assert (other / "curve.csv").read_text() == curve
    rows = [tuple(row[:3]) for row in csv.reader(curve.splitlines())]
    assert len(set(rows)) == len(rows)


def valid_loss(folder: Path, name: str) -> float | None:
    """The loss of the last validation before a checkpoint was written; an average of weights has none."""
    loss: float | None = load_checkpoint(folder / "checkpoints" / f"{name}.ckpt").get("valid_loss")
    return loss


def validated(folder: Path, metric: str = "loss") -> dict[int, float]:
    with (folder / "curve.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["split"], row["metric"]) == ("valid", metric)]
    return {int(row["step"]): float(row["value"]) for row in rows}
