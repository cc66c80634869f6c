"""Photos with captions: kept in the archives that they come in, found and decoded when they are read.

A fetched folder has two texts for every split, line-aligned, a line for each photo:

* ``<split>.captions``: the texts of all its captions, a JSON list;
* ``<split>.photo``: its file name;

and tar or zip archives, as they were obtained, in which the photos are.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

import numpy as np

from shared.data.generated.scene_captions import Box, Caption
from shared.data.generated.scenes import SIDE, Image
from shared.data.storage import read_columns
from shared.errors import ReplicationError

LANGUAGES = ("captions", "photo")
"""The line-aligned texts of a split, in this order."""

_BORDER = (256 - SIDE) / 2 / 256  # cut off at each end of a photo's shorter side


def archives(folder: Path) -> list[Path]:
    """The archives in a folder, in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.suffix in {".tar", ".zip"})


def photos_in(packed: Iterable[Path]) -> dict[str, Callable[[], bytes]]:
    """File name, without folders, to a function that reads the file, for all in these archives.

    Raises:
        ReplicationError: one of them cannot be read.
    """
    found: dict[str, Callable[[], bytes]] = {}
    for path in packed:
        with _readable(path.name):
            listed = _in_zip(path) if path.suffix == ".zip" else _in_tar(path)
            found |= {PurePosixPath(name).name: read for name, read in listed}
    return found


def decode(content: bytes) -> Image:
    """(SIDE, SIDE, 3) RGB of an image file.

    One of another size is cut and scaled as the authors did it: the shorter side to 256 pixels, then the middle.

    Raises:
        OSError: it is no image, or cut short.
    """
    from PIL import Image as Pillow
    from PIL import ImageOps

    with Pillow.open(io.BytesIO(content)) as file:
        image = file.convert("RGB")
    if image.size != (SIDE, SIDE):
        image = ImageOps.fit(image, (SIDE, SIDE), bleed=_BORDER)
    return np.asarray(image)


@dataclass(frozen=True)
class PhotoSplit:
    """The photos of a split; they are decoded when asked for."""

    columns: Mapping[str, Sequence[str]]
    packed: Sequence[Path]

    @classmethod
    def load(cls, folder: Path, split: str) -> PhotoSplit:
        """Open a split of a fetched folder.

        Raises:
            ReplicationError: a file is missing, or they differ in length.
        """
        return cls(read_columns(folder, split, LANGUAGES), archives(folder))

    def __len__(self) -> int:
        return len(self.columns["photo"])

    @cached_property
    def captions(self) -> list[list[Caption]]:
        """All captions of each photo; nobody says what their words name."""
        return [[Caption(text, ()) for text in json.loads(line)] for line in self.columns["captions"]]

    @cached_property
    def boxes(self) -> list[list[Box]]:
        """No box is known of any photo."""
        return [[] for _ in range(len(self))]

    def images(self, indices: Iterable[int]) -> Image:
        """(B, SIDE, SIDE, 3) RGB of these photos.

        Raises:
            ReplicationError: one of them is missing or damaged.
        """
        return np.stack([self._image(self.columns["photo"][index]) for index in indices])

    def _image(self, name: str) -> Image:
        if name not in self._photos:
            raise ReplicationError(f"the photo {name} is in no archive of the data set; fetch it anew.")
        with _readable(f"the photo {name}"):
            return decode(self._photos[name]())

    @cached_property
    def _photos(self) -> dict[str, Callable[[], bytes]]:
        return photos_in(self.packed)


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what damaged archives and images raise into one error."""
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise ReplicationError(f"{what} cannot be read ({type(error).__name__}: {error}); fetch it anew.") from None


def _in_zip(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    archive = zipfile.ZipFile(path)  # closes itself with the last of the functions
    for member in archive.infolist():
        if not member.is_dir():
            yield member.filename, partial(archive.read, member)


def _in_tar(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            if member.isreg():
                yield member.name, partial(_stretch, path, member.offset_data, member.size)


def _stretch(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)
