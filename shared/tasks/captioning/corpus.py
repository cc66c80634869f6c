"""Images with captions as arrays: features of an encoder, tokenised captions; their batches, and what models answer.

The features have a stage of their own, since they take long and no change of the captions' symbols touches them.

Shape letters: B batch, L places of the features' grid (row by row), D annotation width, T caption length in symbols,
end symbol included; N images, C captions and O objects with boxes of a split.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared import records
from shared.data.batching import Indices
from shared.data.fetch import fetch
from shared.data.generated.scene_captions import Box, Caption
from shared.data.generated.scenes import PICTURES, SIDE, SceneSplit
from shared.data.photos import PhotoSplit
from shared.data.ragged import RaggedArray
from shared.data.sources import sha256_of
from shared.data.storage import load_arrays, read_lines, save_arrays, write_lines, write_summary
from shared.data.tokenizers import EOS, PAD, UNK, Tokenizer
from shared.errors import ReplicationError
from shared.tasks.batches import VALIDATED, Batch, Prepared, Split, every_batch
from shared.tasks.captioning.settings import CaptionCorpusConfig, CaptioningTraining
from shared.vision.encoders import ImageEncoder, build_encoder
from shared.vision.features import Grid, box_shares, compute_features, load_features

Captions = Sequence[Sequence[Caption]]
"""Of each image."""
Boxes = Sequence[Sequence[Box]]
"""Of the objects of each image."""
ARRAYS = ("symbols", "offsets", "image", "links", "boxes")
_SAMPLE = 500  # training images that features are standardised by
_TIMINGS = ("seconds", "images_per_second")  # of the features' record: they differ between machines
IMAGES_VALIDATED = 100
"""Images captioned together during validation."""


def open_images(dataset: Path, split: str) -> SceneSplit | PhotoSplit:
    """A split of a fetched folder: of composed scenes, or of photos of which it is not known what their words name.

    Raises:
        ReplicationError: a file is missing, or they differ in length.
    """
    return (SceneSplit if (dataset / PICTURES).exists() else PhotoSplit).load(dataset, split)


@dataclass(frozen=True)
class CaptionBatch(Batch):
    """Captions with the features of their images."""

    features: Tensor  # (B, L, D) float32
    captions: Tensor  # (B, T) int64: words, end symbol, padding
    regions: Tensor | None = None
    """(B, T, L) float32: at words that name an object with a box, the share of the box's area that falls on each
    place, which sums to one; zero elsewhere. None where no boxes are known."""

    @property
    def mask(self) -> Tensor:
        """(B, T), false at padding."""
        return self.captions != PAD


class Captioned(NamedTuple):
    """What ``model(features, captions, regions)`` gives of B captions of T symbols and pictures with L places."""

    nats: Tensor
    """(B, T), minus the log-probability of each symbol after those before it; zero at padding."""
    attention: Tensor | None = None
    """(B, T, L), with what weights each symbol was predicted; none if the model does not attend."""
    gates: Tensor | None = None
    """(B, T), the factor β on what is attended to at each symbol; none if the model has no such gate."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the summed nats of each caption: penalties, an estimator's surrogate."""


@dataclass(frozen=True)
class ImageBatch(Batch):
    """Images to be described, with the captions that people gave them."""

    features: Tensor  # (B, L, D) float32
    references: tuple[tuple[str, ...], ...]  # per image its captions as they stand

    @property
    def tokens(self) -> int:
        """Number of images."""
        return len(self.references)


@dataclass(frozen=True)
class CaptionedSplit(Split):
    """One split: features of its images, and all their captions, image after image.

    Attributes:
        features: (N, L, D) float16, mapped into memory.
        captions: C of them, each ending with an end symbol.
        image: (C,) the image of each caption.
        links: one per symbol of ``captions.flat``: the row of ``boxes`` of what it names, or -1.
        boxes: (O, 4) left, top, right and bottom of each object as shares of its image's width and height.
        grid: of the features.
    """

    features: NDArray[np.float16]
    captions: RaggedArray
    image: NDArray[np.int64]
    links: NDArray[np.int32]
    boxes: NDArray[np.float64]
    grid: Grid

    def __post_init__(self) -> None:
        fits = (
            self.features.shape[1:] == (self.grid.rows * self.grid.columns, self.grid.size)
            and len(self.captions) == len(self.image)
            and len(self.captions.flat) == len(self.links)
            and self.image.max(initial=-1) < len(self.features)
            and self.links.max(initial=-1) < len(self.boxes)
        )
        if not fits:
            raise ReplicationError("features and captions do not fit; run the features and prepare stages again.")

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """(C,) symbols of each caption, by which batches are sorted."""
        return (self.captions.lengths,)

    def batch(self, indices: Indices) -> CaptionBatch:
        """The captions with these indices."""
        return CaptionBatch(
            self.image_features(self.image[indices]), self.captions.padded(indices), self._regions(indices)
        )

    def image_features(self, indices: Indices) -> Tensor:
        """(B, L, D) float32 of the images with these indices."""
        return torch.from_numpy(np.asarray(self.features)[indices]).float()

    def save(self, folder: Path) -> None:
        """Write five ``.npy`` arrays into ``folder``: all but the features."""
        arrays = self.captions.flat, self.captions.offsets, self.image, self.links, self.boxes
        save_arrays(folder, dict(zip(ARRAYS, arrays, strict=True)))

    @classmethod
    def load(cls, folder: Path, features: NDArray[np.float16], grid: Grid) -> CaptionedSplit:
        """Map the arrays of :meth:`save` into memory.

        Raises:
            ReplicationError: a file is missing or cut short, or the features are not of these images.
        """
        symbols, offsets, image, links, boxes = load_arrays(folder, ARRAYS)
        return cls(features, RaggedArray(symbols, offsets), image, links, boxes, grid)

    def _regions(self, indices: Indices) -> Tensor | None:
        if not len(self.boxes):
            return None
        rows = RaggedArray(self.links + 1, self.captions.offsets)  # of the table below
        return self._table[rows.padded(indices)]

    @cached_property
    def _table(self) -> Tensor:
        """(O + 1, L) regions, row 0 all zeros for "no object" and padding."""
        shares = box_shares(self.boxes, self.grid.rows, self.grid.columns)
        return torch.from_numpy(np.vstack([np.zeros_like(shares[:1]), shares])).float()


class PreparedCaptions(Prepared):
    """What the prepare stage leaves: tokeniser, encoded splits, captions' text; see also :func:`features_folder`."""

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """Of the features."""
        return read_record(self.folder / "features.json")

    @property
    def grid(self) -> Grid:
        """Of the features."""
        return Grid(rows=self.record["rows"], columns=self.record["columns"], size=self.record["size"])

    @property
    def sizes(self) -> tuple[int, Grid]:
        """Of the vocabulary and of the annotations."""
        return len(self.tokenizer), self.grid

    def split(self, name: str) -> CaptionedSplit:
        """An encoded split: ``train``, ``valid`` or a test split."""
        features = load_features(features_folder(self.folder) / f"{name}.npy")
        return CaptionedSplit.load(self.folder / name, features, self.grid)

    def valid(self, training: CaptioningTraining) -> Iterable[CaptionBatch | ImageBatch]:
        """The validation split in batches of captions, and then in whole images."""
        return _Validation(self.split("valid"), self.references("valid"))

    def references(self, name: str) -> list[list[str]]:
        """Per image of ``valid`` or a test split the texts of its captions as they stand."""
        lines = read_lines(self.folder / name / "captions.jsonl")
        return [[text for text, _ in json.loads(line)] for line in lines]

    def images(self, name: str) -> SceneSplit | PhotoSplit:
        """The split as it was fetched, of which this task's images are all or the first ones; for figures."""
        return open_images(Path("data") / self.record["dataset"], name)


PREPARED = PreparedCaptions


@dataclass(frozen=True)
class _Validation:
    """Batches of captions, each made when it is its turn, as the features of all take gigabytes; then whole images."""

    split: CaptionedSplit
    references: Sequence[Sequence[str]]

    def __iter__(self) -> Iterator[CaptionBatch | ImageBatch]:
        yield from map(self.split.batch, every_batch(self.split, tokens=VALIDATED))
        for first in range(0, len(self.references), IMAGES_VALIDATED):
            references = tuple(map(tuple, self.references[first : first + IMAGES_VALIDATED]))
            yield ImageBatch(self.split.image_features(first + np.arange(len(references))), references)


def features_folder(prepared: Path) -> Path:
    """Where the features lie of a task with this prepared folder, be it complete or still partial."""
    return prepared.parent.parent / "features" / prepared.name.removesuffix(".partial")


def read_record(path: Path) -> dict[str, Any]:
    """What the features stage recorded, or the prepare stage kept of that."""
    return records.read_record(path, "run the features and prepare stages of its task")


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
        splits[split] = {"images": count, "sha256": sha256_of(path)}
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
    grid = PreparedCaptions(out).grid
    summary: dict[str, object] = {"dataset": config.dataset, "unit": tokenizer.unit, "vocabulary": len(tokenizer)}
    for split, (captions, boxes) in splits.items():
        features = load_features(features_folder(out) / f"{split}.npy")
        encoded = _encode(captions, boxes, tokenizer, features, grid)
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
    for caption, begin, own in zip(flat, packed.offsets[:-1].tolist(), image.tolist(), strict=True):
        for start, end, thing in caption.mentions:
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
