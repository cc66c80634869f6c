"""One trained model of separate sequences on its test splits: how well every symbol that counts is predicted.

Shape letters: N sequences of a split, B of a batch, T symbols, n targets of a batch that count, V symbols of the
vocabulary.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shared.config import merge
from shared.data.batching import Indices
from shared.decoding.protocol import GenerativeModel, SequenceModel
from shared.errors import ReplicationError
from shared.tasks.batches import device_of, every_batch
from shared.tasks.examples import Example, records, write_records
from shared.tasks.replication import Replication, ready
from shared.tasks.sequences.batches import SequenceBatch, Sequences
from shared.tasks.sequences.corpus import PreparedSequences
from shared.tasks.sequences.pixels import pictures
from shared.tasks.sequences.proteins import families
from shared.tasks.sequences.settings import PicturesConfig, SequenceRun

Floats = NDArray[np.float64]
Predictor = Callable[[SequenceBatch], tuple[Tensor, Tensor]]
"""From a batch to the nats (n,) of the targets that count, and whether each is the most probable symbol (n,)."""

LEAST = float(torch.finfo(torch.float32).tiny)
"""Probability substituted for one whose negative log-likelihood is NaN or infinite."""


def evaluate(
    replication: Replication, config: SequenceRun, data: PreparedSequences, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Score the test splits with one trained seed, and the first one with its weights in other models, too.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if asked for, ``pictures.npz``, see
    :func:`draw_pictures`. What is masked depends on the split alone, so that all models are judged on the same letters.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: a negative log-likelihood is NaN or infinite, and ``training.may_diverge`` is not set; or a
            swapped model has other weights than those trained.
    """
    (model,) = replication.trained_models(config, data, trained)
    models = {name: _swapped(replication, config, data, model, name) for name in config.evaluation.swapped}
    first, wanted = config.corpus.test[0], config.evaluation.pictures
    with torch.inference_mode():
        frequencies = _frequencies(data, config.evaluation.tokens) if config.evaluation.baseline else None
        splits = {
            split: _evaluate_split({"": model} | (models if split == first else {}), data, split, config, frequencies)
            for split in config.corpus.test
        }
        metrics = write_records(out, splits)
        if wanted is not None:
            np.savez_compressed(out / "pictures.npz", **draw_pictures(model, data, first, wanted))
    return metrics


def _swapped(
    replication: Replication, config: SequenceRun, data: PreparedSequences, trained: nn.Module, name: str
) -> nn.Module:
    """The swapped model ``name`` with the trained weights; the trained model's ``origin`` seeds its random draws."""
    changed = config.with_model(merge(config.model, config.evaluation.swapped[name]))
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(int(cast(SequenceModel, trained).origin))
        model = replication.model(changed, data.sizes)
    weights = dict(trained.named_parameters())
    if {of: each.shape for of, each in model.named_parameters()} != {of: each.shape for of, each in weights.items()}:
        raise ReplicationError(
            f"evaluation.swapped.{name} makes a model whose weights are others than those trained; leave out what "
            "changes them."
        )
    model.load_state_dict(weights, strict=False)
    cast(SequenceModel, model).at_update(config.training.updates)  # brings it to the same state of training
    return ready(model)


class _Scores(NamedTuple):
    """What a predictor makes of the N sequences of a split; each is (N,)."""

    tokens: Floats  # targets that count
    nats: Floats  # their summed negative log-likelihood, with LEAST for undefined targets
    hits: Floats  # targets that are the most probable symbol
    undefined: Floats  # targets whose negative log-likelihood is NaN or infinite

    @property
    def nats_and_hits(self) -> list[list[float]]:
        """Of each sequence."""
        return [list(pair) for pair in zip(self.nats.tolist(), self.hits.astype(int).tolist(), strict=True)]


def _evaluate_split(
    models: Mapping[str, nn.Module], data: PreparedSequences, split: str, config: SequenceRun,
    frequencies: Tensor | None,
) -> list[Example]:  # fmt: skip
    """The records of a split, with the scores of the trained model (name "") and of the swapped models.

    The record of a protein has the name of its family. Bootstrap intervals resample families, because related proteins
    are not independent.
    """
    sequences, corpus, size = data.split(split), config.corpus, config.evaluation.tokens
    found = {
        name: _score(partial(_by_model, model, corpus.counts_hits), sequences, split, size, device_of(model))
        for name, model in models.items()
    }
    for name, scores in found.items():
        if scores.undefined.any() and not config.training.may_diverge:
            whose = f"the swapped model '{name}'" if name else "the model"
            raise ReplicationError(
                f"{whose} gives {scores.undefined.sum():,.0f} symbols of split '{split}' a probability that is no "
                "number; train with a smaller learning rate, or set training.may_diverge to judge it as it is."
            )
    own = found.pop("")
    tokens = own.tokens.astype(int).tolist()
    columns: dict[str, Sequence[Any]] = {
        "nll": own.nats.tolist(), "tokens": tokens, "unit": [corpus.unit] * len(tokens), "units": tokens,
        "length": sequences.lengths[0].tolist(),
    }  # fmt: skip
    if corpus.of == "proteins" and (of_families := families(data.folder, split)) is not None:
        columns["family"] = of_families
    if corpus.counts_hits:
        columns["hits"] = own.hits.astype(int).tolist()
    if config.training.may_diverge:
        columns["undefined"] = own.undefined.astype(int).tolist()
    if found:
        pairs = zip(*(scores.nats_and_hits for scores in found.values()), strict=True)
        columns["swapped"] = [dict(zip(found, each, strict=True)) for each in pairs]
    if frequencies is not None:
        columns["baseline"] = _score(partial(_by_frequencies, frequencies), sequences, split, size).nats_and_hits
    return records(split, columns)


def _score(
    predict: Predictor, sequences: Sequences, split: str, size: int, device: torch.device | str = "cpu"
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


def _batches(sequences: Sequences, split: str, size: int) -> Iterator[tuple[Indices, SequenceBatch]]:
    seed = (zlib.crc32(split.encode()),)
    for indices in every_batch(sequences, tokens=size):
        yield indices, sequences.batch(indices, seed)


def _by_model(model: Any, counts_hits: bool, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
    """A :data:`Predictor`, of a model."""
    h, targets = model(batch.inputs, batch.mask)[batch.scored], batch.targets[batch.scored]
    best = model.output.log_probs(h).argmax(-1) if counts_hits else torch.full_like(targets, -1)
    return model.output(h, targets), best == targets


def _by_frequencies(frequencies: Tensor, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
    """A :data:`Predictor` that assigns each symbol its share (V,)."""
    targets = batch.targets[batch.scored]
    return -frequencies.log()[targets], targets == frequencies.argmax()


def _frequencies(data: PreparedSequences, size: int) -> Tensor:
    """(V,) float64 shares of symbols among the targets of train that count.

    They are the empirical baseline of Choromanski et al. (2021, table 2). One is added to each count, so that no
    share is zero.
    """
    counts = torch.ones(data.symbols, dtype=torch.float64)
    for _, batch in _batches(data.split("train"), "train", size):
        counts += batch.targets[batch.scored].bincount(minlength=data.symbols)
    return counts / counts.sum()


def draw_pictures(model: nn.Module, data: PreparedSequences, split: str, config: PicturesConfig) -> dict[str, Any]:
    """Pictures that the model draws, and test pictures that it completes, always with the same noise.

    The first pixel of a sample is that of a test picture, because models are not trained to predict it.

    Args:
        model: a :class:`GenerativeModel` in evaluation mode.
        data: the task, of pixels.
        split: whose pictures these are; they are evenly spread over it.
        config: how many, and which part is given.

    Returns:
        ``samples`` (n, height, width, channels) uint8; ``true``, ``occluded``, which has black where nothing is given,
        and ``completed`` (m, height, width, channels) uint8; ``given``, the number of given pixels, channels counted.
    """
    shape, levels, sequences = data.summary["shape"], data.summary["levels"], data.split(split)
    given = given_pixels(config, shape)
    begun, whole = (_spread(sequences, count) for count in (config.samples, config.completions))
    pixels = {"samples": continued(model, begun, 1), "true": whole.numpy()[:, 1:]}
    pixels["occluded"] = np.where(np.arange(math.prod(shape)) < given, pixels["true"], 0)
    pixels["completed"] = continued(model, whole, given)
    return {name: pictures(values, shape, levels) for name, values in pixels.items()} | {"given": np.array(given)}


def given_pixels(config: PicturesConfig, shape: Sequence[int]) -> int:
    """How many pixels of a picture of this height, width and channels are given, channels counted."""
    height, width, channels = shape
    return channels * min(max(1, round(config.given * height * width)), height * width - 1)


def _spread(sequences: Sequences, count: int) -> Tensor:
    """Some whole pictures, the start symbol before them: (count, 1 + T)."""
    batch = sequences.batch(np.linspace(0, len(sequences) - 1, count).round().astype(np.int64))
    return torch.cat((batch.inputs, batch.targets[:, -1:]), dim=1)


def continued(model: nn.Module, whole: Tensor, given: int) -> NDArray[np.int64]:
    """Pixels (count, T), of which the first ones are given and the model draws the others."""
    device = device_of(model)
    prefix = whole[:, : 1 + given].to(device)
    noise = torch.Generator(device).manual_seed(0)
    drawn = cast(GenerativeModel, model).generate(prefix, whole.size(1) - prefix.size(1), noise)
    return np.asarray(torch.cat((prefix[:, 1:], drawn), dim=1).cpu().numpy())
