"""How many kills, and which; undisturbed papers of all kinds, made once."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.faults.killing import Undisturbed, other_disk
from tests.faults.processes import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known only where this folder is named on the command line, which is where they are needed."""
    parser.addoption("--kills", type=int, default=0, help="so many kills instead of the few of the test suite")
    parser.addoption("--seed", type=int, default=7, help="of the kills")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts stages; their temporary files are on another disk, if there is one."""
    temporary = other_disk(tmp_path_factory.getbasetemp())
    commands = Server(temporary)
    yield commands
    commands.close()
    shutil.rmtree(temporary)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Callable[[str], Undisturbed]:
    """Kind to its paper; stages are run when a test wants to kill them."""
    papers: dict[str, Undisturbed] = {}

    def paper(kind: str) -> Undisturbed:
        if kind not in papers:
            papers[kind] = Undisturbed(kind, tmp_path_factory.mktemp(kind), server)
        return papers[kind]

    return paper
