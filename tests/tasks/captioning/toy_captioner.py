"""A captioner small enough to be trained in a test, and pictures for it."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.protocol import select_beams, select_sources
from shared.tasks.captioning.corpus import Captioned, CaptionedSplit, ImageBatch
from shared.vision.features import Grid

THINGS, PLACES, WIDTH = 5, 4, 5
VOCABULARY = 4 + THINGS + 2
AND, BOTH = VOCABULARY - 2, VOCABULARY - 1
LONGEST = 7


def texts(captions: list[list[int]]) -> list[str]:
    """The words of captions: their symbols in digits."""
    return [" ".join(map(str, symbols)) for symbols in captions]


def random_pictures(count: int, seed: int) -> CaptionedSplit:
    """Pictures of two different things, with two captions each: "both this and that", "this and that both and"."""
    generator = np.random.default_rng(seed)
    features = generator.normal(0, 0.1, (count, PLACES, WIDTH)).astype(np.float16)
    captions: list[list[int]] = []
    for picture in features:
        places, things = generator.permutation(PLACES)[:2], generator.permutation(THINGS)[:2]
        picture[places, things] += 1
        one, other = sorted(4 + things)
        captions += [[BOTH, one, AND, other, EOS], [one, AND, other, BOTH, AND, EOS]]
    packed = RaggedArray.pack(captions)
    nothing = np.full(len(packed.flat), -1, dtype=np.int32), np.zeros((0, 4))
    return CaptionedSplit(features, packed, np.arange(2 * count) // 2, *nothing, Grid(2, 2, WIDTH))


def image_batches(split: CaptionedSplit, size: int) -> list[ImageBatch]:
    """All pictures of a split, so many together, with their captions."""
    batches = []
    for images in np.split(np.arange(len(split.features)), range(size, len(split.features), size)):
        own = [[split.captions[i][:-1].tolist() for i in np.flatnonzero(split.image == n)] for n in images]
        batches.append(ImageBatch(split.image_features(images), tuple(tuple(texts(lines)) for lines in own)))
    return batches


class ToyState(NamedTuple):
    """What the toy remembers: (B, L, D) and (B, k, n)."""

    features: Tensor
    hidden: Tensor


class ToyCaptioner(nn.Module):
    """Looks at all places by their weights, and in training also at one that is drawn, whose choice is reinforced.

    What is good is judged against a moving average, which is a buffer, as hard attention has it. A reader is shown
    where it looks, if it ``attends``, and how much what it has seen counts, if it is ``gated``.
    """

    baseline: Tensor
    reinforced = True

    def __init__(
        self, dropout: float = 0.0, size: int = 24, vocabulary: int = VOCABULARY, width: int = WIDTH, *,
        attends: bool = True, gated: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.attends, self.gated = attends, gated
        self.embedding, self.dropout = nn.Embedding(vocabulary, size), nn.Dropout(dropout)
        self.attend, self.place = nn.Linear(size, width), nn.Linear(width, width)
        self.cell = nn.GRUCell(size + width, size)
        self.output = nn.Linear(size + width, vocabulary)
        self.register_buffer("baseline", torch.zeros(()))

    def forward(self, features: Tensor, captions: Tensor, regions: Tensor | None = None) -> Captioned:
        previous, hidden = torch.full_like(captions[:, 0], BOS), self._begin(features)
        nats, weights, gates, drawn = [], [], [], []
        for symbols in captions.unbind(1):
            log_p, alpha, hidden = self._predict(features, previous, hidden)
            nats.append(functional.nll_loss(log_p, symbols, ignore_index=PAD, reduction="none"))
            weights.append(alpha)
            gates.append(hidden[:, 0].sigmoid())
            if self.training and self.reinforced:
                drawn.append(alpha.gather(1, torch.multinomial(alpha, 1)).log()[:, 0])
            previous = symbols
        summed, attention = torch.stack(nats, 1), torch.stack(weights, 1) if self.attends else None
        if not drawn:
            return Captioned(summed, attention, torch.stack(gates, 1) if self.gated else None)
        reward = -summed.detach().mean(1)
        auxiliary = -0.01 * (reward - self.baseline) * torch.stack(drawn, 1).sum(1)
        self.baseline.mul_(0.9).add_(0.1 * reward.mean())
        return Captioned(summed, attention, None, auxiliary)

    def start(self, features: Tensor) -> ToyState:
        return ToyState(features, self._begin(features).unsqueeze(1))

    def step(self, tokens: Tensor, state: ToyState) -> tuple[Tensor, Tensor | None, ToyState]:
        beams = tokens.size(1)
        features = state.features.repeat_interleave(beams, 0)
        parts = self._predict(features, tokens.flatten(), state.hidden.flatten(0, 1))
        log_p, alpha, hidden = (part.unflatten(0, (-1, beams)) for part in parts)
        return log_p, alpha if self.attends else None, ToyState(state.features, hidden)

    def reorder(self, state: ToyState, sources: Tensor | None, beams: Tensor) -> ToyState:
        return ToyState(select_sources(state.features, sources), select_beams(state.hidden, sources, beams))

    def _begin(self, features: Tensor) -> Tensor:
        return features.new_zeros(len(features), self.cell.hidden_size)

    def _predict(self, features: Tensor, previous: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        alpha = (self.place(features) @ self.attend(hidden).unsqueeze(2)).squeeze(2).softmax(1)  # (B, L)
        context = torch.cat([self.dropout(self.embedding(previous)), features.sum(1)], 1)
        hidden = self.cell(context, hidden)
        seen = (alpha.unsqueeze(1) @ features).squeeze(1)
        return self.output(torch.cat([self.dropout(hidden), seen], 1)).log_softmax(1), alpha, hidden
