"""Jobs for the pool, and a program that runs them, so that it can be killed; it imports torch in its workers only."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.training.pool import Job, run_jobs
from shared.training.progress import LISTENER, Progress

SEEDS: list[dict[str, Any]] = [{"seed": 7}, {"seed": 8}, {"seed": 9}]


def train(folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A run of killable_run.py; leaves the number of its process beside its folder."""
    from tests.training.killable_run import run

    Path(f"{folder}.pid").write_text(str(os.getpid()))
    record = vars(run(folder, **settings))
    return {key: value for key, value in record.items() if "seconds" not in key and "per_second" not in key}


def threads() -> tuple[int, dict[str, str | None], list[str]]:
    """Threads of this process, what says so, and which large packages it has not been spared."""
    import torch

    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")
    large = [name for name in ("torchvision", "scipy", "matplotlib") if name in sys.modules]
    return torch.get_num_threads(), {name: os.environ.get(name) for name in names}, large


def talk(words: str) -> str:
    """Print and report."""
    print(words)
    print("no end of line", end="")
    LISTENER.get()(Progress(updates=3, total=9, loss=0.5, tokens_per_second=80.0))
    return words.upper()


def report_for_ever(file: str) -> None:
    """Report until somebody stops that, and write so."""
    for update in range(6000):
        LISTENER.get()(Progress(updates=update, total=6000, loss=0.5, tokens_per_second=80.0))
        Path(file).write_text("reports")
        time.sleep(0.01)
    Path(file).write_text("was not stopped")


def fail(reason: str) -> None:
    """Fail as programs do, or as users are meant to see it."""
    raise ReplicationError(reason) if reason.endswith(".") else TypeError(reason)


def end(how: int) -> None:
    """End this process by a signal, or with an exit status below zero."""
    if how > 0:
        os.kill(os.getpid(), how)
    raise SystemExit(-how)


def training_jobs(folder: Path, settings: list[dict[str, Any]]) -> list[Job]:
    """One run for each of the settings."""
    from tests.training.pooled import train  # not from __main__

    return [Job(f"toy seed {n}", train, (str(folder / f"seed{n}"), one)) for n, one in enumerate(settings)]


def main() -> int:
    """``pooled.py FOLDER WORKERS SETTINGS``, with settings as JSON; exits as stages do."""
    folder, workers, settings = sys.argv[1:]
    try:
        print(json.dumps(run_jobs(training_jobs(Path(folder), json.loads(settings)), workers=int(workers))))
    except ReplicationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
