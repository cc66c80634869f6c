"""Binds Transformer-XL and what it is compared with to the pipeline."""

from __future__ import annotations

from replications.transformer_xl import settings
from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from replications.transformer_xl.model import LSTMLanguageModel, Recurrent, TransformerXL
from replications.transformer_xl.speed import EvaluationSpeed
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, vocabulary: int, _: None) -> Recurrent:
    """The untrained model of a variant."""
    embedding = AdaptiveEmbedding(
        vocabulary=vocabulary, width=config.d_model, cutoffs=config.cutoffs, div_val=config.div_val,
        std=config.init_std,
    )  # fmt: skip
    softmax = AdaptiveSoftmax(embedding, tied_projections=config.tied_projections)
    if config.network == "lstm":
        return LSTMLanguageModel(softmax=softmax, layers=config.n_layer, dropout=config.dropout)
    return TransformerXL(
        softmax=softmax, layers=config.n_layer, heads=config.n_head, key_size=config.d_head,
        hidden_size=config.d_inner, positions=config.positions, shaw_distances=config.shaw_distances,
        untied_biases=config.untie_r, dropout=config.dropout, attention_dropout=config.dropatt, std=config.init_std,
    )  # fmt: skip


STUDIES = {"evaluation_speed": EvaluationSpeed(build_model, settings.ModelConfig)}
REPLICATION = Replication(settings, build_model, {"study": STUDIES})
