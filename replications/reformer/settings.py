"""Settings of the paper's models, and of the study of reversible layers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from shared.config import Ascending
from shared.errors import ReplicationError
from shared.tasks.sequences.settings import SequenceRun
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
    """Refuse sequences that are longer than there are positions.

    Raises:
        ReplicationError: names the setting.
    """
    if section.length < run.corpus.length:
        raise ReplicationError(
            f"{where}: length {section.length} is less than the {run.corpus.length} symbols of the longest sequence; "
            "raise it."
        )


class ReversibilityConfig(NetworkStudyConfig):
    """A variant's ``model`` section; all other keys are settings of the network, whose class checks them.

    Attributes:
        symbols: of the vocabulary
        depths: layers at which what is kept is counted
        positions: of a chunk of the feed-forward networks, where there are chunks
    """

    measured: ClassVar[tuple[str, ...]] = ("*.gradients_*", "*.kept_n*", "*.growth", "chunked.*")
    symbols: PositiveInt = 11
    depths: Ascending
    positions: PositiveInt


KIND = "sequences"
MODEL = ModelConfig
ROUTES: Routes = {"study": {"reversibility": ReversibilityConfig}}
SUITS = suits
