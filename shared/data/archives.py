"""Safe extraction of chosen members from untrusted zip, tar, deb and gz archives."""

from __future__ import annotations

import errno
import gzip
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from shared.data.opening import read_bytes, reading
from shared.errors import ReplicationError

_CHUNK = 1 << 20
# Largest accepted compression ratio of a .gz member; text is rarely compressed by more than a factor of 100.
_GZ_RATIO = 1_000
# That of a whole .deb; the small ones, whose heads weigh more, may have 64 MiB besides.
_DEB_RATIO, _DEB_SPARE = 100, 64 << 20
_MOST_FILES = 1_000_000
_DAMAGED = "is damaged or cannot be unpacked"
_IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, None)
"""Errors that a damaged archive causes, by members of one name or of impossible ones, or by a directory that is wrong;
BadGzipFile has no number. Others, as of a full disk, pass through."""


class Member(NamedTuple):
    """A file in an archive; ``size`` is the size that the archive declares."""

    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes] | None]


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
    missing, left = dict(members), limit
    with reading(archive.name, _DAMAGED, _IN_THE_WAY):
        for number, member in enumerate(members_of(archive), 1):
            if number > _MOST_FILES:
                raise ReplicationError(f"{archive.name} holds more than {_MOST_FILES:,} files; it is refused.")
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or "\\" in member.name:
                raise ReplicationError(f"{archive.name} holds the unsafe path {member.name!r}: refused.")
            folders = (key for key in members if key.endswith("/") and member.name.startswith(key))
            chosen = member.name if member.name in members else next(folders, None)
            if chosen is None:
                continue
            missing.pop(chosen, None)
            target = into / (members[chosen] + member.name.removeprefix(chosen))
            if not target.resolve().is_relative_to(into.resolve()):
                raise ReplicationError(f"{archive.name}: {member.name} would leave the folder; it is refused.")
            if not member.regular:
                raise ReplicationError(f"{archive.name}: {member.name} is a link or a device; it is refused.")
            if member.size > left:
                raise ReplicationError(f"{archive.name} unpacks to more than {limit:,} bytes; it is refused.")
            left -= _write(member, target, left)
    if missing:
        raise ReplicationError(f"{archive.name} has no member {min(missing)}.")


def gunzip(packed: Path, target: Path, *, limit: int) -> None:
    """Unpack one ``.gz`` file to ``target``, at most ``limit`` bytes.

    Raises:
        ReplicationError: the file is damaged or larger than ``limit``.
    """
    with reading(packed.name, _DAMAGED, _IN_THE_WAY), gzip.open(packed) as source:
        copy_limited(source, target, limit=limit, name=packed.name)


def copy_limited(source: IO[bytes] | gzip.GzipFile, target: Path, *, limit: int, name: str) -> int:
    """Write a new file and return its size.

    Raises:
        ReplicationError: the source has more than ``limit`` bytes.
    """
    written = 0
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > limit:
                raise ReplicationError(f"{name} has more than {limit:,} bytes; it is refused.")
            file.write(chunk)
    return written


def members_of(archive: Path) -> Iterator[Member]:
    """Yield the files in an archive; directories are none. Each can be opened while the next is not asked for."""
    if archive.suffix.lower() in {".zip", ".whl"}:
        with _open_zip(archive) as file:
            for info in file.infolist():
                if not info.is_dir():
                    regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
                    yield Member(info.filename, info.file_size, regular, partial(file.open, info))
    elif archive.suffix.lower() == ".deb":
        unpacked = archive.with_suffix(".tar")
        try:
            _unpack_deb(archive, unpacked)
            yield from members_of(unpacked)
        finally:
            unpacked.unlink(missing_ok=True)
    else:
        with tarfile.open(archive) as tar:
            for each in tar:
                if not each.isdir():
                    yield Member(each.name.removeprefix("./"), each.size, each.isreg(), partial(tar.extractfile, each))
            # The checksum of a compressed stream is verified only when its end is read.
            while tar.fileobj and tar.fileobj.read(_CHUNK):
                pass


def stored(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the name of each file in a zip or a plain tar, and a function that reads it at any time."""
    if archive.suffix.lower() == ".zip":
        file = _open_zip(archive)  # closed when the last of the functions is garbage-collected
        yield from ((info.filename, partial(file.read, info)) for info in file.infolist() if not info.is_dir())
    else:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                if member.isreg() and not member.issparse():
                    yield member.name, partial(read_bytes, archive, member.offset_data, member.size)


def _open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip, whose names are UTF-8 if they can be, as on a Macintosh, where nothing marks their encoding."""
    try:
        return zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(path)


def _unpack_deb(archive: Path, target: Path) -> None:
    """Write the tar that a .deb holds; dpkg-deb supports every compression that Debian has used."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None, "it is a pipe"
        assert unpacking.stderr is not None, "it is a pipe"
        try:
            limit = archive.stat().st_size * _DEB_RATIO + _DEB_SPARE
            copy_limited(unpacking.stdout, target, limit=limit, name=archive.name)
            reason = unpacking.stderr.read().decode(errors="replace").strip()
        finally:
            unpacking.kill()  # does nothing to what has ended
        if unpacking.wait():
            raise ReplicationError(f"{archive.name} is damaged ({reason}).")


def _write(member: Member, target: Path, left: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    assert source is not None, "only regular files are opened"
    with source:
        if member.name.endswith(".gz") and target.suffix != ".gz":
            with gzip.open(source) as unpacked:
                return copy_limited(unpacked, target, limit=min(left, member.size * _GZ_RATIO), name=member.name)
        return copy_limited(source, target, limit=member.size, name=member.name)
