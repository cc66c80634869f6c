"""The corpora that are separate sequences of symbols: which there are, how they are prepared and opened."""

from __future__ import annotations

from pathlib import Path

from shared.tasks.sequences.batches import PreparedSequences
from shared.tasks.sequences.copying import PreparedCopies, prepare_copies
from shared.tasks.sequences.pixels import PreparedPixels, prepare_pixels
from shared.tasks.sequences.proteins import PreparedProteins, prepare_proteins
from shared.tasks.sequences.settings import CopyCorpusConfig, PixelCorpusConfig, SequenceCorpusConfig


def prepare_sequences(corpus: SequenceCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write what training and evaluation read, from the fetched folder ``dataset`` into ``out``; returns a summary.

    Raises:
        ReplicationError: the fetched data are incomplete or do not fit the settings.
    """
    if isinstance(corpus, CopyCorpusConfig):
        return prepare_copies(corpus, dataset, out)
    if isinstance(corpus, PixelCorpusConfig):
        return prepare_pixels(corpus, dataset, out)
    return prepare_proteins(corpus, dataset, out)


def load_prepared(corpus: SequenceCorpusConfig, folder: Path) -> PreparedSequences:
    """Open what :func:`prepare_sequences` wrote with the same settings.

    Raises:
        ReplicationError: it is not there.
    """
    if isinstance(corpus, CopyCorpusConfig):
        return PreparedCopies.load(folder, corpus)
    if isinstance(corpus, PixelCorpusConfig):
        return PreparedPixels.load(folder)
    return PreparedProteins.load(folder, masked=corpus.masked)
