"""One trained model of separate sequences on its test splits: how well every symbol that counts is predicted.

Shape letters: N sequences of a split, B of a batch, T symbols, n targets of a batch that count, V symbols of the
vocabulary.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import shared.tasks.sequences.measures  # noqa: F401  registers what evaluation computes
from shared.data.batching import Indices
from shared.decoding.protocol import GenerativeModel, SequenceModel
from shared.errors import ReplicationError
from shared.tasks.batches import every_batch
from shared.tasks.examples import Example, judged, write_examples
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch, SequenceSplit
from shared.tasks.sequences.pixels import PreparedPixels
from shared.tasks.sequences.proteins import PreparedProteins
from shared.tasks.sequences.settings import PicturesConfig, SequenceRun

Floats = NDArray[np.float64]
Predictor = Callable[[SequenceBatch], tuple[Tensor, Tensor]]
"""From a batch to the nats (n,) of the targets that count, and whether each is the most probable symbol (n,)."""

LEAST = float(torch.finfo(torch.float32).tiny)
"""Probability substituted for one whose negative log-likelihood is NaN or infinite."""


def evaluate_sequences(
    model: nn.Module, prepared: PreparedSequences, config: SequenceRun, out: Path, swapped: Mapping[str, nn.Module]
) -> dict[str, float]:  # fmt: skip
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if asked for, ``pictures.npz``, see
    :func:`draw_pictures`. What is masked depends on the split alone, so that all models are judged on the same letters.

    Args:
        model: a :class:`SequenceModel`; where pictures are asked for, a :class:`GenerativeModel`.
        prepared: the task.
        config: the variant's settings.
        out: folder of the seed.
        swapped: by name, models with the same weights that are built otherwise; the first test split judges them, too.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: a negative log-likelihood is NaN or infinite, and ``training.may_diverge`` is not set.
    """
    out.mkdir(parents=True, exist_ok=True)
    first, size = config.corpus.test[0], config.evaluation.tokens
    with torch.inference_mode():
        frequencies = _frequencies(prepared, size) if config.evaluation.baseline else None
        splits = {
            split: _evaluate_split(
                {"": model, **(swapped if split == first else {})}, prepared, split, config, frequencies
            )
            for split in config.corpus.test
        }
        if config.evaluation.pictures is not None:
            pixels, wanted = cast(PreparedPixels, prepared), config.evaluation.pictures
            np.savez_compressed(out / "pictures.npz", **draw_pictures(model, pixels, first, wanted))
    write_examples(out, [example for examples in splits.values() for example in examples])
    return judged(splits)


class _Scores(NamedTuple):
    """What a predictor makes of the N sequences of a split; each is (N,)."""

    tokens: Floats  # targets that count
    nats: Floats  # their summed negative log-likelihood, with LEAST for undefined targets
    hits: Floats  # targets that are the most probable symbol
    undefined: Floats  # targets whose negative log-likelihood is NaN or infinite


def _evaluate_split(
    models: Mapping[str, nn.Module], prepared: PreparedSequences, split: str, config: SequenceRun,
    frequencies: Tensor | None,
) -> list[Example]:  # fmt: skip
    """The records of a split, with the scores of the trained model (name "") and of the swapped models.

    The record of a protein has the name of its family. Bootstrap intervals resample families, because related proteins
    are not independent.
    """
    sequences, counts_hits, size = prepared.split(split), config.corpus.counts_hits, config.evaluation.tokens
    found = {
        name: _score(_by_model(model, counts_hits), sequences, split, size, _device(model))
        for name, model in models.items()
    }
    for name, scores in found.items():
        if scores.undefined.any() and not config.training.may_diverge:
            whose = f"the swapped model '{name}'" if name else "the model"
            raise ReplicationError(
                f"{whose} gives {scores.undefined.sum():,.0f} symbols of split '{split}' a probability that is no "
                "number; train with a smaller learning rate, or set training.may_diverge to judge it as it is."
            )
    baseline = None if frequencies is None else _score(_by_frequencies(frequencies), sequences, split, size)
    own, (lengths,), examples = found.pop(""), sequences.lengths, []
    keys = prepared.keys(split) if isinstance(prepared, PreparedProteins) else None

    def nats_and_hits(scores: _Scores, i: int) -> list[float]:
        return [float(scores.nats[i]), int(scores.hits[i])]

    for i in range(len(sequences)):
        tokens = int(own.tokens[i])
        example: Example = {
            "id": f"{split}-{i}", "split": split, "nll": float(own.nats[i]), "tokens": tokens,
            "unit": prepared.unit, "units": tokens, "length": int(lengths[i]),
        }  # fmt: skip
        if keys is not None:
            example["family"] = keys[i].partition(":")[0]
        if counts_hits:
            example["hits"] = int(own.hits[i])
        if config.training.may_diverge:
            example["undefined"] = int(own.undefined[i])
        if found:
            example["swapped"] = {name: nats_and_hits(scores, i) for name, scores in found.items()}
        if baseline is not None:
            example["baseline"] = nats_and_hits(baseline, i)
        examples.append(example)
    return examples


def _score(
    predict: Predictor, sequences: SequenceSplit, split: str, size: int, device: torch.device | str = "cpu"
) -> _Scores:
    """Score every sequence in batches of similar length; a sequence's scores do not depend on its batch."""
    totals = np.zeros((4, len(sequences)))
    for indices, whole in _batches(sequences, split, size):
        batch = whole.to(device)
        nats, hits = predict(batch)
        defined = nats.isfinite()
        nats = nats.double().where(defined, -math.log(LEAST))
        table = torch.zeros((4, *batch.scored.shape), dtype=torch.float64, device=device)
        table[:, batch.scored] = torch.stack(
            [torch.ones_like(nats), nats, (hits & defined).double(), (~defined).double()]
        )
        totals[:, indices] = table.sum(2).cpu().numpy()
    return _Scores(*totals)


def _batches(sequences: SequenceSplit, split: str, size: int) -> Iterator[tuple[Indices, SequenceBatch]]:
    seed = (zlib.crc32(split.encode()),)
    for indices in every_batch(sequences, tokens=size):
        yield indices, sequences.batch(indices, seed)


def _by_model(model: nn.Module, counts_hits: bool) -> Predictor:
    reader = cast(SequenceModel, model)

    def predict(batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        h, targets = reader(batch.inputs, batch.mask)[batch.scored], batch.targets[batch.scored]
        best = reader.output.log_probs(h).argmax(-1) if counts_hits else torch.full_like(targets, -1)
        return reader.output(h, targets), best == targets

    return predict


def _by_frequencies(frequencies: Tensor) -> Predictor:
    """A predictor that assigns each symbol its share (V,)."""
    nats, best = -frequencies.log(), frequencies.argmax()

    def predict(batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        targets = batch.targets[batch.scored]
        return nats[targets], targets == best

    return predict


def _frequencies(prepared: PreparedSequences, size: int) -> Tensor:
    """(V,) float64 shares of symbols among the targets of train that count.

    They are the empirical baseline of Choromanski et al. (2021, table 2). One is added to each count, so that no
    share is zero.
    """
    counts = torch.ones(prepared.symbols, dtype=torch.float64)
    for _, batch in _batches(prepared.split("train"), "train", size):
        counts += batch.targets[batch.scored].bincount(minlength=prepared.symbols)
    return counts / counts.sum()


def draw_pictures(model: nn.Module, prepared: PreparedPixels, split: str, config: PicturesConfig) -> dict[str, Any]:
    """Pictures that the model draws, and test pictures that it completes, always with the same noise.

    The first pixel of a sample is that of a test picture, because models are not trained to predict it.

    Args:
        model: a :class:`GenerativeModel` in evaluation mode.
        prepared: the task.
        split: whose pictures these are; they are evenly spread over it.
        config: how many, and which part is given.

    Returns:
        ``samples`` (n, height, width, channels) uint8; ``true``, ``occluded``, which has black where nothing is given,
        and ``completed`` (m, height, width, channels) uint8; ``given``, the number of given pixels, channels counted.
    """
    height, width, channels = prepared.shape
    given = channels * min(max(1, round(config.given * height * width)), height * width - 1)
    sequences = prepared.split(split)
    begun = continued(model, _spread(sequences, config.samples), 1)
    whole = _spread(sequences, config.completions)
    completed = continued(model, whole, given)
    occluded = np.where(np.arange(height * width * channels) < given, whole.numpy()[:, 1:], 0)
    pixels = {"samples": begun, "true": whole.numpy()[:, 1:], "occluded": occluded, "completed": completed}
    return {name: prepared.pictures(values) for name, values in pixels.items()} | {"given": np.array(given)}


def _spread(sequences: SequenceSplit, count: int) -> Tensor:
    """Some whole pictures, the start symbol before them: (count, 1 + T)."""
    indices = np.linspace(0, len(sequences) - 1, count).round().astype(np.int64)
    batch = sequences.batch(indices)
    return torch.cat((batch.inputs, batch.targets[:, -1:]), dim=1)


def continued(model: nn.Module, whole: Tensor, given: int) -> NDArray[np.int64]:
    """Pixels (count, T), of which the first ones are given and the model draws the others."""
    device = _device(model)
    prefix = whole[:, : 1 + given].to(device)
    noise = torch.Generator(device).manual_seed(0)
    drawn = cast(GenerativeModel, model).generate(prefix, whole.size(1) - prefix.size(1), noise)
    return np.asarray(torch.cat((prefix[:, 1:], drawn), dim=1).cpu().numpy())


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
