"""The network that the linear transformer's studies measure, built as the paper's replication builds it."""

from functools import partial
from typing import Literal

from pydantic import PositiveInt

from replications.linear_transformer.model import HashedAttention, LinearAttention, LinearTransformer, SoftmaxAttention
from shared.config import Strict, build
from shared.layers.outputs import CategoricalOutput

SECTION = {"layers": 2, "heads": 2, "width": 8, "hidden": 12, "buckets": 4, "chunk": 5}
"""Of a model, without what the studies add."""


class Sizes(Strict):
    """A ``model`` section."""

    attention: Literal["linear", "softmax", "lsh"]
    layers: PositiveInt
    heads: PositiveInt
    width: PositiveInt
    hidden: PositiveInt
    rounds: PositiveInt = 1
    buckets: PositiveInt
    chunk: PositiveInt
    max_length: PositiveInt


def build_studied(section, vocabulary, causal):
    """What a study is given to build its networks."""
    sizes = build(Sizes, section, where="the model section")
    shape = {"width": sizes.width, "heads": sizes.heads}
    hashed = partial(HashedAttention, rounds=sizes.rounds, buckets=sizes.buckets, chunk=sizes.chunk)
    attentions = {"linear": LinearAttention, "softmax": SoftmaxAttention, "lsh": hashed}
    return LinearTransformer(
        symbols=vocabulary, width=sizes.width, hidden_size=sizes.hidden, layers=sizes.layers,
        attentions=partial(attentions[sizes.attention], **shape), causal=causal, length=sizes.max_length,
        output=lambda: CategoricalOutput(width=sizes.width, symbols=vocabulary),
    )  # fmt: skip


class StudiedRun:
    """A variant, as far as a study looks at it."""

    def __init__(self, model):
        self.model = model

    where = "the model section of task 'toy'"

    def checked_model(self, kind):
        return build(kind, self.model, where=self.where)

    def check(self, section):
        """Refuse wrong settings, as the paper's own are refused."""
        self.checked_model(section).check(self, Sizes)
