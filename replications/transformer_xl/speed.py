"""How much faster a text is scored with the states of earlier segments than in sliding windows (table 9).

Shape letters: A attention length, how many symbols a prediction is made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from replications.transformer_xl.settings import SpeedConfig
from shared.decoding.protocol import Reach
from shared.errors import ReplicationError
from shared.metrics.turns import Clock, medians_of_turns, now, timed
from shared.tasks.batches import device_of
from shared.tasks.language.corpus import LanguageBatch, PreparedLanguage, Stream
from shared.tasks.language.settings import LanguageEvaluation, LanguageRun
from shared.tasks.replication import NetworkStudy, ready

TURNS = 3
"""Least number of timed passes that a median is over."""


@dataclass(frozen=True)
class Pass:
    """A repeatable pass over a part of the text: its batches, on the network's device, and what reads one."""

    batches: Sequence[LanguageBatch]
    read: Callable[[LanguageBatch], Tensor]

    @property
    def scored(self) -> int:
        """Number of scored symbols."""
        return sum(batch.tokens for batch in self.batches)

    @property
    def tokens(self) -> float:
        """How many symbols go through the network for each that is scored."""
        return sum(batch.inputs.numel() for batch in self.batches) / self.scored

    def __call__(self) -> None:
        """Do it once."""
        for batch in self.batches:
            self.read(batch)


class EvaluationSpeed(NetworkStudy):
    """Times two networks of random weights, each in its way of evaluation, on symbols of the first test split.

    *States kept*: ``evaluation.columns`` parts of the text side by side, in segments of ``evaluation.length`` symbols,
    each prediction made from exactly A symbols (``same_length``). *Sliding*: a window of A symbols for each prediction,
    of which only the last one goes through the softmax; so many windows at once that about as many symbols go through
    the network together as with segments.

    The network that reads windows may have other settings, like the vanilla network of table 9. The settings of the
    study override those of the task's network.
    """

    def evaluate(
        self, config: LanguageRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Of every length A the following, where ``way`` is ``reuse`` or ``sliding``.

        ``tokens_<way>@<A>``: symbols that go through the network for each that is scored, counted from the batches;
        ``token_ratio@<A>``: those of sliding windows to those of kept states; ``microseconds_<way>@<A>``: time for each
        that is scored, the median of passes that take turns; ``speedup@<A>``: the ratio of the times.

        Raises:
            ReplicationError: the text is too short.
        """
        settings, text = config.checked_model(SpeedConfig), PreparedLanguage(prepared)
        torch.manual_seed(0)
        keeping, vanilla = (
            ready(self.build(network, *text.sizes))
            for network in (settings.network, {**settings.network, **settings.sliding})
        )
        stream = text.split(config.corpus.test[0])
        metrics: dict[str, float] = {}
        with torch.inference_mode():
            for length in settings.lengths:
                ways = passes(keeping, vanilla, stream, length, config.evaluation)
                seconds = seconds_in_turns(ways, settings.seconds)
                for way, one in ways.items():
                    metrics[f"tokens_{way}@{length}"] = one.tokens
                    metrics[f"microseconds_{way}@{length}"] = 1e6 * seconds[way] / one.scored
                for ratio, quantity in (("token_ratio", "tokens"), ("speedup", "microseconds")):
                    sliding, reuse = (metrics[f"{quantity}_{way}@{length}"] for way in ("sliding", "reuse"))
                    metrics[f"{ratio}@{length}"] = sliding / reuse
        return metrics


def passes(keeping: Any, vanilla: Any, stream: Stream, length: int, evaluation: LanguageEvaluation) -> dict[str, Pass]:
    """One in each way, ``reuse`` and ``sliding``, with an attention length of A symbols.

    The pass of ``reuse`` begins with a full memory and reads at least A symbols of each column, so that it includes the
    operations that move the memory only now and then.

    Args:
        keeping: a :class:`shared.decoding.protocol.LanguageModel` in evaluation mode, which keeps states.
        vanilla: another, which reads windows.
        stream: what is scored.
        length: A.
        evaluation: its columns, segments and clamp.

    Raises:
        ReplicationError: the stream is too short.
    """
    device = device_of(keeping)
    columns, segment = evaluation.columns, evaluation.length
    memory = keeping.memory(columns, Reach(length, same_length=True, clamp=evaluation.reach.clamp))

    def reuse(batch: LanguageBatch) -> Tensor:
        return keeping(batch.inputs, batch.targets, memory)

    def sliding(batch: LanguageBatch) -> Tensor:
        return -vanilla.next_log_probs(batch.inputs).gather(1, batch.targets[:, -1:])

    enough = -(-length // segment)
    segments = stream.evaluation_batches(columns=columns, length=segment, warm_up=enough * segment)
    for batch in islice(segments, enough):
        reuse(batch.to(device))
    windows = stream.windows(context=length, stride=1, size=max(1, columns * segment // length))
    next(windows)  # skipped, because the first window scores all of its symbols
    kept, slid = ([batch.to(device) for batch in islice(of, n)] for of, n in ((segments, enough), (windows, 1)))
    if len(kept) < enough or not slid or not all(batch.mask[:, -1].all() for batch in (*kept, *slid)):
        raise ReplicationError(
            f"the test text has {len(stream):,} symbols, too few for an attention length of {length} in {columns} "
            "columns; make model.lengths or evaluation.columns smaller."
        )
    return {"reuse": Pass(kept, reuse), "sliding": Pass(slid, sliding)}


def seconds_in_turns(functions: Mapping[str, Callable[[], Any]], budget: float, clock: Clock = now) -> dict[str, float]:
    """Median seconds of each, after one call to warm up.

    They take turns until ``budget`` seconds are over by the ``clock``, but at least :data:`TURNS`.
    """

    def turns() -> Iterator[int]:
        begin = clock()
        for turn in count():
            if turn >= TURNS and clock() - begin >= budget:
                return
            yield turn

    for function in functions.values():
        function()
    return medians_of_turns({name: timed(function, clock) for name, function in functions.items()}, turns())
