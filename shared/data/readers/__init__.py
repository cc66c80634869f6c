"""Readers: from the raw files of a data set to its splits. A new format needs one function and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.config import Strict, build, check_name
from shared.data import photos
from shared.data.cards import Card
from shared.data.generated.scenes import LANGUAGES as SCENE_LANGUAGES
from shared.data.opening import listed
from shared.data.readers import bible, pictures, proteins, scenes, texts, treebank
from shared.data.splits import Accompanied, Corpus, Segment
from shared.errors import ReplicationError


def read_files(raw: Path, languages: Sequence[str], options: Strict) -> Accompanied:
    """Every raw file under its name, for data without texts, such as the weights of a network."""
    return Accompanied({}, {path.name: path for path in listed(raw)})


class Reader(NamedTuple):
    """How a kind of raw data is read.

    Attributes:
        read: from the raw folder, the languages of the card in order and the options to the splits. They may be read
            while they are written.
        options: the class of the options.
        languages: those that the card must have; None: it depends on the options.
    """

    read: Callable[[Path, Sequence[str], Any], Corpus]
    options: type[Strict]
    languages: tuple[str, ...] | None = None


READERS: dict[str, Reader] = {
    "bible": Reader(bible.read_bible, bible.BibleOptions),
    "bible_alignments": Reader(bible.read_alignments, bible.AlignmentOptions, ("grc", "en")),
    "fasta": Reader(proteins.read_fasta, proteins.FastaOptions),
    "files": Reader(read_files, Strict, ()),
    "labelled": Reader(texts.read_labelled, texts.LabelledOptions),
    "parallel": Reader(texts.read_parallel, texts.ParallelOptions),
    "photos": Reader(pictures.read_photos, pictures.PhotosOptions, photos.LANGUAGES),
    "pixel_texts": Reader(pictures.read_pixel_texts, pictures.PixelTextsOptions, ("text", "label")),
    "pixels": Reader(pictures.read_pixels, pictures.PixelsOptions, ()),
    "running_text": Reader(texts.read_running_text, texts.RunningTextOptions, ()),
    "scenes": Reader(scenes.read_scenes, scenes.ScenesOptions, SCENE_LANGUAGES),
    "treebank": Reader(treebank.read_treebank, treebank.TreebankOptions, ("words", "tree")),
}
"""Readers by the name that cards have."""


def read_card(card: Card, raw: Path) -> Corpus:
    """Read raw files as a card says, and draw its splits if it asks for that.

    Raises:
        ReplicationError: as :func:`read`; or the reader finds no texts to draw from.
    """
    assert card.reader is not None, "the card's validator sees to it"
    name, options, languages = card.reader.name, card.reader.options, list(card.languages)
    corpus, draw = read(name, raw, languages, options), card.draw
    if draw is None:
        return corpus
    if "train" not in corpus:
        raise ReplicationError(f"the reader '{name}' has no texts to draw splits from; leave out 'draw' of the card.")
    by = languages.index(card.distinct[0])

    def drawn(split: str) -> Iterator[Segment | str]:
        whole = corpus["train"]  # is read once for each split, unless it is in the memory
        for segment in whole if isinstance(whole, list) else read(name, raw, languages, options)["train"]:
            if isinstance(segment, str):
                own = "train"
            else:
                own = draw.split(segment.key.partition(":")[0] if segment.key else segment.texts[by])
            if own == split:
                yield segment

    files = corpus.files if isinstance(corpus, Accompanied) else {}
    return Accompanied({split: drawn(split) for split in ("train", "valid", "test")}, files)


def read(name: str, raw: Path, languages: Sequence[str], options: Any) -> Corpus:
    """Read raw files with the reader of the given name.

    Raises:
        ReplicationError: there is no such reader, the languages or options are wrong, or a file is not as it expects.
    """
    check_name(name, READERS, "there is no reader")
    reader = READERS[name]
    if reader.languages is not None and tuple(languages) != reader.languages:
        wanted = f"the languages {', '.join(reader.languages)}, in this order" if reader.languages else "no languages"
        raise ReplicationError(f"the reader '{name}' has {wanted}; correct 'languages' and 'splits' of the card.")
    return reader.read(raw, languages, build(reader.options, options, where=f"options of the reader '{name}'"))
