"""Binds Sukhbaatar et al. (2019) to the pipeline."""

from __future__ import annotations

from replications.adaptive_span import settings
from replications.adaptive_span.cost import Cost, WithSpans
from replications.adaptive_span.model import AdaptiveSpanTransformer


def build_model(config: settings.ModelConfig, vocabulary: int, _: None) -> AdaptiveSpanTransformer:
    """The untrained model of a variant."""
    return AdaptiveSpanTransformer(vocabulary=vocabulary, **config.model_dump())


REPLICATION = WithSpans(settings, build_model, {"study": {"cost": Cost()}})
