"""Evaluates a trained captioner on its test splits: its captions, their truth, and its attention to named objects.

Shape letters: N images of a split, S symbols of all their captions, W of these that name an object with a box, L places
of the grid.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import shared.tasks.captioning.measures  # noqa: F401  registers what evaluation computes
from shared.data.batching import epoch_batches
from shared.data.generated.scene_truth import scene_truth
from shared.data.generated.scenes import SceneSplit
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, Tokenizer
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.metrics.captioning import CaptionScorer
from shared.metrics.regions import contrast_statistics, pointing_statistics
from shared.tasks.captioning.corpus import CaptionedImages, CaptionedSplit, PreparedCaptions
from shared.tasks.captioning.settings import CaptioningEvaluation, CaptioningRun
from shared.tasks.examples import Example, judged, write_examples

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]
Names = Sequence[Sequence[Sequence[str]]]
"""For each image and each object in it, the possible names of the object."""
Columns = dict[str, Sequence[Any]]
"""Name of an entry to what it holds of each of the N images."""


def evaluate_captioning(model: Any, text: PreparedCaptions, config: CaptioningRun, out: Path) -> dict[str, float]:
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all images of all test splits) into ``out`` and ``attention.npz``, which has some
    images of every split, evenly spread over it. Of the k-th: ``id_<k>``; ``image_<k>`` (height, width, 3);
    ``references_<k>`` (R,); ``words_<k>`` (T,), of the generated caption, with the end symbol even if it did not come
    to it; if the model has them ``weights_<k>`` (T, L) and ``gates_<k>`` (T,); if they are known ``boxes_<k>`` (O, 4)
    in pixels, ``names_<k>`` (O,) and ``correct_<k>``, 1 if the caption is entirely true; and ``rows``, ``columns``.

    Args:
        model: returns a :class:`shared.tasks.captioning.protocol.Captioned`, and ``start(features)`` begins a search.
        text: the prepared task.
        config: the variant's settings.
        out: folder of the seed.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: what the metrics need is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    splits: dict[str, list[Example]] = {}
    shown: list[dict[str, Any]] = []
    with CaptionScorer(config.evaluation.metrics, tokenisation=config.evaluation.tokenisation) as scorer:
        for name in config.corpus.test:
            described = _Described.of(model, text, name, config.evaluation)
            splits[name] = _examples(model, described, scorer, config.evaluation.batch)
            shown += _shown(model, text.tokenizer, described, splits[name], config.evaluation.heatmaps)
    if shown:
        arrays = {f"{name}_{k}": array for k, image in enumerate(shown) for name, array in image.items()}
        np.savez_compressed(out / "attention.npz", rows=text.grid.rows, columns=text.grid.columns, **arrays)
    write_examples(out, [example for examples in splits.values() for example in examples])
    return judged(splits)


@dataclass(frozen=True)
class _Described:
    """A test split, and the captions that a model gives its images."""

    name: str
    images: CaptionedImages
    references: list[list[str]]
    names: Names | None  # None where they are not known
    given: CaptionedSplit  # with the references
    hypotheses: list[str]
    own: CaptionedSplit  # with the hypotheses, one for each image, in place of the references

    @classmethod
    def of(cls, model: Any, text: PreparedCaptions, name: str, config: CaptioningEvaluation) -> _Described:
        given, images, references = text.split(name), text.images(name), text.references(name)
        symbols = search(model, given, config)
        names = _names(images, len(references)) if isinstance(images, SceneSplit) else None
        links = _links(symbols, text.tokenizer, names)
        captions = RaggedArray.pack([[*line, EOS] for line in symbols])
        own = replace(given, captions=captions, image=np.arange(len(captions)), links=links)
        return cls(name, images, references, names, given, text.tokenizer.decode(symbols), own)


def search(model: Any, split: CaptionedSplit, config: CaptioningEvaluation) -> list[list[int]]:
    """The best caption of every image, as symbols without the end symbol."""
    found: list[list[int]] = []
    images = np.arange(len(split.features))
    for indices in np.split(images, images[config.batch :: config.batch]):
        features = split.image_features(indices).to(_device(model))
        none = torch.zeros(len(indices), dtype=torch.long, device=features.device)
        constraints = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=none, maximum=none + config.longest)
        with torch.no_grad():
            state = model.start(features)
        best = beam_search(model, state, constraints, beam=config.beam, normalisation=config.normalisation)
        found += best.best()
    return found


def _names(scenes: SceneSplit, count: int) -> Names:
    """Possible names of the objects of the first ``count`` scenes; for objects not seen in training, the kind only."""
    pictures = scenes.artwork.pictures
    things = ([pictures[placed.code] for placed in scene.objects] for scene in scenes.scenes[:count])
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


def _examples(model: Any, described: _Described, scorer: CaptionScorer, size: int) -> list[Example]:
    """The record of every image."""
    columns = _of_captions(described, scorer) | _of_reading(model, described, size)
    return [
        {"id": f"{described.name}-{i}", "split": described.name} | {name: column[i] for name, column in columns.items()}
        for i in range(len(described.references))
    ]


def _of_captions(described: _Described, scorer: CaptionScorer) -> Columns:
    """The generated captions and their scores."""
    hypotheses, references = described.hypotheses, described.references
    columns: Columns = {
        "hypothesis": hypotheses,
        "references": references,
        "exact": [int(one in given) for one, given in zip(hypotheses, references, strict=True)],
        "caption": scorer.statistics(hypotheses, references),
    }
    if described.names is not None:
        boxes = described.images.boxes[: len(references)]
        columns["truth"] = list(map(scene_truth, hypotheses, described.names, boxes))
    return columns


def _of_reading(model: Any, described: _Described, size: int) -> Columns:
    """Likelihoods of the references, and the attention and gates of the model at their words."""
    given, count = described.given, len(described.references)
    reading, images = _Reading.of(model, given, size), _images(given)
    columns: Columns = {
        "nll": np.bincount(images, reading.nats, count).tolist(),
        "tokens": np.bincount(images, minlength=count).tolist(),
    }
    if len(given.boxes):
        objects = columns["objects"] = [len(boxes) for boxes in described.images.boxes[:count]]
        if reading.weights is not None:
            own = _Reading.of(model, described.own, size)
            assert own.weights is not None, "a model that attends does so at every caption"
            columns["regions"] = _regions(given, reading.weights, objects)
            columns["generated_regions"] = _regions(described.own, own.weights, objects)
        if reading.gates is not None:
            columns["gate"] = _gates(given, reading.gates, count)
    return columns


@dataclass(frozen=True)
class _Reading:
    """Predictions by teacher forcing for the S symbols of a split's captions, in their order."""

    nats: Floats  # (S,) -log p
    gates: Floats | None  # (S,); None if the model has none
    weights: Weights | None  # (W, L) at the symbols that name an object; None if it does not attend

    @classmethod
    @torch.no_grad()
    def of(cls, model: Any, split: CaptionedSplit, size: int) -> _Reading:
        order, nats, gates, weights = [], [], [], []
        for indices in epoch_batches(split.lengths, pool=10**6, seed=0, epoch=0, sentences=size):
            batch = split.batch(indices).to(_device(model))
            answer, mask = model(batch.features, batch.captions), batch.mask
            places = split.captions.offsets[indices][:, None] + np.arange(mask.size(1))
            order.append(places[mask.cpu().numpy()])
            nats.append(answer.nats[mask].double().cpu().numpy())
            if answer.gates is not None:
                gates.append(answer.gates[mask].double().cpu().numpy())
            if answer.attention is not None:
                rows = answer.attention[mask].float().cpu().numpy()
                weights.append(rows[split.links[order[-1]] >= 0])
        symbols = np.concatenate(order)
        back, naming = np.argsort(symbols), np.argsort(symbols[split.links[symbols] >= 0])
        return cls(
            nats=np.concatenate(nats)[back],
            gates=np.concatenate(gates)[back] if gates else None,
            weights=np.concatenate(weights)[naming] if weights else None,
        )


def _images(split: CaptionedSplit) -> NDArray[np.int64]:
    """(S,) the image that each symbol is of."""
    return np.repeat(split.image, split.captions.lengths)


def _regions(split: CaptionedSplit, weights: Weights, objects: Sequence[int]) -> list[dict[str, float]]:
    """Statistics per image of the attention at words that name an object; ``objects`` has the number per image."""
    grid, naming = (split.grid.rows, split.grid.columns), split.links >= 0
    links, ends = split.links[naming], np.searchsorted(_images(split)[naming], range(len(objects) + 1))
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
        kind: np.stack([np.bincount(_images(split)[where], of, count) for of in (gates[where], None)], axis=1)
        for kind, where in (("content", content), ("function", ~(content | end)), ("end", end))
    }
    return [{kind: column[i].tolist() for kind, column in columns.items()} for i in range(count)]


def _shown(
    model: Any, tokenizer: Tokenizer, described: _Described, examples: Sequence[Example], count: int
) -> list[dict[str, Any]]:
    """The arrays of some images, as :func:`evaluate_captioning` names them but for their number."""
    chosen = np.linspace(0, len(examples) - 1, min(count, len(examples))).round().astype(int)
    shown = []
    for i in chosen.tolist():
        batch = described.own.batch(np.array([i])).to(_device(model))
        with torch.no_grad():
            answer = model(batch.features, batch.captions)
        arrays = {
            "id": examples[i]["id"],
            "image": described.images.images([i])[0],
            "references": described.references[i],
            "words": [*tokenizer.pieces(described.own.captions[i][:-1].tolist()), SPECIAL[EOS]],
        }
        for name, found in (("weights", answer.attention), ("gates", answer.gates)):
            if found is not None:
                arrays[name] = found[0].float().cpu().numpy()
        if described.names is not None:
            arrays["names"] = [own[0] for own in described.names[i]]
            arrays["boxes"] = described.images.boxes[i]
            arrays["correct"] = examples[i]["truth"]["all_true"]
        shown.append(arrays)
    return shown


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
