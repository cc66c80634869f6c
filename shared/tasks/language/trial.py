"""Lets a trained language model continue a text, and shows which earlier words each new one was predicted from.

Shape letters: N symbols of the whole text, L layers, H heads, S keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import RelativeMultiHeadAttention
from shared.claims.words import number_of
from shared.data.opening import composed
from shared.data.tokenizers import EOS
from shared.metrics.alignment import merge_pieces
from shared.tasks import tried
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.evaluation import decoded, drawn
from shared.tasks.language.report import LINE_END, how_drawn
from shared.tasks.language.settings import LanguageRun, SampleConfig

ADDED = 40
"""Symbols that are drawn where the variant does not say how many."""
SHOWN = 30  # symbols of the test text in an example of what to give


def try_input(model: Any, text: PreparedLanguage, config: LanguageRun, asked: str, seed: int) -> tried.Tried:
    """Continue ``asked`` with the variant's settings of sampling.

    Args:
        model: in evaluation mode.
        text: the prepared task.
        config: the variant's settings.
        asked: the beginning of a text; its line ends count where the task has them.
        seed: of the run, which also decides what is drawn.

    Raises:
        ReplicationError: the text is empty, has no symbol that the model knows, or the model predicts NaN.
    """
    evaluation = config.evaluation
    like = " ".join(decoded(text.tokenizer, text.split(config.corpus.test[0]).symbols[:SHOWN].tolist()).split("\n"))
    beginning = tried.not_empty(composed(asked), f"the beginning of a text such as '{like}'")
    given = _symbols(text, beginning, config.corpus.end_of_line)
    spoken, numbers = tried.whole_words(text.tokenizer, given, end=LINE_END)
    notes = tried.unknown_words(given, _as_given(text, beginning, given, [spoken[number] for number in numbers]), like)
    window = evaluation.sliding.context if evaluation.sliding else evaluation.length
    most = evaluation.reach.memory + evaluation.length if evaluation.reach.memory else window
    prompt = [EOS, *given][-most:]  # a text begins as if another line had ended before it
    if len(given) > most:
        notes.append(f"Only the last {most} of {len(given)} symbols are read, as far as the model sees in judging.")
    sampling = evaluation.samples or SampleConfig(length=ADDED)
    with _weights_of(model) as calls:
        (added,) = drawn(model, torch.tensor([prompt]), evaluation, sampling, seed)
    drawn_ones = number_of(sampling.length, "symbol is", "symbols are")
    notes.append(f"{drawn_ones} drawn {how_drawn(sampling.model_dump())}; the seed of the draws is {seed}.")
    output = decoded(text.tokenizer, added)
    if not calls:
        return tried.Tried(beginning, output, lines=[*notes, tried.NO_ATTENTION])
    rows, targets = tried.whole_words(text.tokenizer, added, end=LINE_END)
    columns, sources = tried.whole_words(text.tokenizer, [*prompt, *added], end=LINE_END)
    tables = _by_place(calls, len(prompt), len(added))  # (L, H, n, N)
    heads = [[merge_pieces(table, sources, targets) for table in layer] for layer in tables]
    last = columns[sources[len(prompt) - 1]]
    caption = (
        f"The earlier words that the last symbol before each new word attends to, '{rows[0]}' first, before which "
        f"'{last}' is the last of the text given; means over layers and heads."
    )
    mean = tried.Weights(caption, rows, columns, merge_pieces(tables.mean((0, 1)), sources, targets), "text")
    return tried.Tried(beginning, output, tried.by_head(mean, heads), lines=notes)


def _symbols(text: PreparedLanguage, beginning: str, end_of_line: bool) -> list[int]:
    """The symbols of a text, with an end symbol between its lines if the task has them."""
    symbols: list[int] = []
    for number, line in enumerate(text.tokenizer.encode(beginning.split("\n"))):
        symbols += [EOS] * (end_of_line and number > 0) + line
    return symbols


def _as_given(text: PreparedLanguage, beginning: str, symbols: Sequence[int], names: Sequence[str]) -> list[str]:
    """(n,) the word of each symbol, unknown ones as they stand in the text where symbols are words."""
    if text.tokenizer.unit != "word":
        return list(names)
    words = iter(text.tokenizer.split(beginning))
    return [LINE_END if symbol == EOS else next(words) for symbol in symbols]


@contextmanager
def _weights_of(model: nn.Module) -> Iterator[list[list[Tensor]]]:
    """Collect for every pass of the model the weights (H, S) of its last symbol, of each layer; none without attention.

    The layers are asked for their weights, which they do not compute unless asked.
    """
    layers = [m for m in model.modules() if isinstance(m, MultiHeadAttention | RelativeMultiHeadAttention)]
    calls: list[list[Tensor]] = []

    def ask(module: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if module is layers[0]:
            calls.append([])
        return args, keywords | {"weights": True}

    def collect(module: nn.Module, args: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        calls[-1].append(output[1][0, :, -1].double().cpu())

    hooks = [layer.register_forward_pre_hook(ask, with_kwargs=True) for layer in layers]
    hooks += [layer.register_forward_hook(collect) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _by_place(calls: Sequence[Sequence[Tensor]], given: int, drawn: int) -> tried.Floats:
    """(L, H, drawn, given + drawn) weights of every pass on the symbols that it has seen."""
    table = np.zeros((len(calls[0]), len(calls[0][0]), drawn, given + drawn))
    for row, layers in enumerate(calls):
        seen = torch.stack(list(layers)).numpy()  # (L, H, S)
        table[:, :, row, given + row - seen.shape[-1] : given + row] = seen
    return table
