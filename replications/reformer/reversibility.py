"""How exact the gradients of reversible layers are, and what their training keeps, by depth (section 3).

Shape letters: B sequences, T symbols, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from replications.reformer.model import Reformer
from replications.reformer.settings import ReversibilityConfig
from shared.attention.twins import plain_equations
from shared.metrics.peak_memory import MEBIBYTE, peak_memory
from shared.tasks.replication import NetworkStudy
from shared.tasks.settings import RunConfig

SEQUENCES = 2
"""B."""
TYPES = {"float32": torch.float32, "float64": torch.float64}


class Reversibility(NetworkStudy):
    """The variant ``reversibility``; its settings lie over those of the task's network, which is made reversible."""

    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """Measure on random symbols.

        * ``<attention>.gradients_<type>``: the largest difference between a gradient of the hand-written backward pass
          and that of autograd through the same equations, relative to the largest gradient of its parameter.
        * ``<form>.kept_n<L>``: MiB that a forward pass keeps for the backward pass, without parameters, at L layers;
          ``<form>.growth``: the ratio of the largest depth to the least. Forms: ``reversible``, ``plain``, which is
          autograd through the same equations, and ``lsh``, reversible with hashing.
        * ``chunked.difference`` of the states with feed-forward networks in chunks, and ``chunked.peak``, the peak
          memory of a forward and backward pass relative to that without chunks.
        """
        settings = config.checked_model(ReversibilityConfig)
        torch.manual_seed(seed)
        inputs = torch.randint(settings.symbols, (SEQUENCES, settings.network["length"]))
        found: dict[str, float] = {}
        for attention in ("shared", "lsh"):
            model = self._network(settings, attention=attention)
            for name, dtype in TYPES.items():
                found[f"{attention}.gradients_{name}"] = apart(model.to(dtype), inputs)
        for form, attention, plain in (
            ("reversible", "shared", False), ("plain", "shared", True), ("lsh", "lsh", False)
        ):  # fmt: skip
            kept = {}
            for depth in settings.depths:
                kept[depth] = kept_bytes(
                    self._network(settings, attention=attention, layers=depth), inputs, plain=plain
                )
                found[f"{form}.kept_n{depth}"] = kept[depth] / MEBIBYTE
            found[f"{form}.growth"] = kept[settings.depths[-1]] / kept[settings.depths[0]]
        whole, chunked = (
            self._network(settings, attention="shared", feed_forward_chunk=size) for size in (None, settings.positions)
        )
        chunked.load_state_dict(whole.state_dict())
        with torch.no_grad():
            found["chunked.difference"] = float((whole.double()(inputs) - chunked.double()(inputs)).abs().max())
        peaks = [peak_memory(partial(gradients, of, inputs)) for of in (chunked, whole)]
        return found | {"chunked.peak": peaks[0] / peaks[1]}

    def _network(self, settings: ReversibilityConfig, **changes: Any) -> Reformer:
        return self.build({**settings.network, "reversible": True, **changes}, settings.symbols, True)


def gradients(model: Reformer, inputs: Tensor) -> tuple[Tensor, ...]:
    """Of the sum of the states' squares, by all parameters that they depend on."""
    parameters = [p for name, p in model.named_parameters() if not name.startswith("output")]
    return torch.autograd.grad(
        (model(inputs) ** 2 * torch.linspace(0, 1, model.norm.normalized_shape[0])).sum(), parameters
    )


def apart(model: Reformer, inputs: Tensor) -> float:
    """How far the hand-written gradients are from those of autograd, relative to the largest of each parameter."""
    found = []
    for context in (nullcontext(), plain_equations()):
        with context:
            found.append(gradients(model, inputs))
    pairs = zip(*found, strict=True)
    return max(float((ours - theirs).abs().max() / theirs.abs().max()) for ours, theirs in pairs)


def kept_bytes(model: Reformer, inputs: Tensor, *, plain: bool) -> int:
    """Bytes that the forward pass of the layers keeps for the backward pass, each storage once, without parameters."""
    own, kept = {p.untyped_storage().data_ptr() for p in model.parameters()}, dict[int, Tensor]()

    def pack(x: Tensor) -> Tensor:
        if (place := x.untyped_storage().data_ptr()) not in own:
            kept[place] = x  # held, so that no other tensor comes to lie there
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x), plain_equations() if plain else nullcontext():
        model(inputs)
    return sum(x.untyped_storage().nbytes() for x in kept.values())
