"""Binds Transformer-XL and what it is compared with to the pipeline."""

from __future__ import annotations

from replications.transformer_xl.model import LSTMLanguageModel, Recurrent, TransformerXL
from replications.transformer_xl.settings import ROUTES, ModelConfig
from shared.layers.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from shared.tasks.language.reuse_study import EvaluationSpeed
from shared.tasks.language.task import LanguageModelling
from shared.tasks.routed import Routed
from shared.tasks.studies import study_route


def build_model(config: ModelConfig, vocabulary: int, _: None) -> Recurrent:
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


NETWORKS = LanguageModelling(model_config=ModelConfig, build_model=build_model)
REPLICATION = Routed(
    NETWORKS, routes={"study": study_route({"evaluation_speed": EvaluationSpeed(NETWORKS)})}, sections=ROUTES
)
