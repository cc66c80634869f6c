"""Photos with captions. The photos stay in their archives and are decoded when they are read.

A fetched folder has two line-aligned texts for every split, with one line for each photo:

* ``<split>.captions``: all captions of the photo as a JSON list;
* ``<split>.photo``: the file name of the photo;

and the original tar or zip archives, which contain the photos.
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
"""The suffixes of the line-aligned texts of a split, in this order."""

_BORDER = (256 - SIDE) / 2 / 256  # margin that is cropped at each side after resizing


def archives(folder: Path) -> list[Path]:
    """Return the archives in a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in {".tar", ".zip"})


def photos_in(packed: Iterable[Path]) -> dict[str, Callable[[], bytes]]:
    """Return for every file in the archives its base name and a function that reads it.

    Raises:
        ReplicationError: an archive cannot be read.
    """
    found: dict[str, Callable[[], bytes]] = {}
    for path in packed:
        with _readable(path.name):
            listed = _in_zip(path) if path.suffix == ".zip" else _in_tar(path)
            found |= {PurePosixPath(name).name: read for name, read in listed}
    return found


def decode(content: bytes) -> Image:
    """Decode an image file: (SIDE, SIDE, 3) RGB.

    An image of another size is preprocessed as the authors did: the shorter side is scaled to 256 pixels, then the
    centre is cropped.

    Raises:
        OSError: the content is not an image, or is truncated.
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
    """The photos of a split, which are decoded on access."""

    columns: Mapping[str, Sequence[str]]
    packed: Sequence[Path]

    @classmethod
    def load(cls, folder: Path, split: str) -> PhotoSplit:
        """Open a split of a fetched folder.

        Raises:
            ReplicationError: a file is missing, or the files differ in length.
        """
        return cls(read_columns(folder, split, LANGUAGES), archives(folder))

    def __len__(self) -> int:
        return len(self.columns["photo"])

    @cached_property
    def captions(self) -> list[list[Caption]]:
        """Return all captions of each photo; they have no mentions of objects."""
        return [[Caption(text, ()) for text in json.loads(line)] for line in self.columns["captions"]]

    @cached_property
    def boxes(self) -> list[list[Box]]:
        """Return no boxes, because the data has none."""
        return [[] for _ in range(len(self))]

    def images(self, indices: Iterable[int]) -> Image:
        """Return the photos of these indices: (B, SIDE, SIDE, 3) RGB.

        Raises:
            ReplicationError: a photo is missing or damaged.
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
    """Convert the exceptions of damaged archives and images to ReplicationError."""
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise ReplicationError(f"{what} cannot be read ({type(error).__name__}: {error}); fetch it anew.") from None


def _in_zip(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    archive = zipfile.ZipFile(path)  # closed when the last of the functions is garbage-collected
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
