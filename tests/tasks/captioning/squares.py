"""A tiny data set of scenes of coloured squares, and an encoder that averages colours."""

import itertools
import json
import random

from torch import nn

from shared.data.generated import scenes as of_scenes
from shared.data.generated.scene_captions import captions
from shared.data.generated.scenes import LANGUAGES, SIDE, Picture, Placed, Scene
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.tasks.in_process import ToyConfig as ToyConfig
from tests.tasks.in_process import write_columns

SPLITS = {"train": 30, "valid": 7, "test": 8, "pairs": 5}
CAPTIONS = 3  # of each image
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><rect width="72" height="72" fill="{}"/></svg>'
PICTURES = [
    Picture("1", "cat", "animal", True, SVG.format("red")),
    Picture("2", "polar bear", "animal", True, SVG.format("lime")),
    Picture("3", "mobile phone", "device", True, SVG.format("blue")),
    Picture("4", "canoe", "vehicle", False, SVG.format("white")),
]
QUARTERS = [(0, 0), (112, 0), (0, 112), (112, 112)]


class Toy(ToyCaptioner):
    """The captioner that tests train, for this vocabulary and grid."""

    def __init__(self, config, vocabulary, grid):
        super().__init__(size=config.size, vocabulary=vocabulary, width=grid.size)


class Colours(nn.Module):
    """The mean colour of each of 4 x 4 places, 0 to 1."""

    rows, columns, size = 4, 4, 3

    def forward(self, images):
        side = SIDE // 4
        cells = images.float().view(-1, 4, side, 4, side, 3) / 255
        return cells.mean((2, 4)).flatten(1, 2)


def write_dataset(folder):
    """Scenes of two squares."""
    pairs = itertools.cycle(itertools.permutations(range(len(PICTURES)), 2))
    write_pictures(folder, PICTURES)
    for seed, (split, count) in enumerate(SPLITS.items()):
        write_split(folder, split, itertools.islice(pairs, count), seed)


def write_pictures(folder, pictures):
    folder.mkdir(parents=True)
    lines = (json.dumps(picture._asdict()) + "\n" for picture in pictures)
    (folder / of_scenes.PICTURES).write_text("".join(lines))


def write_split(folder, split, scenes, seed):
    """``scenes`` are numbers of pictures; of each three captions are made, the last calls one by its kind."""
    rng, rows = random.Random(seed), []
    for numbers in scenes:
        things = [PICTURES[number] for number in numbers]
        sizes = [rng.randint(40, 100) for _ in things]
        corners = [
            (left + rng.randint(0, 10), top + rng.randint(0, 10)) for left, top in rng.sample(QUARTERS, len(things))
        ]
        boxes = [(x, y, x + size, y + size) for (x, y), size in zip(corners, sizes, strict=True)]
        placed = tuple(Placed(of.code, x, y, size) for of, (x, y), size in zip(things, corners, sizes, strict=True))
        names = [of.name if of.seen else of.kind for of in things]
        said = captions(names, boxes, 2, rng) + captions([things[0].kind, *names[1:]], boxes, 1, rng)
        rows.append((said, boxes, Scene(([200, 90, 10], [9, 90, 200]), True, placed)))
    write_scenes(folder, split, rows)


def write_scenes(folder, split, rows):
    """Captions, boxes and the scene of each image."""
    columns = zip(*(([c.text for c in said], [c.mentions for c in said], *more) for said, *more in rows), strict=True)
    write_columns(folder, split, **{
        language: map(json.dumps, column) for language, column in zip(LANGUAGES, columns, strict=True)
    })  # fmt: skip
