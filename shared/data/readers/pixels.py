"""Pictures as pixels: idx files, as of MNIST, and the binary files of CIFAR-10."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shared.config import Strict, build
from shared.data.cards import SafePath
from shared.data.splits import Accompanied
from shared.errors import ReplicationError

Images = NDArray[np.uint8]
"""(N, height, width, channels)."""

_IDX_BYTES_OF_THREE_AXES = b"\0\0\x08\x03"
_CIFAR_PLANES = (3, 32, 32)


class PixelsOptions(Strict):
    """Options of the reader ``pixels``.

    Attributes:
        format: format of the files.
        train: files with the training pictures, in this order.
        test: files with the test pictures.
        valid: number of training pictures, from the end, that become the validation split.
    """

    format: Literal["idx", "cifar"]
    train: tuple[SafePath, ...] = Field(min_length=1)
    test: tuple[SafePath, ...] = Field(min_length=1)
    valid: int = Field(gt=0)


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Accompanied:
    """Write ``<split>.images.npy`` for every split: (N, height, width, channels) uint8, without classes.

    The corpus has no splits of text lines, only these files. No picture is in two splits: a picture of train is left
    out if valid or test has an equal one, and a picture of valid if test has one.

    Raises:
        ReplicationError: the card has languages or wrong options, or a file has another format.
    """
    if languages:
        raise ReplicationError("the reader 'pixels' has no languages; leave languages and splits empty.")
    chosen = build(PixelsOptions, options, where="options of the reader 'pixels'")
    train, test = (_joined(raw, names, _FORMATS[chosen.format]) for names in (chosen.train, chosen.test))
    if chosen.valid >= len(train):
        raise ReplicationError(
            f"there are {len(train)} training pictures, of which {chosen.valid} cannot be taken for validation; "
            "correct the card."
        )
    splits = {"test": test, "valid": train[-chosen.valid :], "train": train[: -chosen.valid]}
    folder = raw / "splits"
    folder.mkdir()
    seen: set[bytes] = set()
    for split, images in splits.items():
        hashes = [hashlib.sha256(image).digest() for image in images]
        fresh = images[[own not in seen for own in hashes]]
        np.save(folder / f"{split}.images.npy", fresh, allow_pickle=False)
        seen.update(hashes)
    return Accompanied({}, {path.name: path for path in sorted(folder.iterdir())})


def _joined(raw: Path, names: Sequence[str], read_file: Callable[[bytes], Images]) -> Images:
    parts = []
    for name in names:
        try:
            parts.append(read_file((raw / name).read_bytes()))
        except FileNotFoundError:
            raise ReplicationError(f"the raw file {name} is not there; correct the card.") from None
        except ValueError as error:
            raise ReplicationError(
                f"{name} is not what the card says ({error}); fetch it anew, or correct the card's 'format'."
            ) from None
    if len({part.shape[1:] for part in parts}) > 1:
        raise ReplicationError(f"the pictures of {' and '.join(names)} differ in size; correct the card.")
    return np.ascontiguousarray(np.concatenate(parts))


def _idx(content: bytes) -> Images:
    """Read idx: a magic number of four bytes, three big-endian sizes, and the grey values of all pictures by rows."""
    if content[:4] != _IDX_BYTES_OF_THREE_AXES:
        raise ValueError("it does not begin as an idx file of bytes with three axes")
    sizes = [int.from_bytes(content[start : start + 4], "big") for start in (4, 8, 12)]
    values = np.frombuffer(content, np.uint8)[16:]
    if not len(values) or len(values) != math.prod(sizes):
        raise ValueError("it is longer or shorter than it says itself")
    return values.reshape(*sizes, 1)


def _cifar(content: bytes) -> Images:
    """Read CIFAR-10: for each picture one byte with its class, then one plane per colour, row by row."""
    values = np.frombuffer(content, np.uint8)
    size = 1 + math.prod(_CIFAR_PLANES)
    if not len(values) or len(values) % size:
        raise ValueError(f"it does not consist of pictures of {size:,} bytes")
    return values.reshape(-1, size)[:, 1:].reshape(-1, *_CIFAR_PLANES).transpose(0, 2, 3, 1)


_FORMATS: dict[str, Callable[[bytes], Images]] = {"idx": _idx, "cifar": _cifar}
