"""Sizes of the vocabulary and of the longest sequence of a corpus, as far as its settings and its card tell them."""

from __future__ import annotations

from shared.data.cards import load_card
from shared.errors import ReplicationError
from shared.tasks.sequences.alphabet import VOCABULARY
from shared.tasks.sequences.settings import CopyCorpusConfig, PixelCorpusConfig, SequenceCorpusConfig

COPIED = 11
"""Symbols of the copy task of Katharopoulos et al. (2020, section 4.1), including the separator."""


def sizes_of(corpus: SequenceCorpusConfig) -> tuple[int, int]:
    """Symbols of the vocabulary and of the longest sequence, as far as they can be known without the data.

    Raises:
        ReplicationError: the card of the data set is missing, or does not say how large its pictures are.
    """
    match corpus:
        case CopyCorpusConfig():
            return COPIED, 2 * corpus.longest + 1
        case PixelCorpusConfig():
            example = load_card(corpus.dataset).example
            if example is None:
                raise ReplicationError(
                    f"data/{corpus.dataset}.yaml does not say how large a picture is; add 'example: {{shape: [height, "
                    "width, channels]}' to it."
                )
            return corpus.levels + 1, example.values // corpus.pool**2
        case _:
            return VOCABULARY, corpus.length
