"""A tiny data set of scenes that two squares make, and an encoder that averages colours."""

import itertools
import json
import random

from pydantic import Field
from torch import nn

from shared.config import Strict
from shared.data.generated.scene_captions import Named, captions
from shared.data.generated.scenes import PICTURES, SIDE
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.tasks.in_process import write_columns

SPLITS = {"train": 30, "valid": 7, "test": 8, "pairs": 5}
CAPTIONS = 3  # of each image
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><rect width="72" height="72" fill="{}"/></svg>'
PALETTE = {"red": "#ff0000", "green": "#00ff00", "blue": "#0000ff", "white": "#ffffff"}


class ToyConfig(Strict):
    size: int = Field(ge=1)


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
    """Scenes of two squares of different colours, side by side."""
    choose = random.Random(5)
    folder.mkdir(parents=True)
    with (folder / PICTURES).open("w") as file:
        for name, colour in PALETTE.items():
            picture = {"code": name, "name": name, "kind": "square", "seen": True, "svg": SVG.format(colour)}
            file.write(json.dumps(picture) + "\n")
    pairs = itertools.cycle(itertools.permutations(PALETTE, 2))
    for split, count in SPLITS.items():
        columns = {name: [] for name in ("captions", "mentions", "boxes", "scene")}
        for names in itertools.islice(pairs, count):
            size = choose.randrange(50, 90)
            corners = [(112 * i + choose.randrange(20), choose.randrange(100)) for i in range(2)]
            squares = [(name, *corner, size) for name, corner in zip(names, corners, strict=True)]
            things = [Named(n, (x, y, x + size, y + size)) for n, x, y, _ in squares]
            own = captions(things, CAPTIONS, choose)
            columns["captions"].append([caption.text for caption in own])
            columns["mentions"].append([caption.mentions for caption in own])
            columns["boxes"].append([thing.box for thing in things])
            columns["scene"].append([[[0, 0, 0], [9, 9, 9]], True, squares])
        write_columns(folder, split, **{name: map(json.dumps, rows) for name, rows in columns.items()})
