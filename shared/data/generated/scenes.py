"""Scenes composed of pictures. A line on disk describes a scene, which is drawn when it is read.

A fetched folder has four line-aligned texts for every split, with one line of JSON for each scene:

* ``<split>.captions``: the texts of all its captions;
* ``<split>.mentions``: for each caption its list of ``[start, end, object]`` (`scene_captions.Mention`);
* ``<split>.boxes``: ``[left, top, right, bottom]`` of each object, in pixels;
* ``<split>.scene``: the background and each object's picture, position and size (`Scene`);

and ``pictures.jsonl``, the pictures themselves (`Picture`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.data.generated.scene_captions import Box, Caption, Mention
from shared.data.storage import read_columns, read_lines

SIDE = 224
"""Width and height of a scene in pixels."""

PICTURES = "pictures.jsonl"
"""Name of the file with the pictures in a fetched folder."""

LANGUAGES = ("captions", "mentions", "boxes", "scene")
"""The suffixes of the line-aligned texts of a split, in this order."""

_UNITS = 72  # side of the square on which an OpenMoji picture is drawn
_FINE = 4  # pixels per unit when its box is measured

Image = NDArray[np.uint8]
"""RGB pixels (SIDE, SIDE, 3), or a batch (B, SIDE, SIDE, 3)."""


class Picture(NamedTuple):
    """A drawing with a name; one line of ``pictures.jsonl``.

    Attributes:
        code: code point in hexadecimal, by which scenes refer to the picture.
        name: one or two lower-case words.
        kind: one word for its kind, such as animal or tool.
        seen: whether the picture occurs in training scenes.
        svg: the drawing.
    """

    code: str
    name: str
    kind: str
    seen: bool
    svg: str


class Placed(NamedTuple):
    """A picture in a scene, with the square in pixels on which it is drawn."""

    code: str
    left: int
    top: int
    size: int


class Scene(NamedTuple):
    """The description of a scene; later objects cover earlier ones.

    Attributes:
        colours: RGB at the start and at the end of the linear gradient of the background.
        vertical: whether the gradient is from top to bottom instead of left to right.
        objects: from back to front.
    """

    colours: tuple[Sequence[int], Sequence[int]]
    vertical: bool
    objects: tuple[Placed, ...]


def rasterise(svg: str, size: int) -> Image:
    """Draw a picture: (size, size, 4) RGBA, colours not multiplied by opacity.

    No system font is used, so the pixels depend on the rasteriser alone.
    """
    import resvg_py
    from PIL import Image as Pillow

    png = resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size, skip_system_fonts=True)
    with Pillow.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGBA"))


def extent(svg: str) -> Box:
    """Return the bounding box of a drawing, in 72ths of its side, rounded outwards.

    Raises:
        ValueError: the drawing is empty.
    """
    drawn = rasterise(svg, _UNITS * _FINE)[..., 3] > 0
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if not len(rows):
        raise ValueError("it draws nothing")
    left, top = int(columns[0]) // _FINE, int(rows[0]) // _FINE
    return left, top, int(columns[-1]) // _FINE + 1, int(rows[-1]) // _FINE + 1


def box_of(placed: Placed, drawn: Box) -> Box:
    """Return the box in pixels of a placed picture with the `extent` ``drawn``, rounded outwards."""
    _, left, top, size = placed
    return (
        left + drawn[0] * size // _UNITS,
        top + drawn[1] * size // _UNITS,
        left - (-drawn[2] * size // _UNITS),
        top - (-drawn[3] * size // _UNITS),
    )


def draw(scene: Scene, pictures: Mapping[str, Picture]) -> Image:
    """Draw a scene of pictures, which are known by code, in integer arithmetic: (SIDE, SIDE, 3) RGB."""
    image = _background(scene)
    for code, left, top, size in scene.objects:
        colour, clear = _sprite(pictures[code].svg, size)
        place = image[top : top + size, left : left + size]
        place[:] = (colour + place * clear + 127) // 255
    return image


@cache
def _sprite(svg: str, size: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Colour times opacity (size, size, 3), and 255 minus opacity (size, size, 1)."""
    pixels = rasterise(svg, size).astype(np.uint16)
    opacity = pixels[..., 3:]
    return pixels[..., :3] * opacity, 255 - opacity


def _background(scene: Scene) -> Image:
    first, last = np.array(scene.colours, dtype=np.int64)
    steps = np.arange(SIDE)[:, None]
    line = ((SIDE - 1 - steps) * first + steps * last) // (SIDE - 1)
    line = line[:, None] if scene.vertical else line[None]
    return np.broadcast_to(line.astype(np.uint8), (SIDE, SIDE, 3)).copy()


@dataclass(frozen=True)
class SceneSplit:
    """The scenes of a split, whose images are drawn on access."""

    columns: Mapping[str, Sequence[str]]
    pictures: Mapping[str, Picture]

    @classmethod
    def load(cls, folder: Path, split: str) -> SceneSplit:
        """Open a split of a fetched folder.

        Raises:
            ReplicationError: a file is missing, or the files differ in length.
        """
        pictures = (Picture(**json.loads(line)) for line in read_lines(folder / PICTURES))
        return cls(read_columns(folder, split, LANGUAGES), {picture.code: picture for picture in pictures})

    def __len__(self) -> int:
        return len(self.columns["scene"])

    @cached_property
    def scenes(self) -> list[Scene]:
        """Return the description of a scene."""
        return [
            Scene(tuple(colours), vertical, tuple(Placed(*item) for item in objects))
            for colours, vertical, objects in self._parsed("scene")
        ]

    @cached_property
    def captions(self) -> list[list[Caption]]:
        """Return all captions of each scene, with their mentions of objects."""
        texts, links = self._parsed("captions"), self._parsed("mentions")
        return [
            [Caption(text, tuple(Mention(*link) for link in own)) for text, own in zip(scene, linked, strict=True)]
            for scene, linked in zip(texts, links, strict=True)
        ]

    @cached_property
    def boxes(self) -> list[list[Box]]:
        """Return the box of each object, in the order of the objects of the scene."""
        return [[tuple(box) for box in boxes] for boxes in self._parsed("boxes")]

    def images(self, indices: Iterable[int]) -> Image:
        """Draw the scenes of these indices: (B, SIDE, SIDE, 3) RGB."""
        return np.stack([draw(self.scenes[index], self.pictures) for index in indices])

    def _parsed(self, language: str) -> list[Any]:
        return [json.loads(line) for line in self.columns[language]]
