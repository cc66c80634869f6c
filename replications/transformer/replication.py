"""Binds the Transformer to the pipeline."""

from __future__ import annotations

from torch import nn

from replications.transformer import settings
from replications.transformer.complexity import ComplexityStudy
from replications.transformer.model import Transformer
from shared.errors import ReplicationError
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, source_vocabulary: int, target_vocabulary: int) -> Transformer:
    """The untrained model of a variant.

    Raises:
        ReplicationError: source and target have different vocabularies, so cannot share a matrix.
    """
    if source_vocabulary != target_vocabulary:
        raise ReplicationError(
            "the Transformer shares one embedding matrix between source and target; add 'joint: true' to the "
            "corpus' tokenizer."
        )
    return Transformer(
        vocabulary=target_vocabulary, width=config.d_model, layers=config.N, heads=config.h,
        key_size=config.d_k or config.d_model // config.h, value_size=config.d_v or config.d_model // config.h,
        hidden_size=config.d_ff, dropout=config.p_drop, positions=_positions(config), scaled=config.scaled,
    )  # fmt: skip


def _positions(config: settings.ModelConfig) -> nn.Module:
    if config.positions.count is not None:
        return LearnedPositions(count=config.positions.count, width=config.d_model)
    return SinusoidalPositions(width=config.d_model) if config.positions.kind == "sinusoidal" else NoPositions()


REPLICATION = Replication(settings, build_model, {"study": {"complexity": ComplexityStudy()}})
