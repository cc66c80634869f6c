"""Prepares images with captions: features of an encoder, a vocabulary, captions as symbols.

The features have a stage of their own, since they take long and no change of the captions' symbols touches them.

Shape letters: N images of a split, L places of the features' grid, D annotation width.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared.data.fetch import fetch
from shared.data.generated.scene_captions import Box, Caption
from shared.data.generated.scenes import SIDE
from shared.data.ragged import RaggedArray
from shared.data.storage import write_lines, write_summary
from shared.data.tokenizers import EOS, UNK, Tokenizer
from shared.errors import ReplicationError
from shared.tasks.captioning.corpus import CaptionedSplit, features_folder, grid_of, open_images, read_record
from shared.tasks.captioning.settings import CaptionCorpusConfig
from shared.vision.encoders import ImageEncoder, build_encoder
from shared.vision.features import Grid, compute_features, load_features

Captions = Sequence[Sequence[Caption]]
"""Of each image."""
Boxes = Sequence[Sequence[Box]]
"""Of the objects of each image."""
_SAMPLE = 500  # training images that features are standardised by
_TIMINGS = ("seconds", "images_per_second")  # of the features' record: they differ between machines


def features(config: CaptionCorpusConfig, dataset: Path, out: Path) -> dict[str, Any]:
    """Compute the features of every image of every split: ``out/<split>.npy``, (N, L, D) float16.

    Args:
        config: the task's corpus.
        dataset: the fetched folder; weights that are a data set of their own are fetched into one beside it.
        out: the folder to write, which is made if need be.

    Returns:
        The record that the features stage keeps: data set, encoder and grid; of each split the number of images and
        the features' sha256; how long it took.

    Raises:
        ReplicationError: a file is missing, or the encoder cannot be had.
    """
    torch.set_num_threads(1)
    begin, encoder = time.perf_counter(), trained_encoder(config, dataset)
    splits: dict[str, Any] = {}
    for split in config.splits:
        images, path = open_images(dataset, split), out / f"{split}.npy"
        count = min(len(images), config.images.get(split, len(images)))
        compute_features(encoder, images.images, count, path, label=f"{config.dataset} {split}")
        with path.open("rb") as file:
            splits[split] = {"images": count, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    seconds, total = time.perf_counter() - begin, sum(found["images"] for found in splits.values())
    return {
        **_asked(config), "rows": encoder.rows, "columns": encoder.columns, "size": encoder.size, "splits": splits,
        "seconds": round(seconds, 1), "images_per_second": round(total / seconds, 1),
    }  # fmt: skip


def trained_encoder(config: CaptionCorpusConfig, dataset: Path) -> ImageEncoder:
    """The encoder of a task whose images are in the folder ``dataset``, standardised by some of them if asked for."""
    if config.encoder.dataset:
        fetch(config.encoder.dataset, root=dataset.parent)
    encoder = build_encoder(config.encoder, data=dataset.parent)
    if config.encoder.standardise:
        images = open_images(dataset, "train")
        count = min(len(images), config.images.get("train", len(images)))
        chosen = np.linspace(0, count - 1, min(_SAMPLE, count)).round().astype(int)
        few = np.array_split(chosen, -(-len(chosen) // 8))
        encoder.standardise(torch.from_numpy(images.images(batch.tolist())) for batch in few)
    return encoder


def prepare(config: CaptionCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Train the tokeniser on the training captions and encode every split of ``dataset`` into ``out``.

    The features must lie in the `features_folder` of ``out``.

    Returns:
        A summary: size of the vocabulary; of each split the number of images, captions, symbols and symbols that name
        an object with a box, and the share of unknown symbols.

    Raises:
        ReplicationError: a file is missing or does not fit the others, the features are missing or not what the
            corpus asks for, no training caption is left, or words that name objects are not symbols.
    """
    splits = {split: _read(config, dataset, split) for split in config.splits}
    record = _checked_record(config, out, {split: len(captions) for split, (captions, _) in splits.items()})
    words = config.tokenizer.kind == "words" and config.tokenizer.split == "space"
    if not words and any(any(boxes) for _, boxes in splits.values()):
        raise ReplicationError(
            f"the objects of {config.dataset} are named by the words between spaces; "
            "use a tokenizer of kind words with split: space."
        )
    lines = [caption.text for own in splits["train"][0] for caption in own]
    if not lines:
        raise ReplicationError(f"no training caption of {config.dataset} is left; raise max_words.")
    tokenizer = config.tokenizer.train(lines)
    tokenizer.save(out / "text.tokenizer")
    (out / "features.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    summary: dict[str, object] = {"dataset": config.dataset, "unit": tokenizer.unit, "vocabulary": len(tokenizer)}
    for split, (captions, boxes) in splits.items():
        features = load_features(features_folder(out) / f"{split}.npy")
        encoded = _encode(captions, boxes, tokenizer, features, grid_of(record))
        encoded.save(out / split)
        if split != "train":
            write_lines(out / split / "captions.jsonl", map(json.dumps, captions))
        summary[split] = {
            "images": len(captions), "captions": len(encoded), "symbols": len(encoded.links),
            "naming": int((encoded.links >= 0).sum()), "unknown_share": float(np.mean(encoded.captions.flat == UNK)),
        }  # fmt: skip
    return write_summary(out, config, summary)


def _read(config: CaptionCorpusConfig, dataset: Path, split: str) -> tuple[Captions, Boxes]:
    images = open_images(dataset, split)
    used = slice(config.images.get(split))
    limit = config.max_words if split == "train" and config.max_words else float("inf")
    captions = [[caption for caption in own if len(caption.text.split()) <= limit] for own in images.captions[used]]
    return captions, images.boxes[used]


def _encode(
    captions: Captions, boxes: Boxes, tokenizer: Tokenizer, features: NDArray[np.float16], grid: Grid
) -> CaptionedSplit:
    flat = [caption for own in captions for caption in own]
    encoded = tokenizer.encode([caption.text for caption in flat])
    packed = RaggedArray.pack([[*symbols, EOS] for symbols in encoded])
    image = np.repeat(np.arange(len(captions)), [len(own) for own in captions])
    first = np.cumsum([0, *map(len, boxes)])  # row of each image's first box
    links = np.full(len(packed.flat), -1, dtype=np.int32)
    for caption, begin, symbols, own in zip(flat, packed.offsets[:-1].tolist(), encoded, image.tolist(), strict=True):
        for start, end, thing in caption.mentions:
            if not (0 <= start < end <= len(symbols) and 0 <= thing < len(boxes[own])):
                raise ReplicationError(
                    f"'{caption.text}' does not name what it is said to name; fetch the data set anew."
                )
            links[begin + start : begin + end] = first[own] + thing
    table = np.array([box for own in boxes for box in own], dtype=np.float64).reshape(-1, 4) / SIDE
    return CaptionedSplit(features, packed, image, links, table, grid)


def _asked(config: CaptionCorpusConfig) -> dict[str, Any]:
    """The part of the features' record that the corpus decides."""
    return {"dataset": config.dataset, "encoder": config.encoder.model_dump(mode="json")}


def _checked_record(config: CaptionCorpusConfig, out: Path, images: Mapping[str, int]) -> dict[str, Any]:
    """The record of the task's features, without timings, if they are of this corpus."""
    path = features_folder(out).with_name(f"{features_folder(out).name}.json")
    record = read_record(path)
    counts = {split: found["images"] for split, found in record.get("splits", {}).items()}
    if any(record.get(key) != value for key, value in _asked(config).items()) or counts != images:
        raise ReplicationError(f"{path} is of other images or another encoder; run the features stage again.")
    return {key: value for key, value in record.items() if key not in _TIMINGS}
