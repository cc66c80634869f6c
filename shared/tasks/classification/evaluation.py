"""One trained classifier on its test splits: its answers, what it attends to and whether that matters to them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import shared.tasks.classification.measures  # noqa: F401  registers what evaluation computes
from shared.attention.structured import redundancy_penalty
from shared.data.batching import Indices
from shared.data.ragged import RaggedArray
from shared.metrics.attention_rows import evidence, focus, importance, ranks, redundancy
from shared.tasks.batches import every_batch
from shared.tasks.classification.corpus import Classified, ClassifiedBatch, ClassifiedText, PreparedClassification
from shared.tasks.classification.settings import ClassificationEvaluation, ClassificationRun
from shared.tasks.examples import Example, judged, write_examples, write_kept

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[np.number]]
"""Name to a number for each of the E texts of a split; for a pair, of both together."""

SHORTEST_SHOWN = 6  # symbols; fewer are all words of one glance


def evaluate_classification(
    model: nn.Module, text: PreparedClassification, config: ClassificationRun, out: Path
) -> dict[str, float]:
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if the model attends, ``attention.npz``.

    Args:
        model: as :class:`Classified` says.
        text: the prepared task.
        config: the variant's settings.
        out: folder of the seed.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.
    """
    out.mkdir(parents=True, exist_ok=True)
    splits = {split: _evaluate_split(model, text, split, config.evaluation) for split in config.corpus.test}
    write_kept(out / "attention.npz", kept_texts(model, text, config.corpus.test[0], config.evaluation))
    write_examples(out, [example for examples in splits.values() for example in examples])
    return judged(splits)


def classification_examples(text: PreparedClassification, split: str, log_probs: Floats) -> list[Example]:
    """The record of every text of a split, as far as answers alone make it.

    Args:
        text: the prepared task.
        split: its name.
        log_probs: (E, C) of every class, nats.
    """
    encoded, keys = text.split(split), text.keys(split)
    lengths, predicted = np.sum(encoded.lengths, axis=0), log_probs.argmax(1)
    nats = -log_probs[np.arange(len(encoded)), encoded.labels]
    examples = []
    for i, label in enumerate(encoded.labels):
        example: Example = {"id": f"{split}-{i}", "split": split}
        if keys is not None:
            example |= {"key": keys[i], "set": keys[i].partition("/")[0]}
        example |= {
            "length": int(lengths[i]), "label": text.classes[label], "predicted": text.classes[predicted[i]],
            "correct": int(predicted[i] == label), "cross_entropy": float(nats[i]),
        }  # fmt: skip
        examples.append(example)
    return examples


class _Reading(NamedTuple):
    """What a model makes of the E texts of a split, and of their N words, those of first texts before those of second.

    Without attention there are no rows, and nothing is important.
    """

    attends: bool
    log_probs: Floats  # (E, C)
    rows: Columns  # (E,) each
    importance: Floats  # (N,), of each text together 1


def _read(model: nn.Module, text: ClassifiedText, size: int) -> _Reading:
    order, log_probs = [], []
    rows: dict[str, list[Tensor]] = {}
    scores = [np.zeros(len(sequences.flat)) for sequences in text.texts]
    for indices, batch, answer in answers(model, text, size):
        order.append(indices)
        log_probs.append(answer.logits.cpu().double().log_softmax(-1))
        attention = tuple(weights.cpu() for weights in answer.attention)
        for name, values in _of_rows(attention).items():
            rows.setdefault(name, []).append(values)
        for side, weights in enumerate(attention):
            mask = batch.masks[side].numpy()
            places = text.texts[side].offsets[indices][:, None] + np.arange(mask.shape[1])
            scores[side][places[mask]] = importance(weights).numpy()[mask] / len(attention)
    back = np.argsort(np.concatenate(order))
    columns = {name: torch.cat(values).numpy()[back] for name, values in rows.items()}
    return _Reading(bool(answer.attention), torch.cat(log_probs).numpy()[back], columns, np.concatenate(scores))


def answers(model: nn.Module, text: ClassifiedText, size: int) -> Iterator[tuple[Indices, ClassifiedBatch, Classified]]:
    """Every batch, texts of similar length together, and what the model says of it, on the model's device."""
    device = next(model.parameters()).device
    for indices in every_batch(text, sentences=size):
        batch = text.batch(indices)
        on_device = batch.to(device)
        with torch.no_grad():
            answer = model(on_device.texts, on_device.masks)
        yield indices, batch, answer


def _of_rows(attention: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Statistics (B,) of the rows of A, as means over the texts of a pair; empty if A has fewer than two rows."""
    if not attention or attention[0].size(1) == 1:
        return {}
    doubles = [weights.double() for weights in attention]
    of = {"redundancy": redundancy, "focus": focus, "penalty": redundancy_penalty}
    return {name: torch.stack([quantity(a) for a in doubles]).mean(0) for name, quantity in of.items()}


def _evaluate_split(
    model: nn.Module, text: PreparedClassification, split: str, config: ClassificationEvaluation
) -> list[Example]:
    encoded, gold = text.split(split), text.evidence(split)
    reading = _read(model, encoded, config.batch)
    examples = classification_examples(text, split, reading.log_probs)
    if reading.rows:
        _add(examples, "rows", reading.rows, np.ones(len(encoded), dtype=bool))
    if reading.attends and gold is not None:
        (sequences,) = encoded.texts  # there are no pairs with evidence
        marked = np.zeros(len(sequences.flat), dtype=bool)
        for begin, positions in zip(sequences.offsets[:-1], gold, strict=True):
            marked[begin + np.array(positions, dtype=np.int64)] = True
        found = evidence(reading.importance, _owners(encoded), marked)
        _add(examples, "evidence", found, found["words"] > 0)
    if reading.attends and config.deletion is not None:
        # A text that could lose all its words is not tested. Which ones these are does not depend on the words that are
        # removed, so every variant is tested on the same texts.
        count = np.maximum(1, np.rint(config.deletion * np.sum(encoded.lengths, axis=0))).astype(np.int64)
        count = np.where(np.min(encoded.lengths, axis=0) > count, count, 0)
        _add(examples, "deletion", _deletion(model, encoded, reading.importance, count, split, config), count > 0)
    return examples


def _add(
    examples: list[Example], entry: str, columns: Mapping[str, NDArray[np.number]], where: NDArray[np.bool_]
) -> None:
    """Put an entry with one number of every column into the examples ``where`` there is one."""
    for i in np.flatnonzero(where):
        examples[i][entry] = {name: column[i].item() for name, column in columns.items()}


def _owners(text: ClassifiedText) -> NDArray[np.int64]:
    """(N,) the number of the text that each word is of."""
    return np.concatenate([np.repeat(np.arange(len(text)), lengths) for lengths in text.lengths])


def _deletion(
    model: nn.Module, text: ClassifiedText, scores: Floats, count: NDArray[np.int64], split: str,
    config: ClassificationEvaluation,
) -> Columns:  # fmt: skip
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
    name = zlib.crc32(split.encode())

    def right(order: Floats) -> NDArray[np.int64]:
        """(E,) 1 where the answer is right without the words that ``order`` puts first."""
        predicted = np.empty(len(text), dtype=np.int64)
        for indices, _, answer in answers(model, _without(text, order, count), config.batch):
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


def _without(text: ClassifiedText, scores: Floats, count: NDArray[np.int64]) -> ClassifiedText:
    """The texts without the ``count`` (E,) words of the highest scores (N,)."""
    owners = _owners(text)
    kept = ranks(scores, owners) >= count[owners]
    shortened, begin = [], 0
    for sequences in text.texts:
        keep = kept[begin : begin + len(sequences.flat)]
        ends = np.concatenate(([0], np.cumsum(keep)))[sequences.offsets]
        shortened.append(RaggedArray(sequences.flat[keep], ends))
        begin += len(keep)
    return ClassifiedText(tuple(shortened), text.labels)


def kept_texts(
    model: nn.Module, text: PreparedClassification, split: str, config: ClassificationEvaluation
) -> list[dict[str, Any]]:
    """The attention to some texts of middling length, evenly spread over the split; none if the model does not attend.

    Of each text: ``words`` (n,), as they stand there, known to the model or not; ``weights`` (r, n); ``label`` and
    ``predicted``, classes; ``evidence``, positions, where they are known. Both texts of a pair count, and follow each
    other.
    """
    encoded, lines, gold = text.split(split), text.lines(split), text.evidence(split)
    lengths, device = np.sum(encoded.lengths, axis=0), next(model.parameters()).device
    fitting = np.flatnonzero((lengths >= SHORTEST_SHOWN) & (lengths <= config.longest_shown))
    places = np.linspace(0, len(fitting) - 1, min(config.heatmaps, len(fitting))).round().astype(int)
    kept = []
    for i in fitting[places]:
        batch = encoded.batch(np.array([i])).to(device)
        with torch.no_grad():
            answer = model(batch.texts, batch.masks)
        for side, weights in enumerate(answer.attention):
            symbols = encoded.texts[side][i].tolist()
            words = text.tokenizer.split(lines[side][i])[: len(symbols)] if text.tokenizer.unit == "word" else []
            kept.append(
                {
                    "words": np.array(words or text.tokenizer.pieces(symbols)),
                    "weights": weights[0].float().cpu().numpy(),
                    "label": np.array(text.classes[encoded.labels[i]]),
                    "predicted": np.array(text.classes[answer.logits[0].argmax()]),
                    **({} if gold is None else {"evidence": np.array(gold[i], dtype=np.int64)}),
                }
            )
    return kept
