"""Trains the small runs of every kind, under torchrun together with other processes.

Each argument is a folder, and after a colon whether its runs are to end early: ``python together.py whole cut:early``.
"""

import signal
import sys
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.training import killable_run

CHANGED: dict[str, dict[str, Any]] = {
    "translation": {"accumulate": 2, "average": {"last": 3, "every": 4}},
    "classification": {"accumulate": 2, "optimizer": {"name": "adagrad", "learning_rate": 0.3}},
    "captioning": {"accumulate": 2, "batch": {"sentences": 8, "equal_lengths": True}},
    "language": {"batch": {"sentences": 4, "length": 5}, "memory": 9},
    "sequences": {"accumulate": 4},
}


class Ended(BaseException):
    """What ends a run early."""


def main() -> None:
    """Train all runs; those that are to end early do so after nine updates, three after their checkpoint.

    Dropout of the columns of a text depends on which process reads them, and the moving average that a reinforced
    captioner compares with on which batches it reads: both are left out.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, end)
    for argument in sys.argv[1:]:
        folder, _, early = argument.partition(":")
        for kind, changed in CHANGED.items():
            kill = {"kill": "trained:9", "number": signal.SIGTERM} if early else {}
            with (
                patch.object(nn.Dropout, "forward", lambda _, x: x), patch.object(ToyCaptioner, "reinforced", False),
                suppress(Ended),
            ):  # fmt: skip
                killable_run.run(f"{folder}/{kind}", kind=kind, **changed, **kill)


def end(*_: object) -> None:
    """End a run."""
    raise Ended


if __name__ == "__main__":
    main()
