"""A tiny corpus of captioned scenes, and two captioners that need no training."""

import json
import random

import torch
from torch import nn

from shared.data.generated.scene_captions import Named, captions
from shared.data.generated.scenes import LANGUAGES, Picture, Placed, Scene
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.protocol import select_beams, select_sources
from shared.tasks.captioning.corpus import Captioned, Grid
from tests.tasks.in_process import write_columns

GRID = Grid(rows=2, columns=4, size=5)
PLACES = GRID.rows * GRID.columns
SQUARE = '<svg viewBox="0 0 72 72" xmlns="http://www.w3.org/2000/svg"><rect width="72" height="72"/></svg>'
PICTURES = [
    Picture("1", "cat", "animal", True, SQUARE),
    Picture("2", "polar bear", "animal", True, SQUARE),
    Picture("3", "mobile phone", "device", True, SQUARE),
    Picture("4", "canoe", "vehicle", False, SQUARE),
]
QUARTERS = [(0, 0), (112, 0), (0, 112), (112, 112)]


class ToyCaptioner(nn.Module):
    """Attends by the symbol before, and predicts from that symbol, what it sees and how long the caption is."""

    def __init__(self, vocabulary, *, attends=True, gated=True, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.keys, self.gate, self.after, self.seen = (
            nn.Parameter(torch.randn(shape, generator=generator))
            for shape in ((vocabulary, GRID.size), (vocabulary,), (vocabulary, vocabulary), (GRID.size, vocabulary))
        )
        self.attends, self.gated = attends, gated

    def predict(self, features, previous, steps):
        """Of (B, n) symbols: log-probabilities (B, n, V), weights (B, n, L) and gates (B, n)."""
        weights = (self.keys[previous] @ features.transpose(1, 2)).softmax(-1)
        gates = self.gate[previous].sigmoid()
        logits = self.after[previous] + gates.unsqueeze(-1) * (weights @ features) @ self.seen
        logits[..., EOS] += 0.5 * steps
        return logits.log_softmax(-1), weights, gates

    def forward(self, features, captions, regions=None):
        assert not self.training
        previous = nn.functional.pad(captions[:, :-1], (1, 0), value=BOS)
        log_probs, weights, gates = self.predict(features, previous, torch.arange(captions.size(1)))
        nats = -log_probs.gather(2, captions.unsqueeze(2)).squeeze(2) * (captions != PAD)
        return Captioned(nats, weights if self.attends else None, gates if self.gated else None)

    def start(self, features):
        return features, 0

    def step(self, tokens, state):
        features, steps = state
        log_probs, weights, _ = self.predict(features, tokens, torch.tensor(steps))
        return log_probs, weights if self.attends else None, (features, steps + 1)

    def reorder(self, state, sources, beams):
        return select_sources(state[0], sources), state[1]


class Parrot(nn.Module):
    """Says a caption that it was given of each image, whose number its features begin with, looking at one place."""

    def __init__(self, tokenizer, said, places):
        super().__init__()
        self.said = [[*line, EOS] for line in tokenizer.encode(said)]
        self.places, self.size = places, len(tokenizer)
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, features, captions, regions=None):
        weights = torch.zeros(*captions.shape, PLACES)
        for row, image in enumerate(features[:, 0, 0].long().tolist()):
            weights[row, :, self.places[image]] = 1
        return Captioned(torch.ones(captions.shape) * (captions != PAD), weights)

    def start(self, features):
        return features, torch.zeros(len(features), 1, dtype=torch.long)

    def step(self, tokens, state):
        features, steps = state
        log_probs = torch.full((*tokens.shape, self.size), -20.0)
        for row, image in enumerate(features[:, 0, 0].long().tolist()):
            log_probs[row, :, self.said[image][int(steps[row, 0])]] = -0.1
        return log_probs, None, (features, steps + 1)

    def reorder(self, state, sources, beams):
        return select_sources(state[0], sources), select_beams(state[1], sources, beams)


def write_split(folder, split, scenes, seed):
    """``scenes`` are lists of numbers of pictures; of each three captions are made, the last calls one by its kind."""
    rng, columns = random.Random(seed), {language: [] for language in LANGUAGES}
    for numbers in scenes:
        things = [PICTURES[number] for number in numbers]
        sizes = [rng.randint(40, 100) for _ in things]
        corners = [
            (left + rng.randint(0, 10), top + rng.randint(0, 10)) for left, top in rng.sample(QUARTERS, len(things))
        ]
        boxes = [(x, y, x + size, y + size) for (x, y), size in zip(corners, sizes, strict=True)]
        placed = tuple(Placed(of.code, x, y, size) for of, (x, y), size in zip(things, corners, sizes, strict=True))
        named = [Named(of.name if of.seen else of.kind, box) for of, box in zip(things, boxes, strict=True)]
        by_kind = [Named(things[0].kind, boxes[0]), *named[1:]]
        said = captions(named, 2, rng) + captions(by_kind, 1, rng)
        scene = Scene(([200, 90, 10], [9, 90, 200]), True, placed)
        values = [c.text for c in said], [c.mentions for c in said], boxes, scene
        for language, value in zip(LANGUAGES, values, strict=True):
            columns[language].append(json.dumps(value))
    write_columns(folder, split, **columns)
