"""One trained classifier on its test splits: its answers, what it attends to and whether that matters to them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import shared.tasks.classification.measures  # noqa: F401  registers what evaluation computes
from shared.attention.structured import redundancy_penalty
from shared.data.batching import Indices, epoch_batches
from shared.data.ragged import RaggedArray
from shared.metrics.attention_rows import evidence, focus, importance, ranks, redundancy
from shared.tasks.classification.corpus import ClassifiedBatch, ClassifiedText, PreparedClassification
from shared.tasks.classification.protocol import Classified
from shared.tasks.classification.settings import ClassificationEvaluation, ClassificationRun
from shared.tasks.examples import Example, judged, write_examples

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
    splits = {split: _judge_split(model, text, split, config.evaluation) for split in config.corpus.test}
    _save_heatmaps(out / "attention.npz", model, text, config.corpus.test[0], config.evaluation)
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


@dataclass(frozen=True)
class _Reading:
    """What a model makes of the E texts of a split, and of their N words, those of first texts before those of second.

    Without attention there are no rows, and nothing is important.
    """

    attends: bool
    log_probs: Floats  # (E, C)
    rows: Columns  # (E,) each
    importance: Floats  # (N,), of each text together 1

    @classmethod
    def of(cls, model: nn.Module, text: ClassifiedText, size: int) -> _Reading:
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
        attends = bool(answer.attention)
        back = np.argsort(np.concatenate(order))
        columns = {name: torch.cat(values).numpy()[back] for name, values in rows.items()}
        return cls(attends, torch.cat(log_probs).numpy()[back], columns, np.concatenate(scores))


def answers(model: nn.Module, text: ClassifiedText, size: int) -> Iterator[tuple[Indices, ClassifiedBatch, Classified]]:
    """Every batch, texts of similar length together, and what the model says of it, on the model's device."""
    device = next(model.parameters()).device
    for indices in epoch_batches(text.lengths, pool=10**6, seed=0, epoch=0, sentences=size):
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


def _judge_split(
    model: nn.Module, text: PreparedClassification, split: str, config: ClassificationEvaluation
) -> list[Example]:
    encoded = text.split(split)
    reading = _Reading.of(model, encoded, config.batch)
    examples = classification_examples(text, split, reading.log_probs)
    if reading.rows:
        _add(examples, "rows", reading.rows, np.ones(len(encoded), dtype=bool))
    if reading.attends:
        if (gold := text.evidence(split)) is not None:
            found = evidence(reading.importance, _owners(encoded), _marked(encoded, gold))
            _add(examples, "evidence", found, found["words"] > 0)
        if config.deletion is not None:
            count = _removable(encoded, config.deletion)
            deleted = _deletion(model, encoded, reading.importance, count, split, config)
            _add(examples, "deletion", deleted, count > 0)
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


def _marked(text: ClassifiedText, gold: list[list[int]]) -> NDArray[np.bool_]:
    """(N,) whether a word is evidence, by its positions in every text; there are no pairs with evidence."""
    (sequences,) = text.texts
    marked = np.zeros(len(sequences.flat), dtype=bool)
    for begin, positions in zip(sequences.offsets[:-1], gold, strict=True):
        marked[begin + np.array(positions, dtype=np.int64)] = True
    return marked


def _removable(text: ClassifiedText, share: float) -> NDArray[np.int64]:
    """(E,) number of words that the deletion test removes from each text or pair: ``share`` of them, at least one.

    The number is 0 where a text could lose all its words. This does not depend on the words that are removed, so every
    variant is tested on the same texts.
    """
    count = np.maximum(1, np.rint(share * np.sum(text.lengths, axis=0))).astype(np.int64)
    return np.where(np.min(text.lengths, axis=0) > count, count, 0)


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

    def right(order: Floats) -> NDArray[np.int64]:
        """(E,) 1 where the answer is right without the words that ``order`` puts first."""
        predicted = np.empty(len(text), dtype=np.int64)
        for indices, _, answer in answers(model, _without(text, order, count), config.batch):
            predicted[indices] = answer.logits.argmax(-1).cpu().numpy()
        return np.equal(predicted, text.labels).astype(np.int64)

    draws = [right(_random_scores(text, split, draw)) for draw in range(config.deletion_draws)]
    return {"top": right(scores), "random": np.mean(draws, axis=0)}


def _random_scores(text: ClassifiedText, split: str, draw: int) -> Floats:
    """(N,) a random number for every word, which depends on the arguments and the index of its text only."""
    name = zlib.crc32(split.encode())
    return np.concatenate([
        np.random.default_rng((name, draw, side, i)).random(length)
        for side, lengths in enumerate(text.lengths) for i, length in enumerate(lengths)
    ])  # fmt: skip


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


def _save_heatmaps(
    path: Path, model: nn.Module, text: PreparedClassification, split: str, config: ClassificationEvaluation
) -> None:
    """Write the attention to some texts of middling length, evenly spread over the split, if the model attends.

    Of the k-th text: ``words_<k>`` (n,), as they stand there, known to the model or not; ``weights_<k>`` (r, n);
    ``label_<k>`` and ``predicted_<k>``, classes; ``evidence_<k>``, positions, where they are known. Both texts of a
    pair count, and follow each other.
    """
    encoded, lines, gold = text.split(split), text.lines(split), text.evidence(split)
    lengths, device = np.sum(encoded.lengths, axis=0), next(model.parameters()).device
    fitting = np.flatnonzero((lengths >= SHORTEST_SHOWN) & (lengths <= config.longest_shown))
    places = np.linspace(0, len(fitting) - 1, min(config.heatmaps, len(fitting))).round().astype(int)
    arrays: dict[str, Any] = {}
    for i in fitting[places]:
        batch = encoded.batch(np.array([i])).to(device)
        with torch.no_grad():
            answer = model(batch.texts, batch.masks)
        for side, weights in enumerate(answer.attention):
            number = sum(name.startswith("words_") for name in arrays)
            arrays[f"words_{number}"] = _words(text, lines[side][i], encoded.texts[side][i])
            arrays[f"weights_{number}"] = weights[0].float().cpu().numpy()
            arrays[f"label_{number}"] = np.array(text.classes[encoded.labels[i]])
            arrays[f"predicted_{number}"] = np.array(text.classes[answer.logits[0].argmax()])
            if gold is not None:
                arrays[f"evidence_{number}"] = np.array(gold[i], dtype=np.int64)
    if arrays:
        np.savez_compressed(path, **arrays)


def _words(text: PreparedClassification, line: str, symbols: NDArray[np.integer]) -> NDArray[np.str_]:
    """(n,) the word or piece behind each symbol that was read of a line."""
    words = text.tokenizer.split(line)[: len(symbols)] if text.tokenizer.unit == "word" else []
    return np.array(words or text.tokenizer.pieces(symbols.tolist()))
