"""What every test needs: torchvision importable on any build of torch, and the same random numbers."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

# Threads that wait in a loop keep those of other processes from their core; torch reads this when it is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import shared  # noqa: F401  (before lightning or torchvision is imported anywhere)
from shared.tasks.kinds import load_measures
from tests.network import Network

settings.register_profile("untimed", deadline=None)  # a busy machine makes no test fail
settings.register_profile("fuzz", deadline=None, max_examples=20_000)  # --hypothesis-profile=fuzz
settings.load_profile("untimed")

# A job that a shell starts in the background ignores Ctrl-C, and so would all programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

load_measures()  # as the stages that judge claims and write reports do
ROOT = Path(__file__).resolve().parents[1]
NETWORK = Network()
NETWORK.prepare()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest where processes share the tests: the others do the rest meanwhile."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.name != "test_readme.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no test reach beyond this machine, its fixtures included, unless it is marked to fetch real data."""
    with nullcontext() if item.get_closest_marker("registry") else NETWORK.only_here():
        return (yield)


@pytest.fixture(scope="session")
def network() -> Network:
    """Return what the tests can reach."""
    return NETWORK


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """From a kind of task to a project in which its toy paper was prepared, trained and judged; tests change copies."""
    from tests.pipeline.toys import make

    return cache(lambda kind: make(kind, tmp_path_factory.mktemp(kind) / "project"))


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a new project of toy papers, which becomes the current folder."""
    from tests.pipeline.toys import enter, write_project

    enter(write_project(tmp_path / "project"), monkeypatch)
    return Path.cwd()


@pytest.fixture
def fake_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a Python script on an otherwise empty PATH under a program's name; its calls are logged.

    Returns a function (name, body) -> Path of the log, one line of arguments a call.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, body: str) -> Path:
        log, script = tmp_path / f"{name}.log", folder / name
        script.write_text(
            f"#!{sys.executable}\nimport pathlib, shutil, sys\n"
            f"with open({str(log)!r}, 'a') as log: log.write(' '.join(sys.argv[1:]) + '\\n')\n{body}\n"
        )
        script.chmod(0o755)
        return log

    return make


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """Seed torch anew for each test and undo its thread count: no test depends on the ones before it."""
    torch = sys.modules.get("torch")  # a test that does without torch shall not wait for it
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.manual_seed(1)
    yield
    torch.set_num_threads(threads)
