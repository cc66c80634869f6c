"""Text that a trained language model writes, for the reader of the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn

from shared.data.tokenizers import BOS, EOS, PAD, UNK, Tokenizer
from shared.decoding.continuation import continue_text
from shared.decoding.language_model import LanguageModel
from shared.errors import ReplicationError
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.settings import LanguageRun


def write_samples(model: nn.Module, text: PreparedLanguage, config: LanguageRun, out: Path, seed: int = 0) -> None:
    """Let a model write on from several places of the first test split, evenly spread.

    Writes ``samples.json`` into ``out``: a list of ``{"prompt": …, "text": …, "true": …}``, with a line end wherever an
    end symbol stands; ``true`` is what follows the prompt in the test split. Nothing if no samples are asked for.

    A model without memory reads no more at once than it is judged with: a segment, or a window of those that slide.

    Args:
        model: a :class:`shared.decoding.language_model.LanguageModel` in evaluation mode.
        text: the prepared task.
        config: its ``evaluation`` says what is written and how far the model sees.
        out: a folder.
        seed: of the noise that symbols are drawn with.

    Raises:
        ReplicationError: the test split is too short, or the model predicts NaN.
    """
    evaluation = config.evaluation
    wanted = evaluation.samples
    if wanted is None:
        return
    symbols = text.split(config.corpus.test[0]).symbols
    spare = len(symbols) - wanted.prompt - wanted.length
    if spare < 0:
        raise ReplicationError(
            f"a prompt of {wanted.prompt} symbols and {wanted.length} more do not fit into the {len(symbols)} symbols "
            "of the test text; make evaluation.samples shorter."
        )
    starts = np.linspace(0, spare, wanted.prompts + 2).astype(int)[1:-1]
    whole = symbols[starts[:, None] + np.arange(wanted.prompt + wanted.length)].astype(np.int64)
    prompts, true = np.split(whole, [wanted.prompt], axis=1)
    device = next(model.parameters()).device
    window = evaluation.sliding.context if evaluation.sliding else evaluation.length
    seen = wanted.prompt if evaluation.reach.memory else window
    written = continue_text(
        cast(LanguageModel, model), torch.from_numpy(prompts[:, -seen:]).to(device), evaluation.reach.reach,
        length=wanted.length, never=(PAD, UNK, BOS), generator=torch.Generator(device).manual_seed(seed),
        temperature=wanted.temperature, top_k=wanted.top_k, top_p=wanted.top_p,
    )  # fmt: skip
    columns = {"prompt": prompts.tolist(), "text": written.tolist(), "true": true.tolist()}
    samples = [
        {name: decoded(text.tokenizer, column[i]) for name, column in columns.items()} for i in range(wanted.prompts)
    ]
    (out / "samples.json").write_text(json.dumps(samples, ensure_ascii=False, indent=1), encoding="utf-8")


def decoded(tokenizer: Tokenizer, symbols: Sequence[int]) -> str:
    """Text, with its line ends."""
    lines: list[list[int]] = [[]]
    for symbol in symbols:
        if symbol == EOS:
            lines.append([])
        else:
            lines[-1].append(symbol)
    return "\n".join(tokenizer.decode(lines))
