"""Binds RNNsearch and RNNencdec to the pipeline."""

from __future__ import annotations

from replications.bahdanau import settings
from replications.bahdanau.model import EncoderDecoder, RNNencdec, RNNsearch
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, source_vocabulary: int, target_vocabulary: int) -> EncoderDecoder:
    """The untrained model of a variant."""
    sizes = config.model_dump(exclude={"kind"}, exclude_none=True)
    vocabularies = {"source_vocabulary": source_vocabulary, "target_vocabulary": target_vocabulary}
    model = RNNsearch if config.kind == "rnnsearch" else RNNencdec
    return model(**sizes, **vocabularies)


REPLICATION = Replication(settings, build_model)
