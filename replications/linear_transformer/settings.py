"""Settings of the Linear Transformer, of what it is compared with, and of the studies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, PositiveInt, model_validator

from shared.config import Ascending
from shared.errors import ReplicationError
from shared.tasks.sequences.settings import ScalingConfig, SequenceRun, check_length
from shared.tasks.settings import NetworkStudyConfig, Routes, TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        attention: elu(x) + 1, softmax, or Reformer's hashing.
        dropout: of attention and feed-forward networks.
        output: a softmax, or a mixture of so many ``components`` logistics, whose symbols are levels of a pixel.
        positions: sinusoids added to embeddings, or beside embeddings of half the width;
            or those of the row and the column of a square picture beside such embeddings.
        rounds, buckets, chunk: of hashing; positions are compared with those of two chunks.
        max_length: symbols of the longest sequence.
    """

    attention: Literal["linear", "softmax", "lsh"]
    dropout: float = Field(default=0.0, ge=0, lt=1)
    output: Literal["categorical", "logistics"] = "categorical"
    components: PositiveInt = 10
    positions: Literal["added", "concatenated", "rows and columns"] = "added"
    rounds: PositiveInt = 1
    buckets: PositiveInt | None = Field(default=None, multiple_of=2)
    chunk: PositiveInt | None = None
    max_length: PositiveInt

    @model_validator(mode="after")
    def _sizes_fit(self) -> ModelConfig:
        if self.attention == "lsh" and (self.buckets is None or self.chunk is None):
            raise ValueError("attention by hashing needs buckets and chunk")
        pairs = {"added": 2, "concatenated": 4, "rows and columns": 8}[self.positions]
        if self.width % pairs:
            raise ValueError(
                f"width ({self.width}) must be a multiple of {pairs}: sinusoids come in pairs, where positions are "
                f"{self.positions}"
            )
        if self.columns and self.columns**2 != self.max_length:
            raise ValueError(
                f"positions are rows and columns of a square picture, and max_length ({self.max_length}) is no square"
            )
        return self

    @property
    def columns(self) -> int | None:
        """Pixels of a row, where positions are rows and columns."""
        return math.isqrt(self.max_length) if self.positions == "rows and columns" else None


def suits(section: ModelConfig, run: SequenceRun, where: str) -> None:
    """Refuse a model that cannot be trained on the data of its variant, or cannot draw pictures of them.

    Raises:
        ReplicationError: names the setting.
    """
    check_length(run, where, "max_length", section.max_length)
    if section.output == "logistics" and run.corpus.of != "pixels":
        raise ReplicationError(f"{where}: output: logistics is for levels of pixels only; leave it out.")


SUBJECTS: dict[str, tuple[dict[str, Any], bool]] = {
    "softmax": ({"attention": "softmax"}, False),
    "stateful_softmax": ({"attention": "softmax"}, True),
    "lsh_1": ({"attention": "lsh", "rounds": 1}, False),
    "lsh_4": ({"attention": "lsh", "rounds": 4}, False),
    "linear": ({"attention": "linear"}, True),
}
"""Rows of tables 4 and 5: changes to the task's network, and whether it goes step by step."""


class ExactnessConfig(NetworkStudyConfig):
    """A variant's ``model`` section; all other keys are settings of the network, whose class checks them.

    Attributes:
        symbols: of the vocabulary
        length: T where forms are compared
        lengths: T where what is kept is counted
        draws: random networks
    """

    measured = ("layer_*.*", "model_*.*", "*.kept*", "kept_ratio")
    symbols: PositiveInt = 12
    length: PositiveInt = 200
    lengths: Ascending
    draws: PositiveInt = 3

    @property
    def linear(self) -> dict[str, Any]:
        """The settings of the network, which is made linear."""
        return {**self.network, "attention": "linear", "max_length": self.length}

    def networks(self) -> Iterator[dict[str, Any]]:
        """That network."""
        yield self.linear


class GenerationConfig(NetworkStudyConfig):
    """A variant's ``model`` section; all other keys are settings of the network, whose class checks them.

    Attributes:
        length: T of a picture
        symbols: of the vocabulary
        batch: B at once; one picture is always timed as well
        recomputed: of B, how many go through a network together where prefixes are recomputed; else all
        places: equal spans of a picture that are timed apart
        repeats: pictures, of which there are medians
    """

    measured = ("*.*growth*", "*.seconds*", "speedup_over_*", "state_ratio", "throughput_over_*")
    length: int = Field(default=784, ge=4)
    symbols: PositiveInt = 257
    batch: int = Field(ge=2)
    recomputed: PositiveInt | None = None
    places: int = Field(default=6, ge=2)
    repeats: PositiveInt = 5

    @model_validator(mode="after")
    def _parts_fit(self) -> GenerationConfig:
        if self.places > self.length:
            raise ValueError(f"{self.places} places do not fit into a length of {self.length}")
        if self.batch % (self.recomputed or self.batch):
            raise ValueError(f"batch ({self.batch}) must be a multiple of recomputed ({self.recomputed})")
        return self

    @property
    def spans(self) -> list[range]:
        """The symbols that belong to each place."""
        ends = [self.length * number // self.places for number in range(self.places + 1)]
        return [range(start, stop) for start, stop in pairwise(ends)]

    def changed(self, changes: Mapping[str, Any], length: int | None = None) -> dict[str, Any]:
        """The settings of a network for sequences of ``length`` symbols, those of a picture unless given."""
        return {**self.network, **changes, "max_length": length or self.length}

    def networks(self) -> Iterator[dict[str, Any]]:
        """The network of each subject."""
        for changes, _ in SUBJECTS.values():
            yield self.changed(changes)


KIND = "sequences"
ROUTES: Routes = {"study": {"scaling": ScalingConfig, "exactness": ExactnessConfig, "generation": GenerationConfig}}
