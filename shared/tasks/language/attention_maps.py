"""What evaluation keeps of every head's attention to the text before a word, for the reader of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.settings import LanguageEvaluation
from shared.tasks.language.streams import Stream

TEXTS = 2
ROWS = 8  # last symbols of a text, whose weights are kept


def save_attention_maps(
    path: Path, model: Any, text: PreparedLanguage, split: str, evaluation: LanguageEvaluation
) -> None:
    """Write every head's weights on the last symbols of some parts of a split, if the model can tell them.

    A part is read as in evaluation, segment by segment from nothing, until the memory is full. Where it is known which
    symbols repeat an earlier one, such a symbol follows each part, and stood as far before as the model sees. Else
    parts are evenly spread.

    Writes ``symbols_<i>`` (S,), those that the last one attends to; ``next_<i>``, what follows; ``own_<i>``, how many
    of the S are of the last segment; and ``weights_<i>`` (N, H, R, S), of the R last symbols, in half precision.

    Args:
        path: of the file, an .npz.
        model: in evaluation mode; without ``attention_maps(segments, reach)`` nothing is written.
        text: the prepared task.
        split: of the test text.
        evaluation: how far the model sees.
    """
    if not hasattr(model, "attention_maps"):
        return
    stream, length, reach = text.split(split), evaluation.length, evaluation.reach.reach
    segments = 1 + -(-reach.memory // length)
    arrays: dict[str, Any] = {}
    for number, end in enumerate(_ends(stream, segments * length, length + reach.memory)):
        symbols = stream.symbols[end - segments * length : end].astype(np.int64)
        read = torch.from_numpy(symbols).to(next(model.parameters()).device).unsqueeze(0)
        with torch.inference_mode():
            weights = model.attention_maps(read.split(length, dim=1), reach)
        seen, pieces = weights.size(-1), text.tokenizer.pieces([*symbols.tolist(), int(stream.symbols[end])])
        arrays |= {
            f"symbols_{number}": np.array(pieces[-1 - seen : -1]), f"next_{number}": np.array(pieces[-1]),
            f"own_{number}": np.array(length), f"weights_{number}": weights[:, 0, :, -ROWS:].half().cpu().numpy(),
        }  # fmt: skip
    np.savez_compressed(path, **arrays)


def _ends(stream: Stream, least: int, seen: int) -> list[int]:
    """Places after the last symbol of every part; before each there are at least so many symbols."""
    places = np.arange(least, len(stream))
    if stream.distances is None:
        return places[np.linspace(0, len(places) - 1, TEXTS + 2).astype(int)[1:-1]].tolist() if len(places) else []
    distances = np.asarray(stream.distances[least:], dtype=np.int64)
    within = np.where(distances <= seen, distances, 0)
    furthest = np.argsort(-within, kind="stable")[:TEXTS]
    found: list[int] = np.sort(places[furthest[within[furthest] > 0]]).tolist()
    return found
