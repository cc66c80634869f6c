"""Networks of Dai et al., how far they see, and their comparison with another implementation that has their weights.

A text with all words of the vocabulary is read in segments of unequal lengths, with memories shorter and longer than
these, which fill up in the course of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from replications.transformer_xl.model import TransformerXL
from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from shared.decoding.protocol import Reach

F64 = torch.float64
VOCABULARY, COLUMNS, SEGMENTS = 23, 3, (5, 5, 1, 7, 4)
SIZES = {"d_model": 16, "n_layer": 3, "n_head": 2, "d_head": 6, "d_inner": 20}
NARROWING = {"cutoffs": (6, 13), "div_val": 4}
NETWORKS = {
    "one softmax": {},
    "biases of each layer": {"untie_r": True},
    "clusters": {"cutoffs": (6, 13)},
    "narrowing clusters": NARROWING,
    "tied projections": {**NARROWING, "tied_projections": (False, True, True)},
    "all of these": {
        "untie_r": True, "cutoffs": (3, 9, 15), "div_val": 2, "tied_projections": (True, False, True, True)
    },
}  # fmt: skip
REACHES = [
    Reach(0), Reach(3), Reach(5), Reach(30), Reach(9, same_length=True), Reach(2, same_length=True),
    Reach(9, clamp=4), Reach(9, same_length=True, clamp=6), Reach(30, same_length=True, clamp=1),
]  # fmt: skip


class Told(NamedTuple):
    """What a network says of a segment."""

    nats: Tensor  # (B, T)
    log_probs: Tensor  # (B, T, V)
    states: list[Tensor]  # N + 1 of (B, T, D): what layers get, and what comes out of the last


Reader = Callable[[Tensor, Tensor], Told]
"""From inputs and targets (B, T) of a segment; it remembers those before it."""
Layout = Callable[[Callable[[Tensor], Tensor]], Mapping[str, Tensor]]
"""Parameters of another implementation, or what a function makes of each, by our names and in our shapes."""


def configured(network: str) -> ModelConfig:
    """Without dropout."""
    return ModelConfig.model_validate({**SIZES, "dropout": 0.0, **NETWORKS[network]})


def ours_with(config: ModelConfig, layout: Layout) -> TransformerXL:
    """Our model with another's weights."""
    model = build_model(config, VOCABULARY, None).to(F64)
    assert isinstance(model, TransformerXL)
    model.load_state_dict(layout(lambda weight: weight.detach()))
    return model


def shaken(module: nn.Module) -> nn.Module:
    """With weights far from their initial values."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.to(F64)


@contextmanager
def collected(layers: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """What layers are given while this lasts, and what the last one gives."""
    states: list[Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda _, args: states.append(args[0])) for layer in layers]
    hooks.append([*layers][-1].register_forward_hook(lambda *call: states.append(call[-1])))
    yield states
    for hook in hooks:
        hook.remove()


def reader(model: TransformerXL, reach: Reach) -> Reader:
    """Ours; in evaluation mode it keeps keys and values."""
    memory = model.memory(COLUMNS, reach)

    def read(inputs: Tensor, targets: Tensor) -> Told:
        with collected(model.layers) as states:
            nats = model(inputs, targets, memory)
        return Told(nats, model.softmax.log_probs(states[-1]), states)

    return read


def assert_same(
    ours: TransformerXL, theirs: Callable[[], Reader], layout: Layout, reach: Reach, tolerance: float = 1e-10
) -> None:  # fmt: skip
    """All values and gradients while training, and all values in evaluation.

    Args:
        ours: with the weights of the other.
        theirs: a reader that has read nothing.
        layout: where the other's gradients are.
        reach: how far both see.
        tolerance: absolute and relative; gradients, sums of many numbers, may have ten times as much.
    """
    text = torch.randperm(COLUMNS * (sum(SEGMENTS) + 1)).view(COLUMNS, -1) % VOCABULARY
    segments = [*zip(text[:, :-1].split(SEGMENTS, 1), text[:, 1:].split(SEGMENTS, 1), strict=True)]
    cotangent = torch.randn(COLUMNS, sum(SEGMENTS), dtype=F64)

    def read(reader: Reader) -> list[Told]:
        return [reader(*segment) for segment in segments]

    def close(found: object, expected: object, tolerance: float = tolerance) -> None:
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)

    found, expected = read(reader(ours.train(), reach)), read(theirs())
    close(found, expected)
    for told in (found, expected):
        torch.cat([one.nats for one in told], dim=1).backward(cotangent)
    gradients = layout(lambda weight: torch.empty(0) if weight.grad is None else weight.grad)
    for name, parameter in ours.named_parameters():
        assert gradients[name].abs().max() > 0, name
        close(parameter.grad, gradients[name], 10 * tolerance)
    with torch.no_grad():
        close(read(reader(ours.eval(), reach)), expected)
