"""What benchmarks share: whole updates, passes forward and backward, and searches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.training.loss import smoothed_loss
from tests.decoding.naive_beam import naive_beam_search

Step = Callable[[], object]


def update(model: nn.Module, loss: Callable[[], Tensor]) -> Step:
    """A whole update: forward, backward, clipping and Adam."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def translation_update(model: nn.Module, vocabulary: int, batch: int, length: int) -> Step:
    """An update of a model that translates, on a batch without padding."""
    words, previous, labels = torch.randint(4, vocabulary, (3, batch, length))
    mask = torch.ones(batch, length, dtype=torch.bool)
    return update(model, lambda: smoothed_loss(model(words, mask, previous)[0], labels, 0.0))


def sequence_update(model: Any, vocabulary: int, batch: int, length: int) -> Step:
    """An update of a model of separate sequences, which is told of it before."""
    inputs, targets = torch.randint(vocabulary, (2, batch, length))

    def loss() -> Tensor:
        model.at_update(0)
        mean: Tensor = model.output(model(inputs), targets).mean()
        return mean

    return update(model, loss)


def both_ways(form: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Step:
    """Forward and backward, to all inputs."""
    cotangent = torch.randn_like(form(*inputs).detach())
    return lambda: torch.autograd.grad(form(*inputs), inputs, cotangent)


def heads(length: int, positive: bool = False) -> tuple[Tensor, ...]:
    """Queries, keys and values (1, 8, T, 64), that lie in memory as a layer's projections leave them."""
    q, k, v = torch.randn(3, 1, length, 8, 64).transpose(2, 3)
    if positive:
        q, k = q.abs() + 0.1, k.abs() + 0.1
    return tuple(x.requires_grad_() for x in (q, k, v))


def searches(model: Any, vocabulary: int, count: int = 16) -> dict[str, Step]:
    """Beam search of width 5 a sentence at a time, and of all together, to translations at most 1.5 times as long.

    Raises:
        AssertionError: they find different translations.
    """
    lengths = torch.randint(5, 25, (count,))
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    source = torch.randint(4, vocabulary, mask.shape).masked_fill(~mask, PAD)

    def limits(n: Tensor) -> Constraints:
        return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=n // 2, maximum=(1.5 * n).long())

    @torch.no_grad()
    def together() -> list[list[int]]:
        return beam_search(model, model.start(source, mask), limits(lengths), beam=5).best()

    @torch.no_grad()
    def one_by_one() -> list[list[int]]:
        found = []
        for row, n in enumerate(lengths):
            state = model.start(source[row : row + 1, :n], mask[row : row + 1, :n])
            tokens = naive_beam_search(model, state, limits(n[None]), beam=5)[0].tokens
            found.append([token for token in tokens if token != EOS])
        return found

    assert together() == one_by_one()
    return {"a sentence at a time": one_by_one, "together": together}


def passes(forms: dict[str, Callable[..., Any]], inputs: tuple[Tensor, ...]) -> dict[str, Step]:
    """Forward and backward through each form, the first of whose results counts."""
    return {name: both_ways(partial(_first, form), inputs) for name, form in forms.items()}


def _first(form: Callable[..., Any], *inputs: Tensor) -> Tensor:
    out = form(*inputs)
    first: Tensor = out[0] if isinstance(out, tuple) else out
    return first
