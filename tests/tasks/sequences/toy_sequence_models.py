"""Toys of sequences: a small recurrent model, models whose answers can be worked out by hand, made-up corpora."""

from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import nn

from shared.config import Strict
from shared.data.generated.sequences import FILE
from shared.data.homology import AMINO_ACIDS
from shared.data.ragged import RaggedArray
from shared.data.storage import write_lines
from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics
from shared.tasks.sequences.batches import Sequences
from shared.tasks.sequences.proteins import proteins
from shared.tasks.sequences.settings import FIRST

COUNTS = {"train": 60, "valid": 5, "test": 23, "test_families": 7}  # of random proteins and pictures
CARD = {
    "languages": {}, "splits": {},
    "sources": [{"kind": "generated", "task": "copy", "parameters": {"seed": 1, "symbols": 6}}],
}  # fmt: skip


class ToyConfig(Strict):
    size: int = Field(ge=1)
    noise: float = 0.0
    dropout: float = 0.0


class Toy(nn.Module):
    """Gated recurrent units, which read both ways where all may be seen; updates draw what is added to embeddings."""

    def __init__(self, config, vocabulary, causal):
        super().__init__()
        both = 1 if causal else 2
        self.embedding, self.noise, self.told = nn.Embedding(vocabulary, config.size), config.noise, []
        self.dropout = nn.Dropout(config.dropout)
        self.layer = nn.GRU(config.size, config.size, batch_first=True, bidirectional=not causal)
        self.output = CategoricalOutput(width=both * config.size, symbols=vocabulary)
        self.register_buffer("origin", torch.randint(2**31, ()))
        self.register_buffer("drawn", torch.randn(config.size))

    def forward(self, inputs, mask=None):
        x = self.dropout(self.embedding(inputs) + self.noise * self.drawn)
        return self.layer(x if mask is None else x * mask.unsqueeze(-1))[0]

    def at_update(self, number):
        self.told.append(number)
        generator = torch.Generator().manual_seed(int(self.origin) + number)
        self.drawn.copy_(torch.randn(self.drawn.shape, generator=generator))

    def generate(self, inputs, length, generator=None):
        read = inputs
        for _ in range(length):
            read = torch.cat((read, self.output.sample(self(read)[:, -1], generator).unsqueeze(1)), dim=1)
        return read[:, inputs.size(1) :]


def random_proteins(count: int, seed: int) -> Sequences:
    """Letters of which each is often that of two places before, some of them to be predicted from all others."""
    generator = np.random.default_rng(seed)
    lines = []
    for length in generator.integers(5, 12, count):
        letters = generator.integers(FIRST, FIRST + 6, length)
        for place in range(2, length):
            if generator.random() < 0.8:
                letters[place] = letters[place - 2]
        lines.append(letters.tolist())
    return proteins(RaggedArray.pack(lines, np.uint8), masked=True)


def write_copies(folder: Path, symbols: int = 5) -> None:
    """What fetching leaves of the copy task."""
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(f'{{"seed": 7, "symbols": {symbols}}}')


def write_proteins(folder: Path, counts: dict[str, int]) -> None:
    """So many random proteins of 3 to 40 letters in each split, as they are fetched; three make a family."""
    rng = np.random.default_rng(5)
    folder.mkdir(exist_ok=True)
    for split, count in counts.items():
        lines = ["".join(rng.choice(list(AMINO_ACIDS), rng.integers(3, 41))) for _ in range(count)]
        write_lines(folder / f"{split}.sequence", lines)
        write_lines(folder / f"{split}.name", ["Protein"] * count)
        write_lines(folder / f"{split}.key", [f"F{i // 3}:{split}{i}" for i in range(count)])


def write_pictures(folder: Path, counts: dict[str, int], shape=(4, 4, 1), seed: int = 3) -> dict[str, np.ndarray]:
    """So many random pictures in each split, as they are fetched; returns them."""
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    splits = {name: rng.integers(0, 256, (count, *shape), dtype=np.uint8) for name, count in counts.items()}
    for name, images in splits.items():
        np.save(folder / f"{name}.images.npy", images)
    return splits


WIDTH = 6


class MeanReader(nn.Module):
    """The state of a place is the mean embedding of those before it and its own, or of all symbols if not causal.

    Attributes:
        reads: of every call what was read, a row for each sequence without its padding.
    """

    def __init__(self, symbols, causal, *, seed=3, levels=None):
        super().__init__()
        self.causal, self.reads = causal, []
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(symbols, WIDTH)
            if levels is None:
                self.output = CategoricalOutput(width=WIDTH, symbols=symbols)
            else:
                self.output = MixtureOfLogistics(width=WIDTH, levels=levels, components=2)
            nn.init.normal_(self.output.projection.weight, std=0.2 if levels else 1.0)

    def forward(self, inputs, mask=None):
        assert torch.is_inference_mode_enabled()
        mask = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        self.reads.append([row[kept].tolist() for row, kept in zip(inputs, mask, strict=True)])
        x = self.embedding(inputs) * mask.unsqueeze(-1)
        if self.causal:
            return x.cumsum(1) / mask.cumsum(1).unsqueeze(-1) + self.embedding(inputs)
        return x.sum(1, keepdim=True) / mask.sum(1)[:, None, None] + self.embedding(inputs)

    def at_update(self, number):
        raise AssertionError("nothing is trained")

    generate = Toy.generate


class Copier(MeanReader):
    """Knows the copy task, but for the symbols that it cannot read."""

    def __init__(self, symbols, blind=()):
        super().__init__(symbols, causal=True)
        self.blind, self.output = blind, Certain()

    def forward(self, inputs, mask=None):
        places, size = torch.arange(inputs.size(1)), inputs[:, 1:].eq(0).int().argmax(1, keepdim=True)
        known = inputs.gather(1, (places - size).clamp(min=0))
        for symbol in self.blind:
            known = known.where(known != symbol, 0)
        return known.unsqueeze(-1)


class Certain(nn.Module):
    """The state is the symbol that has nine tenths, of ten."""

    def log_probs(self, h):
        return torch.where(h == torch.arange(10), 0.9, 0.1 / 9).log()

    def forward(self, h, targets):
        return -self.log_probs(h).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


class Broken(CategoricalOutput):
    """Predicts no number where the target is one of these symbols."""

    def __init__(self, output, symbols):
        super().__init__(width=WIDTH, symbols=output.projection.out_features)
        self.load_state_dict(output.state_dict())
        self.symbols = torch.tensor(symbols)

    def log_probs(self, h):
        return super().log_probs(h).index_fill(-1, self.symbols, float("nan"))

    def forward(self, h, targets):
        return super().forward(h, targets).masked_fill(torch.isin(targets, self.symbols), float("nan"))
