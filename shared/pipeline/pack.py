"""What runs have left, without their weights, as one file that git keeps: a report is made from it without training."""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from shared.claims.results import COSTS
from shared.claims.words import number_of
from shared.data.archives import extract
from shared.errors import ReplicationError
from shared.pipeline.files import alone, locked, paper_folder, run_folder
from shared.tasks.examples import write_lines

RECORDS = ("run.json", "curve.csv")
"""Of the training of a seed."""
KEPT = ("metrics.json", "scores.json", "curve.csv", "train/not_run.json", *(f"train/seed*/{name}" for name in RECORDS))
"""Of a variant, beside all that its evaluation has written."""
DRAWN = ("attention.npz", "heads.npz", "pictures.npz", "samples.json")
"""What evaluation writes for figures: they are drawn of an ensemble and of the first seed, and need no others'."""
LIMIT = 1 << 30  # bytes that an archive may unpack to


def archive_of(paper: str, scale: str) -> Path:
    """``runs/<scale>/<paper>.tar.xz``."""
    return run_folder(paper, scale).with_name(f"{paper}.tar.xz")


@alone("archive")
def pack_stage(paper: str, scale: str) -> None:
    """Write what a report needs of every judged variant into one file.

    Raises:
        ReplicationError: there is no such paper, nothing is judged, or the file has results that this machine has not
            and that would be lost.
    """
    paper_folder(paper)
    runs, archive = run_folder(paper, scale), archive_of(paper, scale)
    judged = sorted(path.parent.parent for path in runs.glob(f"*/evaluation/{COSTS}"))
    if not judged:
        raise ReplicationError(f"{runs} holds no judged variant; run its evaluate stages first.")
    files = [file for variant in judged for file in _kept(variant)]
    if lost := _judged(_names(archive)) - _judged([file.relative_to(runs).as_posix() for file in files]):
        unpack = f"python -m shared.pipeline unpack {paper} --scale {scale}"
        raise ReplicationError(f"{archive} holds {min(lost)}, which {runs} lacks; run '{unpack}' first, or delete it.")
    before = f", in place of one of {archive.stat().st_size / 1e6:.1f} MB" if archive.exists() else ""
    partial = archive.with_name(f".{archive.name}.partial")
    with tarfile.open(partial, "w:xz", format=tarfile.PAX_FORMAT) as tar:
        for file in files:
            _add(tar, file.relative_to(runs).as_posix(), file.read_bytes())
    partial.replace(archive)
    held = f"{number_of(len(judged), 'variant')}, {number_of(len(files), 'file')}"
    print(f"{archive}: {held}, {archive.stat().st_size / 1e6:.1f} MB{before}.")


@alone("archive")
def unpack_stage(paper: str, scale: str) -> None:
    """Put what was packed back into its place. A variant that has been judged on this machine is left as it is.

    Raises:
        ReplicationError: there is no such file, it is damaged, or a variant that it has is being trained or judged.
    """
    paper_folder(paper)
    runs, archive = run_folder(paper, scale), archive_of(paper, scale)
    if not archive.exists():
        raise ReplicationError(f"there is no {archive}; 'pack' writes it where {paper} was trained and judged.")
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs.parent, prefix=f".{paper}-") as place:
        variants = sorted({name.split("/")[0] for name in _names(archive)})
        extract(archive, {f"{variant}/": f"{variant}/" for variant in variants}, Path(place), limit=LIMIT)
        for variant in variants:
            folder, name = runs / variant, f"{paper}.{variant}"
            if not _judged_here(folder):
                with locked(f"runs of {name} at {scale} scale"):
                    if not _judged_here(folder):  # by what has ended a moment ago
                        shutil.rmtree(folder / "evaluation", ignore_errors=True)  # unpacked before, or of a failure
                        _put(Path(place) / variant, folder)
                        print(f"{name}: unpacked.")
                        continue
            print(f"{name}: judged here, kept.")


def _judged_here(folder: Path) -> bool:
    """Whether a variant is judged, and some of its weights are on this machine."""
    return (folder / "evaluation" / COSTS).exists() and any(folder.glob("train/seed*/checkpoints"))


def _kept(variant: Path) -> Iterator[Path]:
    """The files of a variant that are packed, in the order of their names."""
    found = {file for pattern in KEPT for file in variant.glob(pattern)}
    written = {file for file in (variant / "evaluation").rglob("*") if file.is_file()}
    drawn = [
        sorted(variant.glob(f"evaluation/seed*/{name}"), key=lambda file: int(file.parent.name[4:])) for name in DRAWN
    ]
    yield from sorted(found | written.difference(*(files[1:] for files in drawn)))


def _judged(names: list[str]) -> set[str]:
    """The folders of judged seeds among the names of files."""
    folders = {PurePosixPath(name).parent for name in names}
    return {str(folder) for folder in folders if folder.parent.name == "evaluation"}


def _names(archive: Path) -> list[str]:
    if not archive.exists():
        return []
    with opened(archive) as tar:
        return tar.getnames()


@contextmanager
def opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """An archive that is read.

    Raises:
        ReplicationError: it is damaged, or cannot be read.
    """
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError):  # whose texts are of all compressions that there are
        raise ReplicationError(f"{archive} is damaged: take it from git again, or delete it and pack anew.") from None


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file without what differs between machines; a .gz is unpacked, since the examples of seeds are alike."""
    if name.endswith(".gz"):
        name, content = name.removesuffix(".gz"), gzip.decompress(content)
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _put(unpacked: Path, variant: Path) -> None:
    """Move a variant's files into its folder; its evaluation comes last, for it tells that all are there."""
    files = [file for file in unpacked.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda path: path.relative_to(unpacked).parts[0] == "evaluation"):
        target = variant / file.relative_to(unpacked)
        if target.parent.parent.name == "train" and (target.parent / "checkpoints").exists():
            continue  # a seed whose checkpoints are here keeps their record
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "examples.jsonl":
            write_lines(target.parent, file.read_bytes())
        else:
            shutil.move(file, target)
