"""What benchmarks share: whole updates, passes forward and backward, searches, and the usual linear attention."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.twins import plain_equations
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.protocol import select_beams, select_sources
from shared.training.loss import smoothed_loss
from tests.decoding.naive_beam import naive_beam_search

Step = Callable[[], object]


def scratch() -> Path:
    """A folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder


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


def joeynmt_update(config: dict[str, Any], vocabulary: int, batch: int, length: int) -> dict[str, Step]:
    """The same of a model of joeynmt's, by its settings of ``model``; {} where it is not installed."""
    if not find_spec("joeynmt"):
        return {}
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    names = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>", "sep": None}
    special = {f"{name}_token": symbol for name, symbol in names.items()}
    special |= {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "lang_tags": []}
    words = Vocabulary([str(i) for i in range(4, vocabulary)], SimpleNamespace(**special))
    model: Any = build_model(config, words, words)
    model.loss_function = ("crossentropy", 0.0)
    source, previous, labels = torch.randint(4, vocabulary, (3, batch, length))
    mask, lengths = torch.ones(batch, 1, length, dtype=torch.bool), torch.full((batch,), length)
    given = {"src": source, "src_mask": mask, "src_length": lengths}
    given |= {"trg_input": previous, "trg": labels, "trg_mask": mask}
    return {"joeynmt": update(model, lambda: model(return_type="loss", **given)[0] / labels.numel())}


def sequence_update(model: Any, vocabulary: int, batch: int, length: int) -> Step:
    """An update of a model of separate sequences, which is told of it before."""
    inputs, targets = torch.randint(vocabulary, (2, batch, length))

    def loss() -> Tensor:
        model.at_update(0)
        mean: Tensor = model.output(model(inputs), targets).mean()
        return mean

    return update(model, loss)


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same by the equations of the paper instead of what runs in their place."""

    def step(*arguments: Any) -> Any:
        with plain_equations():
            return function(*arguments)

    return step


def both_ways(form: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Step:
    """Forward and backward, to all inputs; of several results the first counts."""

    def first() -> Tensor:
        out = form(*inputs)
        return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]

    cotangent = torch.randn_like(first().detach())
    return lambda: torch.autograd.grad(first(), inputs, cotangent)


def passes(forms: dict[str, Callable[..., Any]], inputs: tuple[Tensor, ...]) -> dict[str, Step]:
    """Forward and backward through each form."""
    return {name: both_ways(form, inputs) for name, form in forms.items()}


def heads(length: int, positive: bool = False, size: int = 64) -> tuple[Tensor, ...]:
    """Queries, keys and values (1, 8, T, K), that lie in memory as a layer's projections leave them."""
    q, k, v = torch.randn(3, 1, length, 8, size).transpose(2, 3)
    if positive:
        q, k = q.abs() + 0.1, k.abs() + 0.1
    return tuple(x.requires_grad_() for x in (q, k, v))


def summed_outer_products(q: Tensor, k: Tensor, v: Tensor, *, pieces: int = 128) -> Tensor:
    """Causal linear attention as public programs compute it on a CPU: what ours is compared with, in tests too.

    Outer products φ(k_j) v_jᵀ of all positions of a piece are made, summed up, and multiplied with the queries;
    autograd keeps what it needs of all of them. That is the way of performer-pytorch's
    ``causal_linear_attention_noncuda``; with a single piece, of many a notebook.

    Args:
        q, k: φ(q) and φ(k), (B, H, T, C).
        v: (B, H, T, V).
        pieces: into which positions are cut.
    """
    sums, normaliser, out = torch.zeros(()), torch.zeros(()), []
    for q_here, k_here, v_here in zip(*(x.chunk(pieces, dim=2) for x in (q, k, v)), strict=True):
        z = normaliser + k_here.cumsum(2)
        s = sums + torch.einsum("bhtc,bhtv->bhtcv", k_here, v_here).cumsum(2)  # (B, H, T, C, V)
        weight = 1 / torch.einsum("bhtc,bhtc->bht", q_here, z)
        out.append(torch.einsum("bhtcv,bhtc,bht->bhtv", s, q_here, weight))
        sums, normaliser = s[:, :, -1:], z[:, :, -1:]
    return torch.cat(out, dim=2)


def searches(model: Any, inputs: Sequence[tuple[Tensor, ...]], least: Tensor, most: Tensor) -> dict[str, Step]:
    """Beam search of width 5, of one input at a time and of all together.

    Args:
        model: an :class:`shared.decoding.protocol.IncrementalDecoder`.
        inputs: what its ``start`` takes, of all together and then of each alone.
        least, most: (B,) symbols of an output.

    Raises:
        AssertionError: they find different outputs.
    """

    def limits(rows: slice) -> Constraints:
        return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=least[rows], maximum=most[rows])

    @torch.no_grad()
    def together() -> list[list[int]]:
        return beam_search(model, model.start(*inputs[0]), limits(slice(None)), beam=5).best()

    @torch.no_grad()
    def one_by_one() -> list[list[int]]:
        found = []
        for row, one in enumerate(inputs[1:]):
            tokens = naive_beam_search(model, model.start(*one), limits(slice(row, row + 1)), beam=5)[0].tokens
            found.append([token for token in tokens if token != EOS])
        return found

    assert together() == one_by_one()
    return {"one at a time": one_by_one, "together": together}


def translation_searches(model: Any, vocabulary: int) -> dict[str, Step]:
    """Searches for translations of 16 sources, at most 1.5 times as long as these."""
    lengths = torch.randint(5, 25, (16,))
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    source = torch.randint(4, vocabulary, mask.shape).masked_fill(~mask, PAD)
    alone = [(source[row : row + 1, :n], mask[row : row + 1, :n]) for row, n in enumerate(lengths)]
    return searches(model, [(source, mask), *alone], lengths // 2, (1.5 * lengths).long())


Prefixes = tuple[Tensor, Tensor, Tensor]
"""Sources (B, S), their mask (B, S) and what was written (B, k, T)."""


class Recomputing:
    """A translator that computes everything anew, by its paper's equations, for every symbol that it writes."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def start(self, source: Tensor, mask: Tensor) -> Prefixes:
        """Nothing is written."""
        return source, mask, source.new_empty(len(source), 1, 0)

    def step(self, tokens: Tensor, state: Prefixes) -> tuple[Tensor, Tensor, Prefixes]:
        """Write symbols (B, k)."""
        *sources, before = state
        written = torch.cat((before, tokens.unsqueeze(2)), dim=2)
        source, mask = (x.repeat_interleave(tokens.size(1), dim=0) for x in sources)
        with plain_equations():
            logits, weights = self.model(source, mask, written.flatten(0, 1))
        log_p, a = (x.view(*tokens.shape, -1) for x in (logits[:, -1].log_softmax(-1), weights[:, -1]))
        return log_p, a, (*sources, written)

    def reorder(self, state: Prefixes, sources: Tensor | None, beams: Tensor) -> Prefixes:
        """Keep some sources and beams."""
        source, mask, written = state
        return select_sources(source, sources), select_sources(mask, sources), select_beams(written, sources, beams)
