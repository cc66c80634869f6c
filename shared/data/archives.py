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
# That of a whole .deb; the small ones, whose heads weigh more, may have 64 MiB besides.
_DEB_RATIO, _DEB_SPARE = 100, 64 << 20
_MOST_FILES = 1_000_000
_IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, None)
"""Errors that a damaged archive causes, by members of one name or of impossible ones, or by a directory that is wrong;
BadGzipFile has no number."""


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
        for number, member in enumerate(listing, 1):
            if number > _MOST_FILES:
                raise ReplicationError(f"{archive.name} holds more than {_MOST_FILES:,} files; it is refused.")
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or "\\" in member.name:
                raise ReplicationError(f"{archive.name} holds the unsafe path {member.name!r}: refused.")
            wanted = _target(member.name, members)
            if wanted is None:
                continue
            pattern, target = wanted
            found.add(pattern)
            if not (into / target).resolve().is_relative_to(into.resolve()):
                raise ReplicationError(f"{archive.name}: {member.name} would leave the folder; it is refused.")
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
    except MemoryError:
        raise ReplicationError(f"{archive.name} declares more than memory can hold; it is refused.") from None
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        raise ReplicationError(f"{archive.name} is damaged ({error}).") from None


@contextmanager
def _open(archive: Path) -> Iterator[Iterator[_Member]]:
    if archive.suffix in {".zip", ".whl"}:
        with zipfile.ZipFile(archive) as file:
            yield _zip_members(file)
    elif archive.suffix == ".deb":
        unpacked = archive.with_suffix(".tar")
        _unpack_deb(archive, unpacked)
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


def _unpack_deb(archive: Path, target: Path) -> None:
    """Write the tar that a .deb holds; dpkg-deb supports every compression that Debian has used."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None, "it is a pipe"
        assert unpacking.stderr is not None, "it is a pipe"
        try:
            limit = archive.stat().st_size * _DEB_RATIO + _DEB_SPARE
            _copy(unpacking.stdout, target, limit=limit, name=archive.name)
            reason = unpacking.stderr.read().decode(errors="replace").strip()
        finally:
            unpacking.kill()  # does nothing to what has ended
        if unpacking.wait():
            raise ReplicationError(f"{archive.name} is damaged ({reason}).")


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
