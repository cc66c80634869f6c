"""Binds Dosovitskiy et al. (2021) to the pipeline."""

from __future__ import annotations

from torch import nn

from replications.vision_transformer import settings
from replications.vision_transformer.model import ConvolutionalNetwork, VisionTransformer
from shared.tasks.replication import Replication

OF_CONVOLUTION = {"side", "features", "stages", "groups", "dropout"}


def build_model(config: settings.ModelConfig, vocabulary: int, classes: int) -> nn.Module:
    """The untrained model of a variant; every symbol of the vocabulary is a channel."""
    if config.network == "convolution":
        sizes = config.model_dump(include=OF_CONVOLUTION)
        return ConvolutionalNetwork(channels=vocabulary, classes=classes, **sizes)
    sizes = config.model_dump(exclude=OF_CONVOLUTION - {"side", "dropout"} | {"network"})
    return VisionTransformer(channels=vocabulary, classes=classes, **sizes)


REPLICATION = Replication(settings, build_model)
