"""Evaluates a trained captioner on its test splits: its captions, their truth, and its attention to named objects.

Shape letters: N images of a split, S symbols of all their captions, W of these that name an object with a box, L places
of the grid.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.fetch import fetch
from shared.data.generated.scene_captions import scene_truth
from shared.data.generated.scenes import SceneSplit
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS, SPECIAL, Tokenizer
from shared.decoding.beam import beam_search
from shared.metrics.captioning import CaptionScorer
from shared.metrics.regions import contrast_statistics, pointing_statistics
from shared.tasks.batches import device_of, every_batch
from shared.tasks.captioning.corpus import CaptionedSplit, PreparedCaptions
from shared.tasks.captioning.module import limits
from shared.tasks.captioning.settings import CaptioningEvaluation, CaptioningRun
from shared.tasks.examples import Example, records, write_kept, write_records
from shared.tasks.replication import Replication

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]
Names = Sequence[Sequence[Sequence[str]]]
"""For each image and each object in it, the possible names of the object."""


def evaluate(
    replication: Replication, config: CaptioningRun, text: PreparedCaptions, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Caption the test splits with one trained seed; there are no ensembles.

    Writes ``examples.jsonl.gz`` (all images of all test splits) into ``out`` and ``attention.npz``, which has some
    images of every split, evenly spread over it. Of the k-th: ``id_<k>``; ``image_<k>`` (height, width, 3);
    ``references_<k>`` (R,); ``words_<k>`` (T,), of the generated caption, with the end symbol even if it did not come
    to it; if the model has them ``weights_<k>`` (T, L) and ``gates_<k>`` (T,); if they are known ``boxes_<k>`` (O, 4)
    in pixels, ``names_<k>`` (O,) and ``correct_<k>``, 1 if the caption is entirely true; and ``rows``, ``columns``.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: what the metrics need is missing.
    """
    fetch(config.corpus.dataset)  # at once if it is there; figures keep some of its images
    (model,) = replication.trained_models(config, text, trained)
    splits: dict[str, list[Example]] = {}
    kept: list[dict[str, Any]] = []
    with CaptionScorer(config.evaluation.metrics, tokenisation=config.evaluation.tokenisation) as scorer:
        for name in config.corpus.test:
            splits[name], shown = _evaluate_split(model, text, name, config.evaluation, scorer)
            kept += shown
    metrics = write_records(out, splits)
    write_kept(out / "attention.npz", kept, rows=text.grid.rows, columns=text.grid.columns)
    return metrics


def describe(config: CaptioningRun) -> Mapping[str, Any]:
    """Signatures and the token's name."""
    judging = config.evaluation
    with CaptionScorer(judging.metrics, tokenisation=judging.tokenisation) as scorer:
        return {"signatures": scorer.signatures(), "token": config.corpus.tokenizer.unit}


def _evaluate_split(
    model: Any, text: PreparedCaptions, name: str, config: CaptioningEvaluation, scorer: CaptionScorer
) -> tuple[list[Example], list[dict[str, Any]]]:
    """The record of every image of a split, and the arrays of those that are kept for figures."""
    given, images, references = text.split(name), text.images(name), text.references(name)
    count, boxes = len(references), images.boxes[: len(references)]
    names = _names(images, count) if isinstance(images, SceneSplit) else None
    symbols: list[list[int]] = []
    for start in range(0, count, config.batch):
        features = given.image_features(np.arange(start, min(start + config.batch, count))).to(device_of(model))
        symbols += search(model, features, config)
    captions, links = RaggedArray.pack([[*line, EOS] for line in symbols]), _links(symbols, text.tokenizer, names)
    own = replace(given, captions=captions, image=np.arange(count), links=links)
    hypotheses = text.tokenizer.decode(symbols)
    columns: dict[str, Sequence[Any]] = {
        "hypothesis": hypotheses,
        "references": references,
        "exact": [int(one in of) for one, of in zip(hypotheses, references, strict=True)],
        "caption": scorer.statistics(hypotheses, references),
    }
    if names is not None:
        columns["truth"] = list(map(scene_truth, hypotheses, names, boxes))
    reading, image = _read(model, given, config.batch), _image_of_symbols(given)
    columns["nll"] = np.bincount(image, reading.nats, count).tolist()
    columns["tokens"] = np.bincount(image, minlength=count).tolist()
    if len(given.boxes):
        objects = columns["objects"] = [len(of) for of in boxes]
        if reading.weights is not None:
            columns["regions"] = _regions(given, reading.weights, objects)
            own_weights = _read(model, own, config.batch).weights
            assert own_weights is not None, "a model that attends does so at every caption"
            columns["generated_regions"] = _regions(own, own_weights, objects)
        if reading.gates is not None:
            columns["gate"] = _gates(given, reading.gates, count)
    examples = records(name, columns)
    kept = []
    for i in np.linspace(0, count - 1, min(config.heatmaps, count)).round().astype(int).tolist():
        batch = own.batch(np.array([i])).to(device_of(model))
        with torch.no_grad():
            answer = model(batch.features, batch.captions)
        words = [*text.tokenizer.pieces(symbols[i]), SPECIAL[EOS]]
        arrays = {"id": f"{name}-{i}", "image": images.images([i])[0], "references": references[i], "words": words}
        for entry, found in (("weights", answer.attention), ("gates", answer.gates)):
            if found is not None:
                arrays[entry] = found[0].float().cpu().numpy()
        if names is not None:
            arrays |= {
                "names": [of[0] for of in names[i]],
                "boxes": boxes[i],
                "correct": columns["truth"][i]["all_true"],
            }
        kept.append(arrays)
    return examples, kept


@torch.no_grad()
def search(model: Any, features: Tensor, config: CaptioningEvaluation) -> list[list[int]]:
    """The best caption of every image by its features (B, L, D), as symbols without the end symbol."""
    state, constraints = model.start(features), limits(features, config.longest)
    return beam_search(model, state, constraints, beam=config.beam, normalisation=config.normalisation).best()


def _names(scenes: SceneSplit, count: int) -> Names:
    """Possible names of the objects of the first ``count`` scenes; for objects not seen in training, the kind only."""
    things = ([scenes.pictures[placed.code] for placed in scene.objects] for scene in scenes.scenes[:count])
    return [[[of.name, of.kind] if of.seen else [of.kind] for of in own] for own in things]


def _links(symbols: Sequence[Sequence[int]], tokenizer: Tokenizer, names: Names | None) -> NDArray[np.int32]:
    """(S,) the row of the box that each symbol of the generated captions, end symbols included, names; or -1."""
    if names is None:
        return np.full(sum(len(line) + 1 for line in symbols), -1, dtype=np.int32)
    links, first = [], 0
    for line, own in zip(symbols, names, strict=True):
        links += [first + thing if thing >= 0 else -1 for thing in (*_named(tokenizer.pieces(line), own), -1)]
        first += len(own)
    return np.array(links, dtype=np.int32)


def _named(words: list[str], names: Sequence[Sequence[str]]) -> list[int]:
    """For each word the number of the object that it names, or -1; a name that two objects share identifies neither."""
    objects = Counter(name for own in names for name in own)
    found = [-1] * len(words)
    for thing, own in enumerate(names):
        for parts in (name.split() for name in own if objects[name] == 1):
            for start in range(len(words) - len(parts) + 1):
                if words[start : start + len(parts)] == parts:
                    found[start : start + len(parts)] = [thing] * len(parts)
    return found


class _Reading(NamedTuple):
    """Predictions by teacher forcing for the S symbols of a split's captions, in their order."""

    nats: Floats  # (S,) -log p
    gates: Floats | None  # (S,); None if the model has none
    weights: Weights | None  # (W, L) at the symbols that name an object; None if it does not attend


@torch.no_grad()
def _read(model: Any, split: CaptionedSplit, size: int) -> _Reading:
    naming = split.links >= 0
    row, found = naming.cumsum() - 1, dict[str, NDArray[Any]]()
    for indices in every_batch(split, sentences=size):
        batch = split.batch(indices).to(device_of(model))
        answer, mask = model(batch.features, batch.captions), batch.mask
        places = (split.captions.offsets[indices][:, None] + np.arange(mask.size(1)))[mask.cpu().numpy()]
        for name, values in (("nats", answer.nats), ("gates", answer.gates)):
            if values is not None:
                found.setdefault(name, np.empty(len(row)))[places] = values[mask].double().cpu().numpy()
        if answer.attention is not None:
            rows, named = answer.attention[mask].float().cpu().numpy(), naming[places]
            table = found.setdefault("weights", np.empty((naming.sum(), rows.shape[1]), np.float32))
            table[row[places[named]]] = rows[named]
    return _Reading(found["nats"], found.get("gates"), found.get("weights"))


def _image_of_symbols(split: CaptionedSplit) -> NDArray[np.int64]:
    """(S,)"""
    return np.repeat(split.image, split.captions.lengths)


def _regions(split: CaptionedSplit, weights: Weights, objects: Sequence[int]) -> list[dict[str, float]]:
    """Statistics per image of the attention at words that name an object; ``objects`` has the number per image."""
    grid, naming = (split.grid.rows, split.grid.columns), split.links >= 0
    links, ends = split.links[naming], np.searchsorted(_image_of_symbols(split)[naming], range(len(objects) + 1))
    found = []
    for (first, last), (begin, end) in zip(
        itertools.pairwise(ends), itertools.pairwise(np.cumsum([0, *objects])), strict=True
    ):
        named, own = links[first:last], weights[first:last]
        found.append(
            pointing_statistics(own, split.boxes[named], *grid)
            | contrast_statistics(own, named - begin, split.boxes[begin:end], *grid)
        )
    return found


def _gates(split: CaptionedSplit, gates: Floats, count: int) -> list[dict[str, list[float]]]:
    """Per image the sum and the number of gates at words that name something, at other words and at end symbols."""
    content, end = split.links >= 0, split.captions.flat == EOS
    columns = {
        kind: np.stack([np.bincount(_image_of_symbols(split)[where], of, count) for of in (gates[where], None)], axis=1)
        for kind, where in (("content", content), ("function", ~(content | end)), ("end", end))
    }
    return [{kind: column[i].tolist() for kind, column in columns.items()} for i in range(count)]
