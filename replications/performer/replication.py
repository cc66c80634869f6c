"""Binds the Performer and the Transformer that it is compared with to the pipeline."""

from __future__ import annotations

from replications.performer import settings
from replications.performer.depth import Depth
from replications.performer.kernels import Kernels
from replications.performer.model import Performer
from shared.attention.favor import GeneralizedFeatures, SoftmaxFeatures
from shared.attention.feature_maps import FeatureMap, ReLU
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.tasks.replication import Replication
from shared.tasks.sequences.scaling import EXACT, CausalAttention, Layers, Scaling, head_sizes
from shared.tasks.sequences.settings import ScalingConfig


def build_model(config: settings.ModelConfig, vocabulary: int, causal: bool) -> Performer:
    """The untrained model of a variant."""

    def features() -> FeatureMap | None:
        if config.attention == "softmax":
            return None
        if config.attention == "relu":
            return ReLU()
        return SoftmaxFeatures(
            key_size=config.width // config.heads, projections=config.features, estimator=config.attention,
            directions=config.directions,
        )  # fmt: skip

    return Performer(
        symbols=vocabulary, width=config.width, heads=config.heads, hidden_size=config.hidden, layers=config.layers,
        features=features, causal=causal, dropout=config.dropout, redraw_every=config.redraw_every,
        swap_at=config.swap_at,
    )  # fmt: skip


def _linear(features: FeatureMap, config: ScalingConfig) -> CausalAttention:
    return CausalAttention(LinearMultiHeadAttention(query_size=config.width, features=features, **head_sizes(config)))


LAYERS: Layers = {
    **EXACT,
    "relu": lambda config: _linear(GeneralizedFeatures(key_size=config.key_size, projections=config.features), config),
    "positive": lambda config: _linear(SoftmaxFeatures(key_size=config.key_size, projections=config.features), config),
}
"""Layers whose time and memory are measured: also FAVOR+ with ReLU features and with those of softmax."""
STUDIES = {"scaling": Scaling(LAYERS), "kernels": Kernels(), "depth": Depth(build_model, settings.ModelConfig)}
REPLICATION = Replication(settings, build_model, {"study": STUDIES})
