"""One trained model of sets on its test splits: what it says of every set, and the mixtures of some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from shared.data.generated.sets import mixture_of
from shared.tasks.batches import device_of, every_batch
from shared.tasks.examples import Example, records, write_kept, write_records
from shared.tasks.replication import Replication
from shared.tasks.sets.corpus import PreparedSets, Sets
from shared.tasks.sets.module import log_density, losses, mixture, rate
from shared.tasks.sets.settings import Asked, SetRun


def evaluate(
    replication: Replication, config: SetRun, data: PreparedSets, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Judge one trained seed on the test splits; there are no ensembles.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, of mixtures, ``attention.npz``: of some sets of the
    first split ``points`` (n, 2), and of the model's mixture and the true one ``weights``, ``means`` and ``scales``.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.
    """
    (model,) = replication.trained_models(config, data, trained)
    asked, size = config.corpus.asked, config.evaluation.batch
    splits = {name: _judged(model, data.split(name), name, asked, size) for name in config.corpus.test}
    metrics = write_records(out, splits)
    if asked == "mixture":
        write_kept(out / "attention.npz", kept_sets(model, data.split("test"), config.evaluation.shown))
    return metrics


def _judged(model: nn.Module, sets: Sets, split: str, asked: Asked, size: int) -> list[Example]:
    """The record of every set of a split."""
    columns: dict[str, Any] = {"elements": sets.sizes.tolist()}
    for indices in every_batch(sets, sentences=size):
        batch = sets.batch(indices).to(device_of(model))
        with torch.no_grad():
            outputs = model(batch.elements, batch.mask)
        loss, found = losses(asked, outputs, batch).double().tolist(), dict[str, list[Any]]()
        if asked == "number":
            found["error"] = loss
        elif asked == "count":
            found["count_nats"] = loss
            found["counted"] = (rate(outputs).round() == batch.targets[:, 0]).int().tolist()
        else:
            weights, means, scales = (torch.from_numpy(part) for part in mixture_of(batch.targets.cpu().numpy()))
            true = -log_density(batch.elements.cpu().double(), weights.log(), means, scales)
            summed, points = true.masked_fill(~batch.mask.cpu(), 0).sum(1).tolist(), batch.mask.sum(1).tolist()
            found["mixture"] = [
                {"nats": nats, "true": of_true, "points": count}
                for nats, of_true, count in zip(loss, summed, points, strict=True)
            ]
        for name, values in found.items():
            columns.setdefault(name, np.empty(len(sets), dtype=object))[indices] = values
    return records(split, columns)


def kept_sets(model: nn.Module, sets: Sets, count: int) -> list[dict[str, Any]]:
    """The first sets of a split, with the mixture that the model finds of each, and the true one."""
    kept = []
    for index in range(min(count, len(sets))):
        batch = sets.batch(np.array([index])).to(device_of(model))
        with torch.no_grad():
            log_weights, means, scales = (part[0] for part in mixture(model(batch.elements, batch.mask)))
        of_model = {"weights": log_weights.exp(), "means": means, "scales": scales}
        true = mixture_of(sets.targets[index])._asdict()
        kept.append({
            "points": batch.elements[0].cpu().numpy(),
            **{name: part.cpu().numpy() for name, part in of_model.items()},
            **{f"true_{name}": part for name, part in true.items()},
        })  # fmt: skip
    return kept
