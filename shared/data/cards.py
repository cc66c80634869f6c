"""Cards: what a data set is, where it comes from and the hashes that say it is the right one."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints, model_validator

from shared.config import Strict, build, load_yaml
from shared.errors import ReplicationError

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


def _relative(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path:
        raise ValueError(f"'{path}' is not a path inside a folder")
    return path


SafePath = Annotated[str, AfterValidator(_relative)]
Members = dict[SafePath, SafePath]
"""Path in an archive to the name of the raw file it becomes; ``folder/`` to ``name/`` takes all files below.

A member ``x.gz`` for a raw file without that suffix is unpacked on the way.
"""


class Raw(Strict):
    """The pin of one raw file, or of a tree of them (a name ending in ``/``, hashed by its sorted listing).

    Attributes:
        sha256: of the file; None if nobody could know it, then the first one found must stay the same.
        also_accepted: further hashes; data with one of them is not compared with the card's ``files``.
        unverified: why there is no sha256.
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
    """What all sources have that raw files are obtained from.

    Attributes:
        raw: pins of this source's raw files, if it has the data in other ones than those of the card; what they
            become is not compared with the card's ``files``.
    """

    raw: dict[SafePath, Raw] = Field(default_factory=dict)


class MirrorSource(Obtained):
    """Raw files, as they are or as ``.gz``, in a folder below the mirror (``$REPLICATIONS_MIRROR``)."""

    kind: Literal["mirror"]
    folder: SafePath


class Package(Strict):
    """A pinned file from PyPI."""

    requirement: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+$")]
    sha256: Sha256
    members: Members


class Wheel(Package):
    """A wheel; none of its code runs."""

    ignore_requires_python: bool = False


class Sdist(Package):
    """A source archive (``.tar.gz``), for what no wheel has.

    Asking for its metadata, pip runs its build script, after it has compared the hash: no code but the pinned.
    """


class PipSource(Obtained):
    """Packages, fetched with ``pip download`` and never installed."""

    kind: Literal["pip"]
    wheels: tuple[Wheel, ...] = ()
    sdists: tuple[Sdist, ...] = ()

    @model_validator(mode="after")
    def _something(self) -> PipSource:
        if not self.packages:
            raise ValueError("give 'wheels' or 'sdists'")
        return self

    @property
    def packages(self) -> tuple[Package, ...]:
        """All packages, wheels first."""
        return (*self.wheels, *self.sdists)


class NpmSource(Obtained):
    """A pinned package from the npm registry, fetched with ``npm pack``."""

    kind: Literal["npm"]
    package: Annotated[str, StringConstraints(pattern=r"^(@[a-z0-9._-]+/)?[a-z0-9._-]+@[0-9][\w.+-]*$")]
    sha256: Sha256
    members: Members


class AptSource(Obtained):
    """Debian packages, fetched with ``apt-get download`` and never installed.

    Their version moves with the distribution, so the raw files are pinned instead of the packages.
    """

    kind: Literal["apt"]
    packages: dict[Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]+$")], Members]


class Download(Strict):
    """One file behind an address; without ``members`` it is a raw file itself (unpacked if ``.gz``)."""

    url: Annotated[str, StringConstraints(pattern="^https?://")]
    sha256: Sha256 | None = None
    bytes: int | None = Field(default=None, gt=0)
    members: Members = Field(default_factory=dict)


class WebSource(Obtained):
    """Files from the data set's official addresses."""

    kind: Literal["web"]
    downloads: tuple[Download, ...] = Field(min_length=1)


class GeneratedSource(Strict):
    """A corpus made by a function of `shared.data.generated.translation`; it needs no raw files and no reader."""

    kind: Literal["generated"]
    task: str
    parameters: dict[str, Any]


ObtainedSource: TypeAlias = MirrorSource | PipSource | NpmSource | AptSource | WebSource
Source = Annotated[ObtainedSource | GeneratedSource, Field(discriminator="kind")]


class ReaderChoice(Strict):
    """The function of `shared.data.readers` that turns the raw files into splits, and its options."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class ExampleShape(Strict):
    """What one example of a data set is, where all are of one shape: height, width and channels of its pictures."""

    shape: tuple[PositiveInt, PositiveInt, PositiveInt]

    @property
    def values(self) -> int:
        """Numbers of an example."""
        return math.prod(self.shape)


class Card(Strict):
    """A data set: identity, rights, sources in order of trust, pins, reader, splits, traps.

    Attributes:
        languages: suffix of the files to what it is; none, and no splits, for what is no corpus, such as weights.
        needs_bytes: free disk that fetching takes at its peak; also the limit for what archives unpack to.
        raw: pins of the raw files; every source without pins of its own must provide all of them.
        files: sha256 of every file that the reader or generator writes, where that is known.
        splits: split name to how it was made.
        compared: the languages in which no two splits share a text, for what is not text (such as trees, which
            different sentences have in common); default: all.
        example: what one example is; of pictures that all have one shape.
        traps: what a user of this data should know.
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
    splits: dict[Annotated[str, StringConstraints(pattern="^(train|valid|test[a-z0-9_]*)$")], str]
    compared: tuple[str, ...] | None = Field(default=None, min_length=1)
    files: dict[SafePath, Sha256] = Field(default_factory=dict)
    example: ExampleShape | None = None
    traps: tuple[str, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        if bool(self.languages) != bool(self.splits):
            raise ValueError("give both 'languages' and 'splits', or leave both empty for what is no corpus")
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
        """The pins of the raw files that this source provides."""
        return source.raw or self.raw

    @property
    def distinct(self) -> list[str]:
        """The languages in which no two splits share a text."""
        return [name for name in self.languages if self.compared is None or name in self.compared]

    @property
    def fingerprint(self) -> str:
        """sha256 over what determines the data; prose in the card can change without a new fetch."""
        parts = {"id", "languages", "raw", "reader", "splits", "files"}
        content = self.model_dump(mode="json", include=parts)
        content["splits"] = list(self.splits)
        content["languages"] = list(self.languages)
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
            return {name for package in source.packages for name in package.members.values()}
        case NpmSource():
            return set(source.members.values())
        case AptSource():
            return {name for members in source.packages.values() for name in members.values()}
        case WebSource():
            return {name for item in source.downloads for name in _names(item)}
        case _:
            return set(raw)  # a mirror is looked through by raw name; a generated source has none


def _names(download: Download) -> list[str]:
    return list(download.members.values()) or [raw_name(download.url)]


def raw_name(url: str) -> str:
    """Name of the raw file that a download without members becomes: the last part of its path, unpacked."""
    return PurePosixPath(url.split("?")[0]).name.removesuffix(".gz")


def load_card(dataset: str, root: Path = Path("data")) -> Card:
    """Read and check ``<root>/<dataset>.yaml``.

    Raises:
        ReplicationError: there is no such card, or something in it is wrong.
    """
    path = root / f"{dataset}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(card.stem for card in root.glob("*.yaml"))) or "none"
        raise ReplicationError(f"there is no card {path}; known data sets: {known}.")
    card = build(Card, load_yaml(path), where=str(path))
    if card.id != dataset:
        raise ReplicationError(f"{path}: 'id' is '{card.id}', but the file's name says '{dataset}'.")
    return card
