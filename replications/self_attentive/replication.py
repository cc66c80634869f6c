"""Binds the self-attentive encoder and its baselines to the pipeline."""

from __future__ import annotations

from torch import nn

from replications.self_attentive import model, settings
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, vocabulary: int, classes: int) -> model.TextClassifier:
    """The untrained model of a variant."""
    encoder = _encoder(config)
    rows, width = encoder.rows, encoder.annotation_size
    relation = None
    if config.relation is not None:
        relation = model.GatedRelation(rows=rows, annotation_size=width, relation_size=config.relation)
        width = config.relation
    attention = config.attention if config.encoder == "attention" else None
    hidden: nn.Module
    if config.pruned is not None:
        hidden = pruned = model.PrunedLayer(rows=rows, annotation_size=width, p=config.pruned.p, q=config.pruned.q)
        hidden_size = pruned.size
    else:
        assert config.b is not None
        hidden_size = config.b
        hidden = nn.Sequential(nn.Flatten(), nn.Linear(rows * width, hidden_size))
    return model.TextClassifier(
        vocabulary=vocabulary, embedding_size=config.d, encoder=encoder, hidden=hidden, hidden_size=hidden_size,
        classes=classes, dropout=config.dropout, word_std=config.word_std, relation=relation,
        penalty=attention.penalty if attention else 0.0,
        over_words=attention is not None and attention.penalty_over == "words",
    )  # fmt: skip


def _encoder(config: settings.ModelConfig) -> model.Encoder:
    if config.encoder == "cnn" and config.cnn is not None:
        return model.MaxPooledCNN(embedding_size=config.d, features=config.cnn.features, window=config.cnn.window)
    if config.encoder == "attention" and config.attention is not None:
        return model.SelfAttentiveEncoder(
            embedding_size=config.d, hidden_size=config.u, attention_size=config.attention.d_a,
            rows=config.attention.r,
        )  # fmt: skip
    return model.MaxPooledLSTM(embedding_size=config.d, hidden_size=config.u)


REPLICATION = Replication(settings, build_model)
