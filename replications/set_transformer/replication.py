"""Binds Lee et al. (2019) to the pipeline."""

from __future__ import annotations

from replications.set_transformer import settings
from replications.set_transformer.model import SetModel
from replications.set_transformer.order import Order
from shared.tasks.replication import Replication


def build_model(config: settings.ModelConfig, elements: int, outputs: tuple[int, int]) -> SetModel:
    """The untrained model of a variant."""
    return SetModel(elements=elements, outputs=outputs, **config.model_dump())


REPLICATION = Replication(settings, build_model, {"study": {"order": Order(build_model, settings.ModelConfig)}})
