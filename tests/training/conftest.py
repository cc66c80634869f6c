"""What is trained once for many tests: the server of all runs that are killed, and three seeds in a pool."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.training.pool import run_jobs
from tests.training.killed import Server
from tests.training.pooled import SEEDS, training_jobs

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
