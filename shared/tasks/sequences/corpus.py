"""The corpora that are separate sequences of symbols: which there are, how they are prepared and opened."""

from __future__ import annotations

from pathlib import Path

from shared.tasks.sequences.batches import PreparedSequences
from shared.tasks.sequences.copying import PreparedCopies, prepare_copies
from shared.tasks.sequences.pixels import PreparedPixels, prepare_pixels
from shared.tasks.sequences.proteins import PreparedProteins, prepare_proteins
from shared.tasks.sequences.settings import (
    CopyCorpusConfig,
    PixelCorpusConfig,
    ProteinCorpusConfig,
    SequenceCorpusConfig,
)


def prepare_sequences(config: SequenceCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write what training and evaluation read, from the fetched folder ``dataset`` into ``out``; returns a summary.

    Raises:
        ReplicationError: the fetched data are incomplete or do not fit the settings.
    """
    match config:
        case CopyCorpusConfig():
            return prepare_copies(config, dataset, out)
        case PixelCorpusConfig():
            return prepare_pixels(config, dataset, out)
        case ProteinCorpusConfig():
            return prepare_proteins(config, dataset, out)


def load_prepared(config: SequenceCorpusConfig, folder: Path) -> PreparedSequences:
    """Open what :func:`prepare_sequences` wrote with the same settings.

    Raises:
        ReplicationError: it is not there.
    """
    match config:
        case CopyCorpusConfig():
            return PreparedCopies.load(folder, config)
        case PixelCorpusConfig():
            return PreparedPixels.load(folder)
        case ProteinCorpusConfig():
            return PreparedProteins.load(folder, masked=config.masked)
