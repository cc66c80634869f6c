"""The network that the linear transformer's studies measure, and a variant as far as a study looks at it."""

from replications.linear_transformer.replication import build_model
from replications.linear_transformer.settings import ModelConfig
from shared.config import build

SECTION = {"layers": 2, "heads": 2, "width": 8, "hidden": 12, "buckets": 4, "chunk": 5}
"""Of a model, without what the studies add."""


def build_studied(section, vocabulary, causal):
    """What a study is given to build its networks."""
    return build_model(build(ModelConfig, section, where="the model section"), vocabulary, causal)


class StudiedRun:
    """A variant, as far as a study looks at it."""

    def __init__(self, model):
        self.model = model

    where = "the model section"

    def checked_model(self, kind):
        return build(kind, self.model, where=self.where)

    def check(self, section):
        """Refuse wrong settings, as the paper's own are refused."""
        self.checked_model(section).check(self, ModelConfig)
