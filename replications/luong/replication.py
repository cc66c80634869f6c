"""Binds the paper's models, and the statistical aligners they are compared with, to the pipeline."""

from __future__ import annotations

from replications.luong import settings
from replications.luong.aligners import Aligning
from replications.luong.model import EncoderDecoder
from shared.attention import alignments
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, source_vocabulary: int, target_vocabulary: int) -> EncoderDecoder:
    """The untrained model of a variant."""
    return EncoderDecoder(
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
        attention=_attention(config),
        **config.model_dump(exclude={"attention"}),
    )


def _attention(config: settings.ModelConfig) -> tuple[alignments.Score, alignments.Alignment] | None:
    attention = config.attention
    if attention is None:
        return None
    score = alignments.build_score(attention.score, size=config.hidden_size, positions=attention.positions)
    if attention.window is None:
        return score, alignments.GlobalAlignment()
    if attention.alignment == "local-m":
        return score, alignments.LocalMonotonic(window=attention.window)
    return score, alignments.LocalPredictive(
        window=attention.window, size=config.hidden_size, first_word=attention.first_word
    )


REPLICATION = Replication(settings, build_model, {"aligner": Aligning()})
