"""The settings of a variant that models separate sequences: tasks of ``kind: sequences``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from shared.config import Ascending, Strict, merge
from shared.data.cards import load_card
from shared.data.homology import AMINO_ACIDS, ANOMALOUS
from shared.data.tokenizers import SPECIAL
from shared.errors import ReplicationError
from shared.tasks.settings import CorpusConfig, ExampleTraining, HeadSizes, JudgingConfig, RunConfig, StudyConfig

MASK = len(SPECIAL)
"""The symbol that stands for a masked letter of a protein."""
LETTERS = AMINO_ACIDS + ANOMALOUS
FIRST = MASK + 1
"""The symbol of the first of the letters."""
VOCABULARY = FIRST + len(LETTERS)
"""Symbols of proteins: the special ones of all vocabularies, the mask, and 25 letters."""
COPIED = 11
"""Symbols of the copy task of Katharopoulos et al. (2020, section 4.1), including the separator."""


class CopyCorpusConfig(CorpusConfig):
    """How long the words of a copy task are, and how many there are.

    Attributes:
        shortest: symbols of the shortest words.
        longest: symbols of the longest words; there are as many of every length between.
        sequences: of each split; of train those of an epoch, which are drawn while it is read.
        causal: every symbol is predicted from those before it.
        counts_hits: evaluation measures accuracy.
    """

    causal: ClassVar[bool] = True
    counts_hits: ClassVar[bool] = True
    symbols: ClassVar[int] = COPIED
    unit: ClassVar[str] = "symbol"
    of: Literal["copies"] = "copies"
    shortest: PositiveInt
    longest: PositiveInt
    sequences: dict[str, PositiveInt]

    @model_validator(mode="after")
    def _consistent(self) -> CopyCorpusConfig:
        if self.shortest > self.longest:
            raise ValueError(f"'shortest' ({self.shortest}) must not exceed 'longest' ({self.longest})")
        if self.sequences.keys() != {*self.splits}:
            raise ValueError(f"'sequences' must have a number for each of {', '.join(self.splits)}")
        return self

    @property
    def length(self) -> int:
        """Symbols of the longest sequence."""
        return 2 * self.longest + 1

    def lengths(self, split: str) -> NDArray[np.int64]:
        """(N,) symbols of each word."""
        return self.shortest + np.arange(self.sequences[split]) % (self.longest - self.shortest + 1)


class PixelCorpusConfig(CorpusConfig):
    """Which pictures a task models, how large and how finely graded.

    Attributes:
        causal: every pixel is predicted from those before it.
        counts_hits: evaluation measures no accuracy of pixels.
        pool: side of the squares whose mean becomes one pixel
        levels: values of a pixel, equal parts of 0 to 255
        images: split to how many, its first ones, are used
    """

    causal: ClassVar[bool] = True
    counts_hits: ClassVar[bool] = False
    limits = "images"
    unit: ClassVar[str] = "pixel"
    of: Literal["pixels"] = "pixels"
    pool: int = Field(default=1, ge=1, le=16)
    levels: int = Field(default=256, ge=2, le=256)
    images: dict[str, PositiveInt] = Field(default={})

    @property
    def symbols(self) -> int:
        """The levels, and the start symbol after them."""
        return self.levels + 1

    @property
    def length(self) -> int:
        """Pixels of a picture, which the card of the data set knows without the data.

        Raises:
            ReplicationError: the card is missing, or does not say how large its pictures are.
        """
        example = load_card(self.dataset).example
        if example is None:
            raise ReplicationError(
                f"data/{self.dataset}.yaml does not say how large a picture is; add 'example: {{shape: [height, width, "
                "channels]}' to it."
            )
        return math.prod(example.shape) // self.pool**2


class ProteinCorpusConfig(CorpusConfig):
    """Which proteins a task models, and how.

    Attributes:
        counts_hits: evaluation measures accuracy.
        masked: some letters are predicted from all others, not each from those before it
        length: sequences are cut after so many letters
        concatenated: all sequences, whole and in a random order that no seed changes, stand one after another with end
            symbols between, and this is cut into pieces of 'length', as Choromanski et al. (2021) concatenate TrEMBL
        fragments: whether parts of proteins are taken, too
        train_sequences: use only so many, chosen at random once
    """

    reads = ("sequence",)
    counts_hits: ClassVar[bool] = True
    symbols: ClassVar[int] = VOCABULARY
    unit: ClassVar[str] = "residue"
    of: Literal["proteins"] = "proteins"
    masked: bool = False
    length: PositiveInt = 1024
    concatenated: bool = False
    fragments: bool = True
    train_sequences: PositiveInt | None = None

    @property
    def causal(self) -> bool:
        """Whether each letter is predicted from those before it."""
        return not self.masked


SequenceCorpusConfig = Annotated[CopyCorpusConfig | PixelCorpusConfig | ProteinCorpusConfig, Field(discriminator="of")]
"""What a task's sequences are of; its ``of`` says which."""


class SequenceTraining(ExampleTraining):
    """How a model of sequences is trained: its loss is the mean over all symbols that count.

    Attributes:
        monitor: what of validation decides which weights are best
    """

    monitor: Literal["loss", "error"] = "loss"


class PicturesConfig(Strict):
    """Which pictures the model draws, for the reader of the report.

    Attributes:
        samples: drawn after the first pixel of test pictures
        completions: test pictures of which a part is given
        given: that part, of their pixels, from the top
    """

    samples: PositiveInt = 8
    completions: PositiveInt = 4
    given: float = Field(default=0.5, gt=0, lt=1)


class SequenceEvaluation(JudgingConfig):
    """How a trained model is judged: by all symbols of the test splits that count.

    Attributes:
        tokens: symbols that are read together, padding included
        swapped: by name, changes of the model section: the weights are judged again in a model that is built so
        baseline: also judge the frequencies of the letters in train, as a predictor
    """

    tokens: PositiveInt = 4000
    swapped: dict[Annotated[str, Field(pattern=r"^\w[\w-]*$")], dict[str, Any]] = Field(default={})
    pictures: PicturesConfig | None = None
    baseline: bool = False


class SequenceRun(RunConfig):
    """A variant's settings."""

    kind: Literal["sequences"] = "sequences"
    corpus: SequenceCorpusConfig
    training: SequenceTraining
    evaluation: SequenceEvaluation = SequenceEvaluation()

    @model_validator(mode="after")
    def _evaluation_suits_the_corpus(self) -> SequenceRun:
        if self.evaluation.pictures is not None and not isinstance(self.corpus, PixelCorpusConfig):
            raise ValueError("only models of pixels draw pictures; leave out evaluation.pictures")
        if self.evaluation.swapped and not self.corpus.counts_hits:
            raise ValueError("no claim is on pixels in a swapped model; leave out evaluation.swapped")
        if self.evaluation.baseline and not isinstance(self.corpus, ProteinCorpusConfig):
            raise ValueError("only proteins have letters with frequencies; leave out evaluation.baseline")
        if self.training.monitor == "error" and not self.corpus.counts_hits:
            raise ValueError("no error is measured of pixels; leave out training.monitor")
        return self

    def model_sections(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The model section, as it is and as ``evaluation.swapped`` changes it, each after its place for messages."""
        yield from super().model_sections()
        for name, changes in self.evaluation.swapped.items():
            yield f"{self.where}, changed by evaluation.swapped.{name}", merge(self.model, changes)


def check_length(run: SequenceRun, where: str, setting: str, longest: int) -> None:
    """Refuse sequences that are longer than a model has room for.

    Raises:
        ReplicationError: names the setting, after the place ``where``.
    """
    if longest < run.corpus.length:
        raise ReplicationError(
            f"{where}: {setting} {longest} is less than the {run.corpus.length} symbols of the longest sequence; raise "
            "it."
        )


Subject = Literal[
    "softmax", "softmax_plain", "linear", "relu", "positive", "lsh_1", "lsh_4", "lsh_8", "identity",
]  # fmt: skip
"""Those of :data:`shared.tasks.sequences.scaling.EXACT`, and what papers add to them."""


class ScalingConfig(StudyConfig, HeadSizes):
    """A variant's ``model`` section.

    Attributes:
        subjects: which of the builders are measured
        lengths: T, symbols
        longest: subjects that are not measured at all lengths
        features: M, of the maps that draw them
        feed_forward: hidden units of the network after attention; null: attention alone
        buckets: of attention by hashing
        chunk: positions of a chunk of attention by hashing
        repeats: of which times are medians
    """

    measured = ("*.time_slope", "*.memory_slope", "*.seconds*", "*.mebibytes*", "*.over_identity")
    subjects: list[Subject] = Field(min_length=1)
    lengths: Ascending
    longest: dict[Subject, PositiveInt] = Field(default={})
    features: PositiveInt = 64
    feed_forward: PositiveInt | None = None
    buckets: PositiveInt = Field(default=64, multiple_of=2)
    chunk: PositiveInt = 32
    repeats: PositiveInt = 5

    @property
    def key_size(self) -> int:
        """Of each head's queries, keys and values."""
        return self.width // self.heads

    def of(self, subject: Subject) -> list[int]:
        """The lengths at which a subject is measured."""
        return [length for length in self.lengths if length <= self.longest.get(subject, length)]

    @model_validator(mode="after")
    def _consistent(self) -> ScalingConfig:
        if few := [subject for subject in self.subjects if len(self.of(subject)) < 2]:
            raise ValueError(f"'{few[0]}' has fewer than two lengths up to its longest; add some or raise 'longest'")
        if unused := sorted(self.longest.keys() - {*self.subjects}):
            raise ValueError(f"'longest' names '{unused[0]}', which is not in 'subjects'")
        return self


RUN = SequenceRun
"""What checks the settings of a variant of this kind."""
