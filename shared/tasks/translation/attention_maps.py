"""What evaluation keeps of every head's attention, for figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from shared.data.tokenizers import EOS, SPECIAL
from shared.tasks.translation.corpus import ParallelText, PreparedText

SENTENCES = 2
SYMBOLS = 10  # on the longer side: enough to show patterns, few enough to be named beside small heatmaps


def save_attention_maps(path: Path, model: Any, text: PreparedText, split: str) -> None:
    """Write every head's weights on two test sentences of middling length, if the model can tell them.

    Writes ``source_<i>`` (S,) and ``target_<i>`` (T,), the symbols with their end symbol, and for every array that
    ``model.attention_maps`` returns ``<name>_<i>`` (N, H, rows, columns) in half precision. Row t of the decoder's
    maps is of the step that predicts target symbol t.

    Args:
        path: of the file, an .npz.
        model: in evaluation mode; without ``attention_maps(source, source_mask, target)`` nothing is written.
        text: the prepared task.
        split: of test sentences.
    """
    if not hasattr(model, "attention_maps"):
        return
    encoded, device = text.split(split), next(model.parameters()).device
    arrays: dict[str, Any] = {}
    for number, i in enumerate(_middling(encoded)):
        batch = encoded.batch(np.array([i])).to(device)
        with torch.no_grad():
            maps = model.attention_maps(batch.source, batch.source_mask, batch.target)
        arrays |= {f"{name}_{number}": weights[:, 0].half().cpu().numpy() for name, weights in maps.items()}
        for side in ("source", "target"):
            symbols = getattr(encoded, side)[i].tolist()
            arrays[f"{side}_{number}"] = np.array([*getattr(text, side).pieces(symbols), SPECIAL[EOS]])
    np.savez_compressed(path, **arrays)


def _middling(text: ParallelText) -> list[int]:
    """The sentences whose longer side is nearest to `SYMBOLS` symbols, the first of equals."""
    away = np.abs(np.maximum(text.source.lengths, text.target.lengths) - SYMBOLS)
    chosen: list[int] = np.sort(np.argsort(away, kind="stable")[:SENTENCES]).tolist()
    return chosen
