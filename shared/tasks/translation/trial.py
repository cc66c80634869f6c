"""Translates one sentence with a trained model, and shows which source words each word was written from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from shared.data.ragged import RaggedArray
from shared.data.splits import tidy
from shared.data.tokenizers import BOS, EOS, PAD
from shared.metrics.alignment import merge_pieces
from shared.tasks import tried
from shared.tasks.translation.corpus import ParallelText, PreparedText
from shared.tasks.translation.evaluation import replace_unknown, search, teacher_forced
from shared.tasks.translation.settings import DecodingConfig, TranslationRun

CAPTION = "From each word that was written (rows) to the words that were read (columns)."


def try_input(model: Any, text: PreparedText, config: TranslationRun, asked: str, seed: int) -> tried.Tried:
    """Translate ``asked`` with the variant's search.

    Args:
        model: in evaluation mode.
        text: the prepared task.
        config: the variant's settings.
        asked: a sentence of the source language.
        seed: of the run; nothing is drawn.

    Raises:
        ReplicationError: the sentence is empty, has no known word, or is longer than every sentence of the task.
    """
    like = text.lines(config.corpus.test[0])[0][0]
    line = tried.not_empty(tidy(asked), f"a sentence such as '{like}'")
    (symbols,) = text.source.encode([line])
    longest = max(int(text.split(split).source.lengths.max()) for split in config.corpus.test)
    tried.not_longer(len(symbols), longest, "the longest test sentence")
    words, source = tried.whole_words(text.source, symbols, line)
    notes = tried.unknown_words(symbols, [words[number] for number in source], like)
    encoded = ParallelText(RaggedArray.pack([symbols]), RaggedArray.pack([[]]), np.array([len(words)]))
    (found,), _ = search(model, encoded, config.decoding)
    (nats,), weights = teacher_forced(model, replace(encoded, target=RaggedArray.pack([found])), 1)
    (output,) = text.target.decode([found])
    if config.decoding.replace_unknown and weights:
        (output,) = replace_unknown(text, [line], [found], weights)
        notes.append("Unknown words of the translation are replaced by the dictionary's, as in judging.")
    notes.append(f"{_searched(config.decoding)} The translation has a log-probability of {-nats:z.2f} nats.")
    if not weights:
        return tried.Tried(line, output, lines=[*notes, tried.NO_ATTENTION])
    columns, source = tried.whole_words(text.source, [*symbols, EOS])
    rows, target = tried.whole_words(text.target, [*found, EOS])
    columns[: len(words)] = words  # unknown words as they stand in the sentence
    mean = tried.Weights(CAPTION, rows, columns, merge_pieces(weights[0], source, target), "matrix")
    heads: list[list[tried.Floats]] = []
    if hasattr(model, "attention_maps"):
        read = torch.tensor([[*symbols, EOS]], device=next(model.parameters()).device)
        with torch.no_grad():
            maps = model.attention_maps(read, read > PAD, read.new_tensor([[BOS, *found]]))["cross"][:, 0].double()
        heads = [[merge_pieces(each, source, target) for each in layer] for layer in maps.cpu().numpy()]
    return tried.Tried(line, output, tried.by_head(mean, heads), lines=notes)


def _searched(decoding: DecodingConfig) -> str:
    if decoding.beam == 1:
        return "Greedy search."
    ranked = {"none": "log-probability", "mean": "mean log-probability of a symbol", "gnmt": "GNMT's length penalty"}
    return f"Beam search with {decoding.beam} hypotheses, ranked by {ranked[decoding.normalisation]}."
