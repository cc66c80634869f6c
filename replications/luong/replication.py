"""Binds the paper's models, and the statistical aligners they are compared with, to the pipeline."""

from __future__ import annotations

from replications.luong.model import EncoderDecoder
from replications.luong.settings import ROUTES, ModelConfig
from shared.attention.alignments import Alignment, GlobalAlignment, LocalMonotonic, LocalPredictive
from shared.attention.scores import Score, build_score
from shared.tasks.routed import Routed
from shared.tasks.translation.aligners import aligner_route
from shared.tasks.translation.task import Translation


def build_model(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> EncoderDecoder:
    """The untrained model of a variant."""
    return EncoderDecoder(
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
        attention=_attention(config),
        **config.model_dump(exclude={"attention"}),
    )


def _attention(config: ModelConfig) -> tuple[Score, Alignment] | None:
    attention = config.attention
    if attention is None:
        return None
    score = build_score(attention.score, size=config.hidden_size, positions=attention.positions)
    if attention.window is None:
        return score, GlobalAlignment()
    if attention.alignment == "local-m":
        return score, LocalMonotonic(window=attention.window)
    return score, LocalPredictive(window=attention.window, size=config.hidden_size)


TRANSLATION = Translation(
    model_config=ModelConfig,
    build_model=build_model,
    heatmaps={},
    comparisons={
        "Global and local attention where neighbours change places; the true alignment is marked.": [
            "swaps-dot", "swaps-local-m-general", "swaps-local-p-general",
        ],
        "Global and local attention where halves change places; the true alignment is marked.": [
            "halves-general", "halves-location-feed", "halves-local-p-general",
        ],
        "Global and local attention on real text.": ["global-location", "local-m-general", "local-p-general-feed"],
        "Greek to English, with the alignment that people made.": [
            "gold-dot", "gold-local-m-general", "gold-local-p-general",
        ],
    },
    panels={
        "The ladder where neighbours change places": [
            "swaps-base", "swaps-reverse", "swaps-location", "swaps-location-feed", "swaps-local-p-general-feed",
        ],
        "Architectures where neighbours change places": [
            "swaps-location", "swaps-dot", "swaps-general", "swaps-concat", "swaps-local-m-general",
            "swaps-local-p-dot", "swaps-local-p-general",
        ],
        "Without input feeding where halves change places": [
            "halves-reverse", "halves-location", "halves-dot", "halves-general", "halves-local-m-general",
            "halves-local-p-general",
        ],
        "With and without input feeding where halves change places": [
            "halves-location", "halves-location-feed", "halves-dot", "halves-dot-feed", "halves-local-p-general",
            "halves-local-p-general-feed",
        ],
        "The ladder on real text": [
            "base", "base-reverse", "base-reverse-dropout", "global-location", "global-location-feed",
            "local-m-general", "local-p-general-feed",
        ],
        "Architectures on real text, with input feeding": [
            "global-location-feed", "global-dot-feed", "global-general-feed", "local-m-dot-feed",
            "local-m-general-feed", "local-p-dot-feed", "local-p-general-feed",
        ],
    },
)  # fmt: skip
REPLICATION = Routed(TRANSLATION, routes={"aligner": aligner_route}, sections=ROUTES)
