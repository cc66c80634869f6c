"""How fast pictures are generated (section 4.2, tables 4 and 5): a symbol at a time, by every way to know the past.

The timed networks have random weights, because the time does not depend on the symbols that they draw. There are two
ways to draw the symbol after a prefix of n symbols. *Recomputed*: the network reads the whole prefix again for every
symbol. *Step by step*: the network reads the last symbol only, and keeps a state of the earlier ones.

Shape letters: B pictures, T symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from replications.linear_transformer.model import LinearTransformer
from replications.linear_transformer.settings import SUBJECTS, GenerationConfig
from shared.config import Strict
from shared.metrics.turns import Clock, medians_of_turns, now
from shared.tasks.replication import NetworkStudy, ready
from shared.tasks.settings import RunConfig

WARM_UP = 16
"""Symbols that are drawn before the timing starts."""
OTHERS = ("softmax", "stateful_softmax", "lsh_1", "lsh_4")
"""What linear attention is compared with."""


class Way:
    """A way to generate symbols, and the time that it takes.

    Args:
        model: a causal network in evaluation mode.
        symbols: of its vocabulary.
        batch: B.
        clock: tells the time.
        together: how many of B prefixes are read in one batch where they are recomputed; None: all.
    """

    def __init__(
        self, model: LinearTransformer, *, symbols: int, batch: int, clock: Clock, together: int | None = None
    ) -> None:
        self.model, self.symbols, self.batch, self.clock = model, symbols, batch, clock
        self.together = min(batch, together or batch)

    def seconds(self, span: range) -> float:
        """Seconds for drawing the symbols of ``span``, which begins a picture or follows the span before it."""
        raise NotImplementedError

    def _random(self, *shape: int) -> Tensor:
        return torch.randint(self.symbols, shape, device=self.model.embedding.weight.device)


class Stepwise(Way):
    """Draws every symbol, each from the state after those before it."""

    def seconds(self, span: range) -> float:
        """See :class:`Way`."""
        if span.start == 0:
            self._state, self._last = self.model.initial_state(self.batch), self._random(self.batch)
        begin = self.clock()
        for _ in span:
            h, self._state = self.model.step(self._last, self._state)
            self._last = self.model.output.sample(h)
        return self.clock() - begin


class Recomputed(Way):
    """Times one symbol after a random prefix that ends in the middle of a span; multiplies by the span's length.

    The cost of a prefix is convex in its length, so this slightly underestimates the time for all symbols of the span.
    It is scaled from the prefixes that are read together to B.
    """

    def seconds(self, span: range) -> float:
        """See :class:`Way`."""
        prefix = self._random(self.together, middle(span))
        begin = self.clock()
        self.model.output.sample(self.model(prefix)[:, -1])
        return (self.clock() - begin) * len(span) * (self.batch // self.together)


class Generation(NetworkStudy):
    """The variant ``generation``; its settings lie over those of the task's network.

    Args:
        build_model, kind: see :class:`NetworkStudy`.
        clock: tells the time.
    """

    def __init__(self, build_model: Callable[..., Any], kind: type[Strict], clock: Clock = now) -> None:
        super().__init__(build_model, kind)
        self._clock = clock

    @torch.inference_mode()
    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """Time each subject with b = 1 and with the larger batch size b, and return the following metrics.

        ``<subject>.seconds_b<b>``: time for b pictures in one batch. ``<subject>.pictures_per_second_b<b>``.
        ``<subject>.milliseconds_n<place>``: time per symbol with b = 1. ``<subject>.milliseconds_in_batch_n<place>``:
        time of a step in the larger batch, divided by b. ``<subject>.growth_b<b>``: ratio of the time per symbol at the
        last place to that at the first. ``speedup_over_<subject>@<b>``: ratio of the subject's seconds to those of
        linear attention. ``throughput_over_<subject>``: ratio of the pictures per second of linear attention to the
        subject's, each at its better batch size. The metrics of :func:`states` are included.
        """
        settings = config.checked_model(GenerationConfig)
        torch.manual_seed(0)
        models = {name: ready(self._network(settings, changes)) for name, (changes, _) in SUBJECTS.items()}
        metrics: dict[str, float] = {}
        for batch in (1, settings.batch):
            ways = {name: self._way(name, model, settings, batch) for name, model in models.items()}
            metrics |= timings(seconds_by_span(ways, settings.spans, settings.repeats), settings.spans, batch)
        return metrics | throughputs(metrics, (1, settings.batch)) | self._states(settings)

    def _way(self, subject: str, model: nn.Module, settings: GenerationConfig, batch: int) -> Way:
        network, way = cast(LinearTransformer, model), Stepwise if SUBJECTS[subject][1] else Recomputed
        return way(network, symbols=settings.symbols, batch=batch, clock=self._clock, together=settings.recomputed)

    def _network(
        self, settings: GenerationConfig, changes: Mapping[str, Any], length: int | None = None
    ) -> LinearTransformer:
        """A network for sequences of ``length`` symbols; default: the symbols of a picture."""
        return self.build(settings.changed(changes, length), settings.symbols, True)

    def _states(self, settings: GenerationConfig) -> dict[str, float]:
        """The metrics of :func:`states`, from the tensors of real states."""
        lengths = [settings.length // part for part in (4, 2, 1)]
        floats: dict[str, dict[int, int]] = {}
        for name, (changes, stepwise) in SUBJECTS.items():
            if stepwise:
                floats[name] = {n: remembered(self._network(settings, changes, n), n) for n in lengths}
        return states(floats)


def middle(span: range) -> int:
    """The place of a span: the length of the prefix, start symbol included, of the symbol in its middle."""
    return (span.start + span.stop + 1) // 2


def seconds_by_span(ways: Mapping[str, Way], spans: Sequence[range], repeats: int) -> dict[str, list[float]]:
    """Median seconds of each way for each span; they take turns at every span.

    Args:
        ways: what is timed, after some symbols each to warm up.
        spans: of one picture.
        repeats: how many pictures.
    """
    for way in ways.values():
        way.seconds(spans[0][:WARM_UP])
    contenders = {(name, span): partial(way.seconds, span) for span in spans for name, way in ways.items()}
    medians = medians_of_turns(contenders, range(repeats))
    return {name: [medians[name, span] for span in spans] for name in ways}


def timings(seconds: Mapping[str, Sequence[float]], spans: Sequence[range], batch: int) -> dict[str, float]:
    """The metrics of :meth:`Generation.evaluate` for one batch size.

    Args:
        seconds: of each subject, for each span.
        spans: of a picture.
        batch: b.
    """
    metrics, where = {}, "" if batch == 1 else "_in_batch"
    for name, times in seconds.items():
        by_symbol = [1e3 * taken / len(span) / batch for taken, span in zip(times, spans, strict=True)]
        metrics[f"{name}.seconds_b{batch}"] = sum(times)
        metrics[f"{name}.pictures_per_second_b{batch}"] = batch / sum(times)
        for span, milliseconds in zip(spans, by_symbol, strict=True):
            metrics[f"{name}.milliseconds{where}_n{middle(span)}"] = milliseconds
        metrics[f"{name}.growth_b{batch}"] = by_symbol[-1] / by_symbol[0]
    linear = sum(seconds["linear"])
    return metrics | {f"speedup_over_{name}@{batch}": sum(seconds[name]) / linear for name in OTHERS}


def throughputs(metrics: Mapping[str, float], batches: Sequence[int]) -> dict[str, float]:
    """``throughput_over_<subject>`` of :meth:`Generation.evaluate`, from its pictures per second."""
    best = {name: max(metrics[f"{name}.pictures_per_second_b{b}"] for b in batches) for name in SUBJECTS}
    return {f"throughput_over_{name}": best["linear"] / best[name] for name in OTHERS}


def remembered(model: LinearTransformer, length: int) -> int:
    """Number of values in the state of a network after it has read ``length`` symbols step by step."""
    symbol = torch.zeros(1, dtype=torch.long, device=model.embedding.weight.device)
    state = model.initial_state(1)
    for _ in range(length):
        _, state = model.step(symbol, state)
    return sum(x.numel() for x in tree_leaves(state) if isinstance(x, Tensor))


def states(floats: Mapping[str, Mapping[int, int]]) -> dict[str, float]:
    """Sizes of the recurrent state of one picture.

    ``<subject>.state_floats_n<n>``: number of values in the state of a network for n symbols.
    ``<subject>.state_growth``: their ratio at the largest n to the least. ``state_ratio``: ratio of softmax to linear
    attention at the largest n.

    Args:
        floats: by subject and n.
    """
    metrics = {f"{name}.state_floats_n{n}": float(count) for name, by in floats.items() for n, count in by.items()}
    last = {name: by[max(by)] for name, by in floats.items()}
    metrics |= {f"{name}.state_growth": last[name] / by[min(by)] for name, by in floats.items()}
    return metrics | {"state_ratio": last["stateful_softmax"] / last["linear"]}
