"""One trained classifier on its test splits: its answers, what it attends to and whether that matters to them.

Shape letters: E texts of a split (pairs count once), C classes, N words of all texts, those of first texts before those
of second; r rows of attention, n words of a text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shared.attention.structured import redundancy_penalty
from shared.data.batching import Indices
from shared.data.ragged import RaggedArray
from shared.metrics.attention_rows import evidence, focus, importance, ranks, redundancy
from shared.tasks.batches import device_of, every_batch
from shared.tasks.classification.corpus import Classified, ClassifiedBatch, ClassifiedText, PreparedClassification
from shared.tasks.classification.settings import ClassificationEvaluation, ClassificationRun
from shared.tasks.examples import Example, records, write_kept, write_records
from shared.tasks.replication import Replication

Floats = NDArray[np.float64]

SHORTEST_SHOWN = 6  # symbols; fewer are all words of one glance
OF_ROWS = {"redundancy": redundancy, "focus": focus, "penalty": redundancy_penalty}


def evaluate(
    replication: Replication, config: ClassificationRun, data: PreparedClassification, trained: Sequence[Path],
    out: Path,
) -> dict[str, float]:  # fmt: skip
    """Classify the test splits with one trained seed; there are no ensembles.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if the model attends, ``attention.npz``.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.
    """
    (model,) = replication.trained_models(config, data, trained)
    splits = {split: _evaluate_split(model, data, split, config.evaluation) for split in config.corpus.test}
    metrics = write_records(out, splits)
    write_kept(out / "attention.npz", kept_texts(model, data, config.corpus.test[0], config.evaluation))
    return metrics


class _Reading(NamedTuple):
    """What a model makes of a split. Without attention there are no rows, and nothing is important."""

    attends: bool
    log_probs: Floats  # (E, C)
    rows: Mapping[str, Floats]  # (E,) each
    importance: Floats  # (N,), of each text together 1


def _read(model: nn.Module, text: ClassifiedText, size: int) -> _Reading:
    columns: dict[str, Floats] = {}
    scores = [np.zeros(len(sequences.flat)) for sequences in text.texts]
    for indices, batch, answer in answers(model, text, size):
        found = {"log_probs": answer.logits.cpu().double().log_softmax(-1)}
        attention = [weights.cpu() for weights in answer.attention]
        if attention and attention[0].size(1) > 1:  # of a pair the mean of both
            for name, quantity in OF_ROWS.items():
                found[name] = torch.stack([quantity(weights.double()) for weights in attention]).mean(0)
        for name, values in found.items():
            columns.setdefault(name, np.empty((len(text), *values.shape[1:])))[indices] = values.numpy()
        for side, weights in enumerate(attention):
            mask = batch.masks[side].numpy()
            places = text.texts[side].offsets[indices][:, None] + np.arange(mask.shape[1])
            scores[side][places[mask]] = importance(weights).numpy()[mask] / len(attention)
    return _Reading(bool(answer.attention), columns.pop("log_probs"), columns, np.concatenate(scores))


def answers(model: nn.Module, text: ClassifiedText, size: int) -> Iterator[tuple[Indices, ClassifiedBatch, Classified]]:
    """Every batch, texts of similar length together, and what the model says of it, on the model's device."""
    for indices in every_batch(text, sentences=size):
        batch = text.batch(indices)
        on_device = batch.to(device_of(model))
        with torch.no_grad():
            answer = model(on_device.texts, on_device.masks)
        yield indices, batch, answer


def _evaluate_split(
    model: nn.Module, data: PreparedClassification, split: str, config: ClassificationEvaluation
) -> list[Example]:
    """The record of every text of a split: its answer, and what attention does for it where that is known."""
    text, gold = data.split(split), data.evidence(split)
    reading, found = _read(model, text, config.batch), {}
    if reading.rows:
        found["rows"] = _entries(reading.rows, np.ones(len(text), dtype=bool))
    if reading.attends and gold is not None:
        (sequences,) = text.texts  # there are no pairs with evidence
        marked = np.zeros(len(sequences.flat), dtype=bool)
        for begin, positions in zip(sequences.offsets[:-1], gold, strict=True):
            marked[begin + np.array(positions, dtype=np.int64)] = True
        of_evidence = evidence(reading.importance, _owners(text), marked)
        found["evidence"] = _entries(of_evidence, of_evidence["words"] > 0)
    if reading.attends and config.deletion is not None:
        # A text that could lose all its words is not tested. Which ones these are does not depend on the words that are
        # removed, so every variant is tested on the same texts.
        count = np.maximum(1, np.rint(config.deletion * np.sum(text.lengths, axis=0))).astype(np.int64)
        count = np.where(np.min(text.lengths, axis=0) > count, count, 0)
        found["deletion"] = _entries(_deletion(model, text, reading.importance, count, split, config), count > 0)
    predicted = reading.log_probs.argmax(1)
    return records(split, {
        "length": np.sum(text.lengths, axis=0).tolist(),
        "label": [data.classes[label] for label in text.labels],
        "predicted": [data.classes[answer] for answer in predicted],
        "correct": (predicted == text.labels).astype(int).tolist(),
        "cross_entropy": (-reading.log_probs[np.arange(len(text)), text.labels]).tolist(),
        **found,
    })  # fmt: skip


def _entries(columns: Mapping[str, NDArray[np.number]], where: NDArray[np.bool_]) -> list[dict[str, float] | None]:
    """Of each text a number of every column, or None."""
    return [{name: column[i].item() for name, column in columns.items()} if there else None
            for i, there in enumerate(where)]  # fmt: skip


def _owners(text: ClassifiedText) -> NDArray[np.int64]:
    """(N,) the number of the text that each word is of."""
    return np.concatenate([np.repeat(np.arange(len(text)), lengths) for lengths in text.lengths])


def _deletion(
    model: nn.Module, text: ClassifiedText, scores: Floats, count: NDArray[np.int64], split: str,
    config: ClassificationEvaluation,
) -> dict[str, NDArray[np.number]]:  # fmt: skip
    """Whether the answer is right when the most important words are taken out, and when as many random ones are.

    Args:
        model: in evaluation mode.
        text: the split.
        scores: (N,) importance of each word.
        count: (E,) words to be taken out of each text.
        split: its name, on which the random words depend, and on the number of the text and of the draw.
        config: how many draws.

    Returns:
        (E,) each: ``top``, 0 or 1; ``random``, the mean over the draws.
    """
    name, owners = zlib.crc32(split.encode()), _owners(text)

    def right(order: Floats) -> NDArray[np.int64]:
        """(E,) 1 where the answer is right without the ``count`` words of each text that ``order`` (N,) puts first."""
        kept = np.split(ranks(order, owners) >= count[owners], np.cumsum([len(side.flat) for side in text.texts])[:-1])
        shortened = ClassifiedText(tuple(map(_only, text.texts, kept)), text.labels)
        predicted = np.empty(len(text), dtype=np.int64)
        for indices, _, answer in answers(model, shortened, config.batch):
            predicted[indices] = answer.logits.argmax(-1).cpu().numpy()
        return np.equal(predicted, text.labels).astype(np.int64)

    def noise(draw: int) -> Floats:
        """(N,) a random number for every word, which depends on the arguments and the index of its text only."""
        return np.concatenate([
            np.random.default_rng((name, draw, side, i)).random(length)
            for side, lengths in enumerate(text.lengths) for i, length in enumerate(lengths)
        ])  # fmt: skip

    random = np.mean([right(noise(draw)) for draw in range(config.deletion_draws)], axis=0)
    return {"top": right(scores), "random": random}


def _only(sequences: RaggedArray, kept: NDArray[np.bool_]) -> RaggedArray:
    """The same sequences with the symbols that are kept."""
    return RaggedArray(sequences.flat[kept], np.concatenate(([0], np.cumsum(kept)))[sequences.offsets])


def kept_texts(
    model: nn.Module, data: PreparedClassification, split: str, config: ClassificationEvaluation
) -> list[dict[str, Any]]:
    """The attention to some texts of middling length, evenly spread over the split; none if the model does not attend.

    Of each text: ``words`` (n,), as they stand there, known to the model or not; ``weights`` (r, n); ``label`` and
    ``predicted``, classes; ``evidence``, positions, where they are known. Both texts of a pair count, and follow each
    other.
    """
    text, lines, gold = data.split(split), data.lines(split), data.evidence(split)
    lengths = np.sum(text.lengths, axis=0)
    fitting = np.flatnonzero((lengths >= SHORTEST_SHOWN) & (lengths <= config.longest_shown))
    places = np.linspace(0, len(fitting) - 1, min(config.heatmaps, len(fitting))).round().astype(int)
    kept = []
    for i in fitting[places]:
        batch = text.batch(np.array([i])).to(device_of(model))
        with torch.no_grad():
            answer = model(batch.texts, batch.masks)
        for side, weights in enumerate(answer.attention):
            symbols = text.texts[side][i].tolist()
            words = data.tokenizer.split(lines[side][i])[: len(symbols)] if data.tokenizer.unit == "word" else []
            kept.append({
                "words": np.array(words or data.tokenizer.pieces(symbols)),
                "weights": weights[0].float().cpu().numpy(),
                "label": np.array(data.classes[text.labels[i]]),
                "predicted": np.array(data.classes[answer.logits[0].argmax()]),
                **({} if gold is None else {"evidence": np.array(gold[i], dtype=np.int64)}),
            })  # fmt: skip
    return kept
