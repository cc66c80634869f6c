"""Greedy search, and texts that a language model writes on: one symbol after the other, one at a time.

Shape letters: B sources or texts (B′ of them still searched), S source length, T target length or symbols of a prompt,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, best_first
from shared.decoding.protocol import Hypotheses, IncrementalDecoder, LanguageModel, Reach, StateT


@torch.no_grad()
def greedy_search(
    decoder: IncrementalDecoder[StateT], state: StateT, constraints: Constraints, *, attention: bool = False
) -> Hypotheses:
    """Take the most probable symbol until the end symbol comes; sources that have ended leave the batch.

    Args:
        decoder: the model, in evaluation mode.
        state: of B sources with one beam each; it is used up.
        constraints: on all hypotheses.
        attention: whether to collect the attention weights.

    Returns:
        One hypothesis for each source (n = 1). Of equally probable symbols the lower one is taken.

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``attention`` is asked of a model that has none.
    """
    batch, device = len(constraints.minimum), constraints.minimum.device
    active = torch.arange(batch, device=device)  # the sources still in the batch
    symbols = torch.full((batch, 1), constraints.begin, device=device)
    log_probs = torch.zeros(batch, 1, device=device)
    lengths = torch.zeros(batch, 1, dtype=torch.long, device=device)
    finished = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    history: list[Tensor] = []
    weights: list[Tensor] = []
    while len(active):
        predicted, alpha, state = decoder.step(symbols, state)
        predicted = constraints.restrict(predicted, active, len(history)).squeeze(1)  # (B′, V)
        symbols = best_first(predicted, 1)[1]
        history.append(spread(symbols, active, batch, fill=constraints.padding))
        if attention:
            weights.append(spread(required(alpha), active, batch, fill=0))
        log_probs[active] += predicted.gather(1, symbols)
        lengths[active] += 1
        finished[active] = symbols == constraints.end
        stay = (~finished[active, 0] & (len(history) < constraints.maximum[active])).nonzero()[:, 0]
        if 0 < len(stay) < len(active):
            state = decoder.reorder(state, stay, torch.zeros_like(symbols[stay]))
        active, symbols = active[stay], symbols[stay]
    tokens = torch.stack(history, dim=2)  # (B, 1, T)
    collected = torch.stack(weights, dim=2) if attention else None  # (B, 1, T, S)
    return Hypotheses(tokens, lengths, log_probs, log_probs, finished, collected)


def draw(
    log_probs: Tensor,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """One symbol for each row of log-probabilities: (B, V) to (B, 1).

    It is drawn with probability proportional to p^(1 / temperature), from the most probable ones if asked for.

    Args:
        log_probs: -inf where a symbol may not come.
        generator: where the noise comes from, on the model's device.
        temperature: above 0; towards 0 the most probable symbol is taken.
        top_k: draw from the k most probable symbols (Fan et al. 2018, section 5.1).
        top_p: draw from the fewest most probable symbols that together have this probability, at the
            temperature and among the k if both are given (Holtzman et al. 2020, section 3.1).

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``temperature``, ``top_k`` or ``top_p`` is out of range.
    """
    if temperature <= 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError(f"no sampling with temperature {temperature}, top_k {top_k} and top_p {top_p}")
    logits = log_probs / temperature
    if top_k is not None or top_p is not None:
        logits = most_probable(logits, top_k=top_k, top_p=top_p)
    # Of logits with Gumbel noise, which is -log of exponential noise, the highest is a draw from their softmax.
    noise = torch.empty_like(logits).exponential_(generator=generator).clamp_(min=torch.finfo().tiny)
    return best_first(logits - noise.log_(), 1)[1]


def most_probable(logits: Tensor, *, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """The logits (B, V) of the most probable symbols, see :func:`draw`, and -inf for the others.

    Of equals the lower symbol comes first.

    Raises:
        ReplicationError: a logit is NaN.
    """
    values, order = best_first(logits, logits.size(1) if top_k is None else top_k)
    if top_p is not None:
        p = values.double().softmax(1)
        values = values.masked_fill(p.cumsum(1) - p >= top_p, -torch.inf)  # what comes before is enough
    return torch.full_like(logits, -torch.inf).scatter(1, order, values)


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
        generator: as for :func:`draw`, and so ``temperature``, ``top_k`` and ``top_p``.

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


def spread(rows: Tensor, sources: Tensor, batch: int, *, fill: int) -> Tensor:
    """Put the rows (B′, …) of the sources still searched where they stand among all: (B, …)."""
    if len(sources) == batch:
        return rows
    return rows.new_full((batch, *rows.shape[1:]), fill).index_copy_(0, sources, rows)


def required(weights: Tensor | None) -> Tensor:
    """The weights themselves.

    Raises:
        ValueError: there are none.
    """
    if weights is None:
        raise ValueError("attention=True, but this decoder returns no attention weights")
    return weights
