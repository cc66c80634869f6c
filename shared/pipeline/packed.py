"""What runs have left, without their weights, as one file that git keeps: a report is made from it without training."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from shared.data.archives import extract
from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.files import run_folder

KEPT = ("metrics.json", "curve.csv", "train/not_run.json", "train/seed*/run.json", "train/seed*/curve.csv")
"""Of a variant, beside all that its evaluation has written."""
LIMIT = 1 << 30  # bytes that an archive may unpack to
LEVEL = 9  # of compression


def archive_of(paper: str, scale: str) -> Path:
    """``runs/<scale>/<paper>.tar.gz``."""
    return run_folder(paper, scale).with_name(f"{paper}.tar.gz")


@alone("archive")
def pack_stage(paper: str, scale: str) -> None:
    """Write what a report needs of every judged variant into one file.

    Raises:
        ReplicationError: nothing is judged, or the file has results that are not on this machine and would be lost.
    """
    runs, archive = run_folder(paper, scale), archive_of(paper, scale)
    judged = sorted(path.parent.parent for path in runs.glob("*/evaluation/costs.json"))
    if not judged:
        raise ReplicationError(f"{runs} holds no judged variant; run its evaluate stages first.")
    files = [file for variant in judged for file in _kept(variant)]
    names = {file.relative_to(runs).as_posix() for file in files}
    if lost := {name for name in _names(archive) if name.split("/")[1] == "evaluation"} - names:
        raise ReplicationError(
            f"{archive} holds results that {runs} lacks, such as {min(lost)}; run 'python -m shared.pipeline unpack "
            f"{paper} --scale {scale}' first, or delete the file to do without them."
        )
    partial = archive.with_name(f".{archive.name}.partial")
    with (
        partial.open("wb") as raw,
        gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in files:
            tar.add(file, file.relative_to(runs).as_posix(), filter=_nameless)
    partial.replace(archive)
    print(f"{archive}: {len(judged)} variants, {len(files)} files, {archive.stat().st_size / 1e6:.1f} MB.")


@alone("archive")
def unpack_stage(paper: str, scale: str) -> None:
    """Put what was packed back into its place. A variant that has been judged on this machine is left as it is.

    Raises:
        ReplicationError: there is no such file, or it is damaged.
    """
    runs, archive = run_folder(paper, scale), archive_of(paper, scale)
    if not archive.exists():
        raise ReplicationError(f"there is no {archive}; 'pack' writes it where {paper} was trained and judged.")
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs.parent, prefix=f".{paper}-") as place:
        names = sorted({name.split("/")[0] for name in _names(archive)})
        extract(archive, {f"{name}/": f"{name}/" for name in names}, Path(place), limit=LIMIT)
        for name in names:
            if (runs / name / "evaluation").exists():
                print(f"{paper}.{name}: judged here, kept.")
                continue
            _put(Path(place) / name, runs / name)
            print(f"{paper}.{name}: unpacked.")


def _kept(variant: Path) -> Iterator[Path]:
    """The files of a variant that are packed, in the order of their names."""
    found = {file for pattern in KEPT for file in variant.glob(pattern)}
    yield from sorted(found | {file for file in (variant / "evaluation").rglob("*") if file.is_file()})


def _names(archive: Path) -> list[str]:
    if not archive.exists():
        return []
    try:
        with tarfile.open(archive) as tar:
            return tar.getnames()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ReplicationError(f"{archive} is damaged ({error}); take it from git again.") from None


def _nameless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member without what differs between machines, so that equal results make equal archives."""
    member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode = 0, 0, 0, "", "", 0o644
    return member


def _put(unpacked: Path, variant: Path) -> None:
    """Move a variant's files into its folder; its evaluation comes last, for it tells that all are there."""
    for file in sorted(unpacked.rglob("*"), key=lambda path: path.relative_to(unpacked).parts[0] == "evaluation"):
        target = variant / file.relative_to(unpacked)
        if file.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not _trains_on(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(file, target)


def _trains_on(target: Path) -> bool:
    """Whether the file is of a seed that was trained on this machine, whose record must stay that of its weights."""
    return target.parent.parent.name == "train" and (target.parent / "checkpoints").exists()
