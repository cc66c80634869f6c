"""The one server of all runs that are killed: it takes long to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.training.killed import Server


@pytest.fixture(scope="session")
def train() -> Iterator[Server]:
    server = Server()
    with server.process:
        yield server
        assert server.process.stdin is not None
        server.process.stdin.close()
