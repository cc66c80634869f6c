"""Fetched data, and what is said where its raw files are not what their reader expects."""

from __future__ import annotations

import traceback
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from shared.data.cards import load_card
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.data.fetch import Manifest

STUMBLES = (ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError)
"""What readers raise where a value is not of the form that they expect."""


def obtain(dataset: str) -> Manifest:
    """Fetch a data set, at once if it was fetched before.

    Raises:
        ReplicationError: it cannot be fetched, its card leads elsewhere, or a raw file is not what its reader expects.
    """
    from shared.data.fetch import fetch

    refuse_paths_outside(dataset)
    with refusing_other_forms(dataset):
        manifest = fetch(dataset)
    refuse_byte_order_marks(dataset, Path("data") / dataset)
    return manifest


def fetched(dataset: str) -> Path:
    """The folder of a data set; a queued experiment's copy of the project has no data yet, and fetches it.

    Raises:
        ReplicationError: it cannot be fetched, or a file has changed since, which DVC does not watch.
    """
    from shared.data.fetch import verify

    obtain(dataset)
    verify(dataset)
    return Path("data") / dataset


def refuse_paths_outside(dataset: str) -> None:
    """Refuse a card whose reader is to read a file that is not one of the raw files.

    Raises:
        ReplicationError: the card is wrong, or an option of its reader is the path of a file elsewhere.
    """
    card = load_card(dataset)
    for keys, text in _texts(card.reader.options if card.reader else {}, "reader.options"):
        parts = PurePosixPath(text).parts
        if ".." in parts or parts[:1] == ("/",) or text.startswith("..\\"):
            raise ReplicationError(
                f"data/{dataset}.yaml: '{keys}': '{text}' leads out of the folder of the raw files; give the name of "
                "one of them."
            )


def refuse_byte_order_marks(dataset: str, folder: Path) -> None:
    """Refuse columns of text that begin with a byte order mark, which would become a part of their first word.

    Args:
        dataset: what the card describes.
        folder: of the columns, ``<split>.<language>``.

    Raises:
        ReplicationError: one does.
    """
    card = load_card(dataset)
    for path in (folder / f"{split}.{language}" for split in card.splits for language in card.languages):
        if path.is_file():
            with path.open("rb") as column:
                marked = column.read(len(BOM_UTF8)) == BOM_UTF8
            if marked:
                raise ReplicationError(
                    f"data/{dataset}.yaml: {path.name} begins with a byte order mark, which its raw file has; save the "
                    "raw file as UTF-8 without it in the mirror folder and put its sha256 into the card."
                )


def _texts(value: Any, keys: str) -> Iterator[tuple[str, str]]:
    """All texts at any depth, with the keys that lead to them."""
    if isinstance(value, str):
        yield keys, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _texts(part, f"{keys}.{key}")


@contextmanager
def refusing_other_forms(dataset: str) -> Iterator[None]:
    """Say in one sentence that a reader stumbled over a raw file, and where in the reader."""
    try:
        yield
    except STUMBLES as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error}; line {place.lineno} of {Path(place.filename).name}"
        raise ReplicationError(
            f"data/{dataset}.yaml: a raw file is not what the reader expects ({reason}); fetch it anew, or correct the "
            "card."
        ) from error
