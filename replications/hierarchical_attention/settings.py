"""Settings of the paper's models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from shared.config import Strict


class ModelConfig(Strict):
    """Sizes of a model.

    Attributes:
        embedding: width of a word vector.
        hidden: width of a GRU's state, in each direction and at each level.
        pooling: how annotations become one vector, at each level; `words alone`: by attention whose weights of words
            do not see the context.
        sentences: whether sentences are read before documents; else a document is read as one long sentence.
        ends: the symbols that end a sentence. The first word of a vocabulary, the most frequent one, is symbol 4.
        dropout: of the document's vector.
    """

    embedding: PositiveInt
    hidden: PositiveInt
    pooling: Literal["attention", "words alone", "average", "maximum"] = "attention"
    sentences: bool = True
    ends: list[NonNegativeInt] = Field(default=[4], min_length=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)


KIND = "classification"
