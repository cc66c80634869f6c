"""Binds Shaw et al. (2018) to the pipeline."""

from __future__ import annotations

from replications.shaw import settings
from replications.shaw.model import RelativeTransformer
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, source_vocabulary: int, target_vocabulary: int) -> RelativeTransformer:
    """The untrained model of a variant; the corpus' tokenizer is ``joint``, so both vocabularies are one."""
    return RelativeTransformer(vocabulary=target_vocabulary, **config.model_dump())


REPLICATION = Replication(settings, build_model)
