"""A tiny data set of scenes that two squares make, an encoder that averages colours, and a captioner that can learn."""

import itertools
import json
import random

import torch
from pydantic import Field
from torch import nn

from shared.config import Strict
from shared.data.generated.scene_captions import Named, captions
from shared.data.generated.scenes import PICTURES, SIDE
from shared.data.tokenizers import BOS, PAD
from shared.decoding.protocol import select_sources
from shared.tasks.captioning.corpus import Captioned
from tests.tasks.in_process import write_columns

SPLITS = {"train": 30, "valid": 7, "test": 8, "pairs": 5}
CAPTIONS = 3  # of each image
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><rect width="72" height="72" fill="{}"/></svg>'
PALETTE = {"red": "#ff0000", "green": "#00ff00", "blue": "#0000ff", "white": "#ffffff"}


class ToyConfig(Strict):
    size: int = Field(ge=1)


class Toy(nn.Module):
    """The next word by the last one and what it attends to."""

    def __init__(self, config, vocabulary, grid):
        super().__init__()
        self.words, self.see = nn.Embedding(vocabulary, config.size), nn.Linear(grid.size, config.size)
        self.say = nn.Linear(config.size, vocabulary)

    def _read(self, tokens, seen):
        words = self.words(tokens)
        attention = (words @ seen.mT).softmax(-1)
        return self.say(torch.tanh(words + attention @ seen)).log_softmax(-1), attention

    def forward(self, features, captions, regions=None):
        before = captions.roll(1, 1)
        before[:, 0] = BOS
        log_probs, attention = self._read(before, self.see(features))
        nats = -log_probs.gather(-1, captions.unsqueeze(-1)).squeeze(-1)
        return Captioned(nats * (captions != PAD), attention)

    def start(self, features):
        return self.see(features)

    def step(self, tokens, state):
        return *self._read(tokens, state), state

    def reorder(self, state, sources, beams):
        return select_sources(state, sources)


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
