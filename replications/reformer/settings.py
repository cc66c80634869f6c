"""Settings of the paper's models, and of the study of reversible layers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from shared.config import Ascending
from shared.tasks.sequences.settings import SequenceRun, check_length
from shared.tasks.settings import NetworkStudyConfig, Routes, TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        attention: queries and keys of their own, shared ones, or these with hashing.
        rounds, buckets, chunk: of hashing; a query sees at most so many keys as a chunk has of its bucket, per round.
        reversible: whether layers are.
        feed_forward_chunk: positions that go through a reversible layer's feed-forward network together; null: all.
        length: symbols of the longest sequence, each position of which has a learned vector.
    """

    attention: Literal["full", "shared", "lsh"]
    rounds: PositiveInt = 1
    buckets: PositiveInt = Field(multiple_of=2)
    chunk: PositiveInt
    reversible: bool = True
    feed_forward_chunk: PositiveInt | None = None
    length: PositiveInt


def suits(section: ModelConfig, run: SequenceRun, where: str) -> None:
    """Refuse sequences that are longer than there are positions."""
    check_length(run, where, "length", section.length)


class ReversibilityConfig(NetworkStudyConfig):
    """A variant's ``model`` section; all other keys are settings of the network, whose class checks them.

    Attributes:
        symbols: of the vocabulary
        depths: layers at which what is kept is counted
        positions: of a chunk of the feed-forward networks, where there are chunks
    """

    measured = ("*.gradients_*", "*.kept_n*", "*.growth", "chunked.*")
    symbols: PositiveInt = 11
    depths: Ascending
    positions: PositiveInt


KIND = "sequences"
ROUTES: Routes = {"study": {"reversibility": ReversibilityConfig}}
