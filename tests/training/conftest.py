"""What is trained once for many tests: the server of all runs that are killed, and three seeds in a pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.training.pool import run_jobs
from tests.training.killed import Server, assert_same_run
from tests.training.pooled import training_jobs

SEEDS: list[dict[str, Any]] = [{"seed": 7}, {"seed": 8}, {"seed": 9}]
Alone = tuple[Path, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def train() -> Iterator[Server]:
    server = Server()
    with server.process:
        yield server
        assert server.process.stdin is not None
        server.process.stdin.close()


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """Three seeds trained one after another: their folders and what was measured."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, run_jobs(training_jobs(folder, SEEDS), workers=1)


def assert_same_runs(one: Path, other: Path) -> None:
    """Both folders hold the same bits of all three seeds."""
    for n in range(len(SEEDS)):
        assert_same_run(one / f"seed{n}", other / f"seed{n}")
