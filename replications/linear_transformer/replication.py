"""Binds the Linear Transformer and what it is compared with to the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from replications.linear_transformer import model, settings
from replications.linear_transformer.exactness import Exactness
from replications.linear_transformer.generation import Generation
from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention
from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics
from shared.layers.transformer import SelfAttention
from shared.tasks.replication import Replication
from shared.tasks.sequences.scaling import EXACT, CausalAttention, Layers, Scaling, head_sizes
from shared.tasks.sequences.settings import ScalingConfig


def build_model(config: settings.ModelConfig, vocabulary: int, causal: bool) -> model.LinearTransformer:
    """The untrained model of a variant."""
    sizes = {"width": config.width, "heads": config.heads}
    attentions: dict[str, Callable[[], SelfAttention]] = {
        "linear": partial(model.LinearAttention, **sizes),
        "softmax": partial(model.SoftmaxAttention, **sizes),
        "lsh": partial(
            model.HashedAttention, **sizes, rounds=config.rounds, buckets=config.buckets or 2, chunk=config.chunk or 1
        ),
    }
    output = (
        CategoricalOutput(width=config.width, symbols=vocabulary)
        if config.output == "categorical"
        else MixtureOfLogistics(width=config.width, levels=vocabulary - 1, components=config.components)
    )
    return model.LinearTransformer(
        symbols=vocabulary, width=config.width, hidden_size=config.hidden, attentions=attentions[config.attention],
        layers=config.layers, output=lambda: output, causal=causal, length=config.max_length,
        concatenated=config.positions != "added", dropout=config.dropout,
        positions=model.GridPositions(width=config.width // 2, columns=config.columns) if config.columns else None,
    )  # fmt: skip


def _hashed(rounds: int, config: ScalingConfig) -> CausalAttention:
    sizes = {"width": config.width, "buckets": config.buckets, "chunk": config.chunk, **head_sizes(config)}
    return CausalAttention(LSHSelfAttention(rounds=rounds, **sizes))


LAYERS: Layers = {
    **EXACT,
    "linear": lambda config: CausalAttention(
        LinearMultiHeadAttention(query_size=config.width, features=EluPlusOne(), **head_sizes(config))
    ),
    **{f"lsh_{rounds}": partial(_hashed, rounds) for rounds in (1, 4, 8)},
}
"""Layers whose time and memory are measured: also linear attention, and Reformer's with 1, 4 and 8 rounds."""
_NETWORK = build_model, settings.ModelConfig
STUDIES = {"scaling": Scaling(LAYERS), "exactness": Exactness(*_NETWORK), "generation": Generation(*_NETWORK)}
REPLICATION = Replication(settings, build_model, {"study": STUDIES})
