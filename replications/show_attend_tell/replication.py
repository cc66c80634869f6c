"""Binds the caption generator and its baselines to the pipeline."""

from __future__ import annotations

from replications.show_attend_tell import settings
from replications.show_attend_tell.attention import Glimpse, HardAttention, MeanVector, SoftAttention
from replications.show_attend_tell.learning import Reinforce
from replications.show_attend_tell.model import CaptionGenerator
from shared.tasks.replication import Replication
from shared.vision.features import Grid


def build_model(config: settings.ModelConfig, vocabulary: int, grid: Grid) -> CaptionGenerator:
    """The untrained model of a variant, for annotation vectors of a grid."""
    reinforce = None
    if config.attention == "hard" and config.hard is not None:
        hard = config.hard
        reinforce = Reinforce(reward=hard.reinforce, entropy=hard.entropy, sampling=hard.sampling, coin=hard.coin)
    return CaptionGenerator(
        vocabulary=vocabulary, embedding_size=config.m, hidden_size=config.n, annotation_size=grid.size,
        glimpse=_glimpse(config, grid.size), gate=config.gate, initial_layers=config.initial_layers,
        dropout=config.dropout, tanh=config.tanh_output, penalty=config.penalty,
        penalty_mean=config.penalty_mean, supervision=config.supervision,
        reinforce=reinforce, init_std=config.init_std, word_std=config.word_std,
    )  # fmt: skip


def _glimpse(config: settings.ModelConfig, annotation_size: int) -> Glimpse:
    if config.attention == "mean":
        return MeanVector(annotation_size=annotation_size)
    sizes = {"annotation_size": annotation_size, "attention_size": config.a, "layers": config.attention_layers}
    if config.hard is not None and config.attention == "hard":
        return HardAttention(pathwise=config.hard.pathwise, **sizes)
    return SoftAttention(**sizes)


REPLICATION = Replication(settings, build_model)
