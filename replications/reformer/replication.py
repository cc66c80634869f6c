"""Binds Kitaev et al. (2020) to the pipeline."""

from __future__ import annotations

from replications.reformer import settings
from replications.reformer.model import Reformer
from replications.reformer.reversibility import Reversibility
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, vocabulary: int, causal: bool) -> Reformer:
    """The untrained model of a variant."""
    return Reformer(symbols=vocabulary, causal=causal, **config.model_dump())


STUDIES = {"reversibility": Reversibility(build_model, settings.ModelConfig)}
REPLICATION = Replication(settings, build_model, {"study": STUDIES})
