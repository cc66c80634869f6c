"""What a study of a section measures; and the network that the linear transformer's studies measure."""

from pathlib import Path

from replications.linear_transformer.replication import build_model
from replications.linear_transformer.settings import ModelConfig
from shared.config import build
from shared.tasks.settings import RunConfig

SECTION = {"layers": 2, "heads": 2, "width": 8, "hidden": 12, "buckets": 4, "chunk": 5}
"""Of a model, without what the studies add."""


NETWORK = build_model, ModelConfig
"""What a study is given to build its networks."""


def build_studied(section, vocabulary, causal):
    """The network of a ``model`` section."""
    return build_model(build(ModelConfig, section, where="the model section"), vocabulary, causal)


def measured(study, section, seed=1):
    """The numbers of a study of a ``model`` section, which reads and trains nothing."""
    config = RunConfig.model_construct(task="made", model=section)
    return study.evaluate(config, prepared=Path(), trained=[Path(f"seed{seed}")], out=Path())
