"""Scenes composed of pictures: on disk a line each that says what is where, drawn when they are read.

A fetched folder has four texts for every split, line-aligned, a line of JSON for each scene:

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
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.data.generated.scene_captions import Box, Caption, Mention
from shared.data.storage import read_columns, read_lines
from shared.errors import ReplicationError

SIDE = 224
"""Width and height of a scene in pixels."""

PICTURES = "pictures.jsonl"
"""The file of the pictures in a fetched folder."""

LANGUAGES = ("captions", "mentions", "boxes", "scene")
"""The line-aligned texts of a split, in this order."""

_UNITS = 72  # an OpenMoji picture is drawn on a square of this side
_FINE = 4  # pixels a unit in which its box is measured

Image = NDArray[np.uint8]
"""(SIDE, SIDE, 3) RGB, or with a batch in front."""


class Picture(NamedTuple):
    """A drawing with a name; a line of ``pictures.jsonl``.

    Attributes:
        code: its code point in hexadecimal, as scenes refer to it.
        name: one or two lower-case words.
        kind: one word for what it is, such as animal or tool.
        seen: whether it occurs in training scenes.
        svg: the drawing.
    """

    code: str
    name: str
    kind: str
    seen: bool
    svg: str


class Placed(NamedTuple):
    """A picture in a scene: the square that it is drawn on, in pixels."""

    code: str
    left: int
    top: int
    size: int


class Scene(NamedTuple):
    """What there is to draw; later objects cover earlier ones.

    Attributes:
        colours: RGB at the start and at the end; between them the background changes linearly.
        vertical: whether it changes from top to bottom, not from left to right.
        objects: from back to front.
    """

    colours: tuple[Sequence[int], Sequence[int]]
    vertical: bool
    objects: tuple[Placed, ...]

    @classmethod
    def parse(cls, line: str) -> Scene:
        """Read what ``json.dumps`` writes of a scene."""
        colours, vertical, objects = json.loads(line)
        return cls(tuple(colours), vertical, tuple(Placed(*item) for item in objects))


class _Sprite(NamedTuple):
    """A picture ready to be laid over others: colour times opacity, and 255 less opacity."""

    colour: NDArray[np.uint16]  # (size, size, 3)
    clear: NDArray[np.uint16]  # (size, size, 1)


def rasterise(svg: str, size: int) -> Image:
    """Draw a picture: (size, size, 4) RGBA, colours not multiplied by opacity.

    No font of the machine is used, so the pixels depend on the rasteriser alone.
    """
    import resvg_py
    from PIL import Image as Pillow

    png = resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size, skip_system_fonts=True)
    with Pillow.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGBA"))


def extent(svg: str) -> Box:
    """The box of what a picture draws, in 72ths of its side, rounded outwards.

    Raises:
        ReplicationError: it draws nothing.
    """
    drawn = rasterise(svg, _UNITS * _FINE)[..., 3] > 0
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if not len(rows):
        raise ReplicationError("a picture draws nothing; check the artwork, and fetch it anew.")
    left, top = int(columns[0]) // _FINE, int(rows[0]) // _FINE
    return left, top, int(columns[-1]) // _FINE + 1, int(rows[-1]) // _FINE + 1


def box_of(placed: Placed, drawn: Box) -> Box:
    """The box in pixels of a placed picture whose `extent` is ``drawn``, rounded outwards."""
    _, left, top, size = placed
    return (
        left + drawn[0] * size // _UNITS,
        top + drawn[1] * size // _UNITS,
        left - (-drawn[2] * size // _UNITS),
        top - (-drawn[3] * size // _UNITS),
    )


class Artwork:
    """Pictures by their code, drawn once for each size that is asked for."""

    def __init__(self, pictures: Iterable[Picture]) -> None:
        self.pictures: Mapping[str, Picture] = {picture.code: picture for picture in pictures}
        self._sprites: dict[tuple[str, int], _Sprite] = {}

    @classmethod
    def load(cls, folder: Path) -> Artwork:
        """The pictures of a fetched folder.

        Raises:
            ReplicationError: there are none.
        """
        return cls(Picture(**json.loads(line)) for line in read_lines(folder / PICTURES))

    def draw(self, scene: Scene) -> Image:
        """(SIDE, SIDE, 3) RGB of a scene, in whole numbers throughout.

        Raises:
            ReplicationError: one of its pictures is not here.
        """
        image = _background(scene)
        for code, left, top, size in scene.objects:
            sprite = self._sprite(code, size)
            place = image[top : top + size, left : left + size]
            place[:] = (sprite.colour + place * sprite.clear + 127) // 255
        return image

    def _sprite(self, code: str, size: int) -> _Sprite:
        if code not in self.pictures:
            raise ReplicationError(f"a scene shows the picture {code}, which is not in {PICTURES}; fetch both anew.")
        if (code, size) not in self._sprites:
            pixels = rasterise(self.pictures[code].svg, size).astype(np.uint16)
            opacity = pixels[..., 3:]
            self._sprites[code, size] = _Sprite(pixels[..., :3] * opacity, 255 - opacity)
        return self._sprites[code, size]


def _background(scene: Scene) -> Image:
    first, last = np.array(scene.colours, dtype=np.int64)
    steps = np.arange(SIDE)[:, None]
    line = ((SIDE - 1 - steps) * first + steps * last) // (SIDE - 1)
    line = line[:, None] if scene.vertical else line[None]
    return np.broadcast_to(line.astype(np.uint8), (SIDE, SIDE, 3)).copy()


@dataclass(frozen=True)
class SceneSplit:
    """The scenes of a split; their images are drawn when asked for."""

    columns: Mapping[str, Sequence[str]]
    artwork: Artwork

    @classmethod
    def load(cls, folder: Path, split: str) -> SceneSplit:
        """Open a split of a fetched folder.

        Raises:
            ReplicationError: a file is missing, or they differ in length.
        """
        return cls(read_columns(folder, split, LANGUAGES), Artwork.load(folder))

    def __len__(self) -> int:
        return len(self.columns["scene"])

    @cached_property
    def scenes(self) -> list[Scene]:
        """What is where."""
        return [Scene.parse(line) for line in self.columns["scene"]]

    @cached_property
    def captions(self) -> list[list[Caption]]:
        """All captions of each scene, with what their nouns name."""
        texts, links = self._parsed("captions"), self._parsed("mentions")
        return [
            [Caption(text, tuple(Mention(*link) for link in own)) for text, own in zip(scene, linked, strict=True)]
            for scene, linked in zip(texts, links, strict=True)
        ]

    @cached_property
    def boxes(self) -> list[list[Box]]:
        """The box of each object, in the order of the scene's objects."""
        return [[tuple(box) for box in boxes] for boxes in self._parsed("boxes")]

    def images(self, indices: Iterable[int]) -> Image:
        """(B, SIDE, SIDE, 3) RGB of these scenes."""
        return np.stack([self.artwork.draw(self.scenes[index]) for index in indices])

    def _parsed(self, language: str) -> list[Any]:
        return [json.loads(line) for line in self.columns[language]]
