"""Sampling: symbols drawn from the model's probabilities, all or the most probable of them.

Shape letters: B sources (B′ of them still searched), V vocabulary.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, best_first
from shared.decoding.greedy import follow
from shared.decoding.protocol import Hypotheses, IncrementalDecoder, StateT


def sample(
    decoder: IncrementalDecoder[StateT],
    state: StateT,
    constraints: Constraints,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Hypotheses:
    """Draw each symbol until the end symbol comes; sources that have ended leave the batch.

    What the constraints allow is drawn with probability proportional to p^(1 / temperature). The noise of a
    source depends on its place in the batch and on which sources are left, so the same hypotheses come again
    for the same generator and the same batch only.

    Args:
        decoder: the model, in evaluation mode.
        state: of B sources with one beam each; it is used up.
        constraints: on all hypotheses.
        generator: where the noise comes from, on the model's device.
        temperature: above 0; towards 0 this becomes greedy search.
        top_k: draw from the k most probable symbols (Fan et al. 2018, section 5.1).
        top_p: draw from the fewest most probable symbols that together have this probability, at the
            temperature and among the k if both are given (Holtzman et al. 2020, section 3.1).

    Returns:
        One hypothesis for each source (n = 1). Its log-probability and its score are those of the model, without
        temperature and without selection.

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``temperature``, ``top_k`` or ``top_p`` is out of range.
    """
    choose = partial(draw, generator=generator, temperature=temperature, top_k=top_k, top_p=top_p)
    return follow(decoder, state, constraints, choose)


def draw(
    log_probs: Tensor,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """One symbol for each row of log-probabilities: (B′, V) to (B′, 1); the rest is as for :func:`sample`."""
    if temperature <= 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError(f"no sampling with temperature {temperature}, top_k {top_k} and top_p {top_p}")
    logits = log_probs / temperature
    if top_k is not None or top_p is not None:
        logits = most_probable(logits, top_k=top_k, top_p=top_p)
    # Of logits with Gumbel noise, which is -log of exponential noise, the highest is a draw from their softmax.
    noise = torch.empty_like(logits).exponential_(generator=generator).clamp_(min=torch.finfo().tiny)
    return best_first(logits - noise.log_(), 1)[1]


def most_probable(logits: Tensor, *, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """The logits (B′, V) of the most probable symbols, see :func:`sample`, and -inf for the others.

    Of equals the lower symbol comes first.

    Raises:
        ReplicationError: a logit is NaN.
    """
    values, order = best_first(logits, logits.size(1) if top_k is None else top_k)
    if top_p is not None:
        p = values.double().softmax(1)
        values = values.masked_fill(p.cumsum(1) - p >= top_p, -torch.inf)  # what comes before is enough
    return torch.full_like(logits, -torch.inf).scatter(1, order, values)
