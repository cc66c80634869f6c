"""Classifies one text with a trained model, and shows which words its embedding attends to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from shared.claims.words import number_of
from shared.data.ragged import RaggedArray
from shared.data.splits import tidy
from shared.data.storage import read_lines, write_lines
from shared.errors import ReplicationError
from shared.metrics.alignment import merge_pieces
from shared.metrics.attention_rows import importance
from shared.tasks import tried
from shared.tasks.classification.corpus import ClassifiedText, PreparedClassification
from shared.tasks.classification.evaluation import answers
from shared.tasks.classification.settings import ClassificationRun

BETWEEN, KEPT = "|||", 200
"""What stands between the two texts of a pair; the test texts that come with the project beside a published model."""


def try_input(
    model: Any, text: PreparedClassification, config: ClassificationRun, asked: str, seed: int
) -> tried.Tried:
    """Classify ``asked``.

    Args:
        model: in evaluation mode.
        text: the prepared task.
        config: the variant's settings.
        asked: a text, or the two of a pair with :data:`BETWEEN` between them, or ``test:<number>``.
        seed: of the run; nothing is drawn.

    Raises:
        ReplicationError: a text is empty, too long or without a known word, or the number of texts is wrong.
    """
    corpus = config.corpus
    texts = [f" {BETWEEN} ".join(sides) for sides in zip(*text.lines(corpus.test[0]), strict=True)]
    like, kind = texts[0], "a text" if len(corpus.texts) == 1 else "two texts"
    expected = f"{tried.TEST}0 to {tried.TEST}{len(texts) - 1} for a test text, or {kind} such as '{like}'"
    if (number := tried.numbered(asked, len(texts))) is not None:
        asked = texts[number]
    lines = [tried.not_empty(tidy(part), expected) for part in asked.split(BETWEEN)]
    if len(lines) != len(corpus.texts):
        raise ReplicationError(f"the input has {number_of(len(lines), 'text')}, but the model reads {expected}.")
    read = [line.lower() if corpus.lower else line for line in lines]
    notes: list[str] = []
    sides = [_symbols(text, config, line, like, notes) for line in read]
    one = ClassifiedText(tuple(RaggedArray.pack([side]) for side in sides), np.zeros(1, dtype=np.int64))
    ((_, _, answer),) = answers(model, one, 1)
    probabilities = answer.logits[0].double().softmax(-1).tolist()
    shares = tried.ranked(dict(zip(text.classes, probabilities, strict=True)))
    pairs = zip(read, sides, answer.attention, strict=bool(answer.attention))
    weights = [_weights(text, line, side, attention.cpu()) for line, side, attention in pairs]
    if len(weights) > 1:
        weights = [replace(each, choices={"Text": str(number)}) for number, each in enumerate(weights, 1)]
    if not weights:
        notes.append(tried.NO_ATTENTION)
    return tried.Tried(f" {BETWEEN} ".join(lines), shares[0][0], weights, shares, lines=notes)


def publish(text: PreparedClassification, config: ClassificationRun, out: Path) -> None:
    """Leave the first :data:`KEPT` texts of each test split in ``out``: all ten thousand digits take 8.6 MB."""
    for name in config.corpus.test:
        split = text.split(name)
        keep = np.arange(len(split)) < KEPT
        ClassifiedText(tuple(side.select(keep) for side in split.texts), split.labels[keep]).save(out / name)
        for file in (out / name).glob("*.txt"):
            write_lines(file, read_lines(file)[:KEPT])


def _symbols(
    text: PreparedClassification, config: ClassificationRun, line: str, like: str, notes: list[str]
) -> list[int]:
    """What is read of a line; adds what was left out or unknown to the notes."""
    (symbols,) = text.tokenizer.encode([line])
    limit = config.corpus.max_tokens
    if limit is None:
        longest = max(int(side.lengths.max()) for split in config.corpus.test for side in text.split(split).texts)
        tried.not_longer(len(symbols), longest, "the longest test text")
    elif len(symbols) > limit:
        notes.append(f"Only the first {limit} of {len(symbols)} symbols are read, as in training.")
        symbols = symbols[:limit]
    words, numbers = tried.whole_words(text.tokenizer, symbols, line)
    notes += tried.unknown_words(symbols, [words[number] for number in numbers], like)
    return symbols


def _weights(text: PreparedClassification, line: str, symbols: Sequence[int], attention: Tensor) -> tried.Weights:
    """Attention (1, r, n) between symbols as weights of whole words: first the mean of the rows, then each row."""
    words, numbers = tried.whole_words(text.tokenizer, symbols, line)
    rows = attention[0].double().numpy()
    names = [f"row {number}" for number in range(1, len(rows) + 1)]
    if len(rows) > 1:
        rows = np.concatenate((importance(attention).numpy(), rows))
        names = ["all rows", *names]
    caption = f"The words that the embedding of the text attends to, {names[0]} first."
    return tried.Weights(caption, names, words, merge_pieces(rows, numbers, range(len(rows))), "text")
