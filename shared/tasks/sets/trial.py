"""What a trained model says of one set: a number, a count, or a mixture of Gaussians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.tasks.batches import device_of
from shared.tasks.sets.corpus import PreparedSets, SetBatch
from shared.tasks.sets.module import mixture, rate
from shared.tasks.sets.settings import SetRun
from shared.tasks.tried import TEST, Tried, not_empty, not_longer, numbered, quoted


def try_input(model: Any, data: PreparedSets, config: SetRun, asked: str, seed: int) -> Tried:
    """Say of ``asked`` what the model makes of it.

    Args:
        model: in evaluation mode.
        data: the prepared task.
        config: the variant's settings.
        asked: ``test:<number>`` for a test set, or the numbers of each element, with semicolons between the elements.
        seed: of the run; nothing is drawn.

    Raises:
        ReplicationError: the input is empty or has too many elements, or one of them is not of so many numbers.
    """
    corpus, test = config.corpus, data.split("test")
    each = number_of(corpus.numbers, "number")
    expected = f"{TEST}0 to {TEST}{len(test) - 1} for a test set, or elements with ';' between them, of {each} each"
    name = not_empty(asked, expected)
    if (number := numbered(name, len(test))) is not None:
        batch = test.batch(np.array([number]))
    else:
        try:
            rows = [[float(value) for value in element.split()] for element in name.split(";")]
        except ValueError:
            raise ReplicationError(f"{quoted(name)} is no set of numbers; give {expected}.") from None
        not_longer(len(rows), corpus.sizes[1], "the largest set")
        if any(len(row) != corpus.numbers for row in rows) or not (elements := torch.tensor([rows])).isfinite().all():
            raise ReplicationError(f"an element of {quoted(name)} has other than its finite numbers; give {expected}.")
        batch = SetBatch(elements, torch.ones(1, len(rows), dtype=torch.bool), torch.zeros(1, 1))
    batch = batch.to(device_of(model))
    with torch.no_grad():
        outputs = model(batch.elements, batch.mask)
    read = number_of(batch.tokens, "element")
    if corpus.asked != "count":  # pictures
        read += ": " + "; ".join(" ".join(f"{value:.4g}" for value in row) for row in batch.elements[0].tolist())
    if corpus.asked == "number":
        return Tried(read, f"{outputs.item():.4f}")
    if corpus.asked == "count":
        return Tried(read, f"{rate(outputs).item():.2f} different ones")
    weights, means, scales = (part[0].tolist() for part in mixture(outputs))
    shares = [
        (" ".join(f"{mean:.2f} ± {scale:.2f}" for mean, scale in zip(*of_one, strict=True)), math.exp(weight))
        for weight, *of_one in zip(weights, means, scales, strict=True)
    ]
    return Tried(read, f"a mixture of {number_of(len(shares), 'Gaussian')}", shares=shares)
