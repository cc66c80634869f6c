"""The measures of models of separate sequences, from what each sequence of a test split carries.

The record of a sequence has its nats over all targets that count, the number of these targets and, except for pixels,
how many of them are the model's most probable symbol. The weights of a model may also be judged in a model with another
architecture ("swapped"). Each such result is a family of measures, with a member for every swapped model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shared.metrics.quantities import Direction, Example, Measure, Statistics, per_cent, perplexity, where_carried
from shared.metrics.registry import Family, members, register

NATS, HITS = 0, 1
"""Indices into the pair of numbers that an example has for each swapped model and for the baseline."""


def _without_error(example: Example) -> Sequence[float] | None:
    """Whether all symbols are right, and 1; None unless the task is a generated one with a unique answer."""
    return (example["hits"] == example["tokens"], 1.0) if example["unit"] == "symbol" else None


def _of_targets(count: Callable[[Example], float]) -> Statistics:
    """What a sequence counts of its targets, and their number."""
    return where_carried(lambda example: (count(example), example["tokens"]))


def _perplexity(title: str, statistics: Statistics, better: Direction = "lower") -> Measure:
    return Measure(title, "", 2, statistics, perplexity, better=better)


register(
    {
        "baseline_perplexity": _perplexity(
            "Perplexity per {token} by frequencies alone", _of_targets(lambda e: e["baseline"][NATS]), None
        ),
        "token_accuracy": per_cent("Accuracy per {token}", _of_targets(lambda e: e["hits"])),
        "baseline_accuracy": per_cent(
            "Accuracy per {token} by frequencies alone", _of_targets(lambda e: e["baseline"][HITS]), None
        ),
        "sequence_accuracy": per_cent("Sequences without an error", where_carried(_without_error)),
        "undefined": per_cent("Predictions that are no number", _of_targets(lambda e: e["undefined"]), "lower"),
    },
    [
        Family(r"perplexity@(.+)", lambda model: _perplexity(
            f"Perplexity per {{token}}, same weights in {model}", _of_targets(lambda e: e["swapped"][model][NATS])
        ), members("perplexity", "swapped"), beside=True),
        Family(r"token_accuracy@(.+)", lambda model: per_cent(
            f"Accuracy per {{token}}, same weights in {model}", _of_targets(lambda e: e["swapped"][model][HITS])
        ), members("token_accuracy", "swapped"), beside=True),
        Family(r"accuracy_lost@(.+)", lambda model: per_cent(
            f"Accuracy per {{token}} lost with the same weights in {model}",
            _of_targets(lambda e: e["hits"] - e["swapped"][model][HITS]), "lower",
        )),
    ],
)  # fmt: skip
