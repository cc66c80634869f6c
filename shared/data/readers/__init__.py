"""Readers: from the raw files of a data set to its splits. A new format needs one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.data.readers import (
    bible,
    bible_alignments,
    fasta,
    files,
    html_help,
    labelled,
    parallel,
    photos,
    pixels,
    rated,
    running_text,
    scenes,
    treebank,
)
from shared.data.splits import Corpus
from shared.errors import ReplicationError

READERS: dict[str, Callable[[Path, Sequence[str], Mapping[str, Any]], Corpus]] = {
    "bible": bible.read,
    "bible_alignments": bible_alignments.read,
    "fasta": fasta.read,
    "files": files.read,
    "html_help": html_help.read,
    "labelled": labelled.read,
    "parallel": parallel.read,
    "photos": photos.read,
    "pixels": pixels.read,
    "rated": rated.read,
    "running_text": running_text.read,
    "scenes": scenes.read,
    "treebank": treebank.read,
}
"""Reader name to a function of the raw folder, the languages in order, and the options of the card."""


def read(name: str, raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read raw files with the reader of the given name.

    Raises:
        ReplicationError: the reader does not exist, the options are wrong, or a file is not as the reader expects.
    """
    if name not in READERS:
        raise ReplicationError(f"there is no reader '{name}'; known readers: {', '.join(sorted(READERS))}.")
    return READERS[name](raw, languages, options)


@contextmanager
def naming_missing_files(raw: Path, where: str) -> Iterator[None]:
    """Say in one sentence that a reader looks for a file that is not there; splits are read when they are written.

    Args:
        raw: the raw folder.
        where: the card's file.
    """
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        missing = Path(str(error.filename))
        if not missing.is_relative_to(raw):
            raise
        known = ", ".join(sorted(path.name for path in raw.iterdir()))
        raise ReplicationError(
            f"{where}: the reader looks for '{missing.relative_to(raw)}', which is not a file of the raw data "
            f"({known}); correct 'reader.options'."
        ) from None
