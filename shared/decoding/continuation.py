"""Texts that a language model writes on, symbol by symbol.

Shape letters: B texts, T symbols of a prompt, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shared.attention.memory import Reach
from shared.decoding.language_model import LanguageModel
from shared.decoding.sampling import draw


@torch.no_grad()
def continue_text(
    model: LanguageModel,
    prompts: Tensor,
    reach: Reach,
    *,
    length: int,
    never: Sequence[int],
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Draw what follows the prompts, which never ends by itself.

    The model reads the prompts in one pass, then each symbol alone: with the memory, a symbol costs the same however
    long the text has become. Without one, ``reach.memory`` 0, the last T symbols are read anew for each.

    Args:
        model: in evaluation mode.
        prompts: (B, T), T at least 1.
        reach: how far back the model sees.
        length: how many symbols are drawn.
        never: symbols that are not drawn, such as padding; an end symbol that is drawn does not end the text.
        generator: as for :func:`shared.decoding.sampling.sample`, and so ``temperature``, ``top_k`` and ``top_p``.

    Returns:
        (B, length) int64 symbols, none of them in ``never``.

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``temperature``, ``top_k`` or ``top_p`` is out of range.
    """
    columns, width = prompts.shape
    memory = model.memory(columns, reach) if reach.memory else None
    excluded = torch.tensor(never, dtype=torch.long, device=prompts.device)
    text = torch.cat((prompts, prompts.new_empty(columns, length)), dim=1)
    read = prompts
    for end in range(width + 1, width + length + 1):
        log_probs = model.next_log_probs(read, memory).float().index_fill(1, excluded, -torch.inf)
        text[:, end - 1 : end] = draw(log_probs, generator=generator, temperature=temperature, top_k=top_k, top_p=top_p)
        read = text[:, end - (width if memory is None else 1) : end]
    return text[:, width:]
