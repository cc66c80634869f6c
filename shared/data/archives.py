"""Safe extraction of chosen members from untrusted zip, tar, deb and gz archives."""

from __future__ import annotations

import errno
import gzip
import stat
import struct
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from shared.errors import ReplicationError

_CHUNK = 1 << 20
# Largest accepted compression ratio of a .gz member; text is rarely compressed by more than a factor of 100.
_GZ_RATIO = 1_000


class _Member(NamedTuple):
    """A file in an archive; ``name`` is normalised, ``size`` is the size that the archive declares."""

    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes]]


def extract(archive: Path, members: Mapping[str, str], into: Path, *, limit: int) -> None:
    """Extract chosen members of an archive into a folder.

    Args:
        archive: ``.zip``/``.whl``, a tar of any compression, or a ``.deb``; the suffix decides.
        members: path in the archive to path below ``into``; ``folder/`` to ``name/`` extracts every file of a folder.
            A member ``x.gz`` whose target does not end in ``.gz`` is unpacked.
        into: existing folder.
        limit: largest total size of the extracted files in bytes.

    Raises:
        ReplicationError: the archive is damaged, lacks a member, exceeds ``limit`` or its own declared sizes, or has a
            member with an unsafe path; or a chosen member is a link or a device.
    """
    found: set[str] = set()
    left = limit
    with _readable(archive), _open(archive) as listing:
        for member in listing:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or "\\" in member.name:
                raise ReplicationError(f"{archive.name} holds the unsafe path {member.name!r}: refused.")
            wanted = _target(member.name, members)
            if wanted is None:
                continue
            pattern, target = wanted
            found.add(pattern)
            if not member.regular:
                raise ReplicationError(f"{archive.name}: {member.name} is a link or a device; it is refused.")
            if member.size > left:
                raise ReplicationError(f"{archive.name} unpacks to more than {limit:,} bytes; it is refused.")
            left -= _write(member, into / target, left)
    missing = members.keys() - found
    if missing:
        raise ReplicationError(f"{archive.name} has no member {min(missing)}.")


def gunzip(packed: Path, target: Path, *, limit: int) -> None:
    """Unpack one ``.gz`` file to ``target``, at most ``limit`` bytes.

    Raises:
        ReplicationError: the file is damaged or larger than ``limit``.
    """
    with _readable(packed), gzip.open(packed) as source:
        _copy(source, target, limit=limit, name=packed.name)


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    """Convert the exceptions of archive modules on damaged input; other OS errors, as of a full disk, pass through."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, struct.error) as error:
        raise ReplicationError(f"{archive.name} is damaged ({error}).") from None
    except (EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ReplicationError(f"{archive.name} is damaged or cannot be unpacked ({error}).") from None
    except OSError as error:
        # BadGzipFile has no errno; a damaged directory makes zipfile seek to an invalid position (EINVAL).
        if error.errno not in (None, errno.EINVAL):
            raise
        raise ReplicationError(f"{archive.name} is damaged ({error}).") from None


@contextmanager
def _open(archive: Path) -> Iterator[Iterator[_Member]]:
    if archive.suffix in {".zip", ".whl"}:
        with zipfile.ZipFile(archive) as file:
            yield _zip_members(file)
    elif archive.suffix == ".deb":
        unpacked = archive.with_suffix(".tar")
        with unpacked.open("wb") as target:
            # dpkg-deb supports every compression that Debian has used; the tar that it writes is untrusted too.
            command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
            done = subprocess.run(command, stdout=target, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip()
            raise ReplicationError(f"{archive.name} is damaged ({reason}).")
        with tarfile.open(unpacked) as tar:
            yield _tar_members(tar)
        unpacked.unlink()
    else:
        with tarfile.open(archive) as tar:
            yield _tar_members(tar)
            # The checksum of a compressed stream is verified only when its end is read.
            assert tar.fileobj is not None, "an open tar has a file"
            while tar.fileobj.read(_CHUNK):
                pass


def _zip_members(file: zipfile.ZipFile) -> Iterator[_Member]:
    for info in file.infolist():
        if not info.is_dir():
            mode = info.external_attr >> 16
            regular = stat.S_ISREG(mode) or stat.S_IFMT(mode) == 0
            yield _Member(info.filename, info.file_size, regular, partial(file.open, info))


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    for info in tar:
        if not info.isdir():
            name = info.name.removeprefix("./")
            yield _Member(name, info.size, info.isreg(), partial(_open_in_tar, tar, info))


def _open_in_tar(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    assert file is not None, "only regular files are opened"
    return file


def _target(name: str, members: Mapping[str, str]) -> tuple[str, str] | None:
    if name in members:
        return name, members[name]
    for pattern, target in members.items():
        if pattern.endswith("/") and name.startswith(pattern):
            return pattern, target + name.removeprefix(pattern)
    return None


def _write(member: _Member, target: Path, left: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    with member.open() as source:
        if member.name.endswith(".gz") and target.suffix != ".gz":
            with gzip.open(source) as unpacked:
                return _copy(unpacked, target, limit=min(left, member.size * _GZ_RATIO), name=member.name)
        return _copy(source, target, limit=member.size, name=member.name)


def _copy(source: IO[bytes] | gzip.GzipFile, target: Path, *, limit: int, name: str) -> int:
    written = 0
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > limit:
                raise ReplicationError(f"{name} unpacks to more than {limit:,} bytes; it is refused.")
            file.write(chunk)
    return written
