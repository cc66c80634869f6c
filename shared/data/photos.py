"""Photos with captions. The photos stay in their archives and are decoded when they are read.

A fetched folder has two line-aligned texts for every split, with one line for each photo:

* ``<split>.captions``: all captions of the photo as a JSON list;
* ``<split>.photo``: the name of the photo's file, with the folders that tell it from others of that name;

and the original tar or zip archives, which contain the photos.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from shared.data.archives import stored
from shared.data.generated.scene_captions import Box, Caption
from shared.data.generated.scenes import SIDE, Image
from shared.data.opening import is_hidden, listed, read_picture, reading, twin
from shared.data.storage import read_columns
from shared.errors import ReplicationError

LANGUAGES = ("captions", "photo")
"""The suffixes of the line-aligned texts of a split, in this order."""

_BORDER = (256 - SIDE) / 2 / 256  # margin that is cropped at each side after resizing


class Photos:
    """The files in archives, by name.

    Raises:
        ReplicationError: an archive cannot be read.
    """

    def __init__(self, packed: Iterable[Path]) -> None:
        self._whole: dict[str, list[Callable[[], bytes]]] = {}
        self._ends: dict[str, list[Callable[[], bytes]]] = {}
        for path in packed:
            with reading(path.name):
                for name, read in dict(stored(path)).items():
                    parts = PurePosixPath(name).parts
                    for start in () if is_hidden(PurePosixPath(name)) else range(len(parts)):
                        (self._ends if start else self._whole).setdefault("/".join(parts[start:]), []).append(read)

    def read(self, name: str) -> bytes:
        """Return the content of the photo that has this path in an archive or, if there is none, a path that so ends.

        Raises:
            ReplicationError: there is no such photo, or several, or it is damaged.
        """
        self.check({name: "the split"})
        with reading(f"the photo {name}"):
            return self._found(name)[0]()

    def check(self, names: Mapping[str, str]) -> None:
        """Raise a ReplicationError unless each name is that of one photo; it says where the name stands, the value."""
        counts = {name: len(self._found(name)) for name in names}
        if missing := [name for name, count in counts.items() if not count]:
            first = f"'{missing[0]}' of {names[missing[0]]}{twin(missing[0], self._whole | self._ends)}"
            raise ReplicationError(
                f"photos that are in no archive: {len(missing)}, among them {first}; fetch the data set anew, or "
                "correct the names, which are paths inside of the archive or folder, to the byte."
            )
        if several := [f"'{name}' of {names[name]}" for name, count in counts.items() if count > 1]:
            raise ReplicationError(f"several photos are called {several[0]}; write the folder before the name.")

    def others(self, names: Iterable[str]) -> int:
        """How many photos there are that none of the names is of."""
        named = {id(self._found(name)[0]) for name in names}
        return sum(id(photo) not in named for photos in self._whole.values() for photo in photos)

    def _found(self, name: str) -> list[Callable[[], bytes]]:
        return self._whole.get(name) or self._ends.get(name, [])


def archives(folder: Path) -> list[Path]:
    """Return the archives in a folder, sorted by name."""
    return [path for path in listed(folder) if path.suffix.lower() in {".tar", ".zip"}]


def decode(content: bytes) -> Image:
    """Decode an image file: (SIDE, SIDE, 3) RGB.

    An image of another size is preprocessed as the authors did: the shorter side is scaled to 256 pixels, then the
    centre is cropped.

    Raises:
        ValueError: as :func:`shared.data.opening.read_picture`.
    """
    from PIL import Image as Pillow
    from PIL import ImageOps

    pixels = read_picture(content)
    if pixels.shape[:2] == (SIDE, SIDE):
        return pixels
    return np.asarray(ImageOps.fit(Pillow.fromarray(pixels), (SIDE, SIDE), bleed=_BORDER))


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
        content = self._photos.read(name)
        with reading(f"the photo {name}"):
            return decode(content)

    @cached_property
    def _photos(self) -> Photos:
        return Photos(self.packed)
