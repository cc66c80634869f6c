"""Binds Yang et al. (2016) to the pipeline."""

from __future__ import annotations

from replications.hierarchical_attention import settings
from replications.hierarchical_attention.model import HierarchicalNetwork
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, vocabulary: int, classes: int) -> HierarchicalNetwork:
    """The untrained model of a variant."""
    return HierarchicalNetwork(vocabulary=vocabulary, classes=classes, **config.model_dump())


REPLICATION = Replication(settings, build_model)
