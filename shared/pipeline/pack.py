"""What runs have left, without their weights, as one file that git keeps: a report is made from it without training."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from shared.claims.results import COSTS
from shared.claims.words import number_of
from shared.data.archives import extract
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import paper_folder, run_folder, split_name, write_json
from shared.pipeline.processes import alone
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
        raise ReplicationError(
            f"{archive} holds results that {runs} lacks, such as {min(lost)}; run 'python -m shared.pipeline unpack "
            f"{paper} --scale {scale}' first, or delete the file to do without them."
        )
    before = f", in place of one of {archive.stat().st_size / 1e6:.1f} MB" if archive.exists() else ""
    partial = archive.with_name(f".{archive.name}.partial")
    with (
        partial.open("wb") as raw,
        lzma.open(raw, "wb") as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
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
    settings = ScaleFile(paper, scale)
    runs, archive = run_folder(paper, scale), archive_of(paper, scale)
    if not archive.exists():
        raise ReplicationError(f"there is no {archive}; 'pack' writes it where {paper} was trained and judged.")
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs.parent, prefix=f".{paper}-") as place:
        names = sorted({name.split("/")[0] for name in _names(archive)})
        extract(archive, {f"{name}/": f"{name}/" for name in names}, Path(place), limit=LIMIT)
        for name in names:
            if _judged_here(settings, name):
                print(f"{paper}.{name}: judged here, kept.")
            else:
                _unpack(f"{paper}.{name}", scale, unpacked=Path(place) / name)


@alone("runs")
def _unpack(name: str, scale: str, *, unpacked: Path) -> None:
    """Put the files of ``<paper>.<variant>`` into its folder, while nothing is trained or judged there."""
    paper, variant = split_name(name)
    if _judged_here(ScaleFile(paper, scale), variant):  # which has ended a moment ago
        return
    folder = run_folder(paper, scale) / variant
    shutil.rmtree(folder / "evaluation", ignore_errors=True)  # unpacked before, or left by a failure
    _name_runs(unpacked)
    _put(unpacked, folder)
    print(f"{name}: unpacked.")


def _name_runs(unpacked: Path) -> None:
    """Note whose scores they are, where an older record does not: those of the runs that were packed with them."""
    costs = unpacked / "evaluation" / COSTS
    record = json.loads(costs.read_text(encoding="utf-8"))
    if "fingerprints" not in record:
        runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(unpacked.glob("train/seed*/run.json"))]
        write_json(costs, record | {"fingerprints": {str(run["seed"]): run["fingerprint"] for run in runs}})


def _judged_here(settings: ScaleFile, variant: str) -> bool:
    """Whether a variant is judged, and some of its weights are on this machine."""
    folder = settings.folder(variant)
    return (folder / "evaluation" / COSTS).exists() and any(folder.glob("train/seed*/checkpoints"))


def _kept(variant: Path) -> Iterator[Path]:
    """The files of a variant that are packed, in the order of their names."""
    found = {file for pattern in KEPT for file in variant.glob(pattern)}
    written = {file for file in (variant / "evaluation").rglob("*") if file.is_file()}
    drawn = [sorted(variant.glob(f"evaluation/seed*/{name}"), key=_seed) for name in DRAWN]
    yield from sorted(found | written.difference(*(files[1:] for files in drawn)))


def _seed(file: Path) -> int:
    """That of the folder of a file."""
    return int(file.parent.name.removeprefix("seed"))


def _judged(names: list[str]) -> set[str]:
    """The folders of judged seeds among the names of files."""
    folders = {PurePosixPath(name).parent for name in names}
    return {str(folder) for folder in folders if folder.parent.name == "evaluation"}


def _names(archive: Path) -> list[str]:
    if not archive.exists():
        return []
    try:
        with tarfile.open(archive) as tar:
            return tar.getnames()
    except (tarfile.TarError, lzma.LZMAError, EOFError):  # whose texts are of all compressions that there are
        raise ReplicationError(
            f"{archive} is damaged: it is no .tar.xz archive, or is cut short; take it from git again, or delete it "
            "and pack the runs anew."
        ) from None
    except OSError as error:
        raise ReplicationError(
            f"{archive} cannot be read ({error.strerror or error}); take it from git again."
        ) from None


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file without what differs between machines; a .gz is unpacked, since the examples of seeds are alike."""
    if name.endswith(".gz"):
        name, content = name.removesuffix(".gz"), gzip.decompress(content)
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _put(unpacked: Path, variant: Path) -> None:
    """Move a variant's files into its folder; its evaluation comes last, for it tells that all are there."""
    for file in sorted(unpacked.rglob("*"), key=lambda path: path.relative_to(unpacked).parts[0] == "evaluation"):
        target = variant / file.relative_to(unpacked)
        if file.is_dir() or _trains_on(target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "examples.jsonl":
            write_lines(target.parent, file.read_bytes())
        else:
            shutil.move(file, target)


def _trains_on(target: Path) -> bool:
    """Whether the file is a record of a seed whose checkpoints are on this machine; these keep their own record."""
    return target.parent.parent.name == "train" and (target.parent / "checkpoints").exists()
