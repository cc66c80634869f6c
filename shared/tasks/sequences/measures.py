"""The measures of models of separate sequences, from what each sequence of a test split carries.

The record of a sequence has its nats over all targets that count, the number of these targets and, except for pixels,
how many of them are the model's most probable symbol. The weights of a model may also be judged in a model with another
architecture ("swapped"). Each such result is a family of measures, with a member for every swapped model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import shared.metrics.measures  # noqa: F401  registers the measures of several kinds first
from shared.metrics.quantities import Direction, Example, Measure, Statistics, percentage, perplexity
from shared.metrics.registry import Family, register

NATS, HITS = 0, 1
"""Indices into the pair of numbers that an example has for each swapped model and for the baseline."""


def _hits(example: Example) -> Sequence[float] | None:
    return (example["hits"], example["tokens"]) if "hits" in example else None


def _without_error(example: Example) -> Sequence[float] | None:
    """Whether all symbols are right, and 1; None unless the task is a generated one with a unique answer."""
    answers = "hits" in example and example["unit"] == "symbol"
    return (example["hits"] == example["tokens"], 1.0) if answers else None


def _undefined(example: Example) -> Sequence[float] | None:
    return (example["undefined"], example["tokens"]) if "undefined" in example else None


def _baseline(number: int) -> Statistics:
    """Nats or hits of the symbols' frequencies, and targets."""
    return lambda example: (example["baseline"][number], example["tokens"]) if "baseline" in example else None


def _swapped(model: str, number: int) -> Statistics:
    """Nats or hits with the weights in another model, and targets."""

    def statistics(example: Example) -> Sequence[float] | None:
        sums = example.get("swapped", {}).get(model)
        return (sums[number], example["tokens"]) if sums and "hits" in example else None

    return statistics


def _lost(model: str) -> Statistics:
    """Hits of the model less those with its weights in another one, and targets."""

    def statistics(example: Example) -> Sequence[float] | None:
        sums = _swapped(model, HITS)(example)
        return None if sums is None else (example["hits"] - sums[0], sums[1])

    return statistics


def _accuracy(title: str, statistics: Statistics, better: Direction | None = "higher") -> Measure:
    return Measure(title, "%", 2, statistics, percentage, 100.0, better=better)


def _perplexity(title: str, statistics: Statistics, better: Direction | None = "lower") -> Measure:
    return Measure(title, "", 2, statistics, perplexity, better=better)


def _perplexity_in(model: str) -> Measure:
    return _perplexity(f"Perplexity per {{token}}, same weights in {model}", _swapped(model, NATS))


def _accuracy_in(model: str) -> Measure:
    return _accuracy(f"Accuracy per {{token}}, same weights in {model}", _swapped(model, HITS))


def _accuracy_lost(model: str) -> Measure:
    return _accuracy(f"Accuracy per {{token}} lost with the same weights in {model}", _lost(model), "lower")


def _carried(name: str) -> Callable[[Sequence[Example]], Iterator[str]]:
    """A member for every model that the weights were judged in."""

    def names(examples: Sequence[Example]) -> Iterator[str]:
        models = {model for example in examples for model in example.get("swapped", ())}
        return (f"{name}@{model}" for model in sorted(models))

    return names


register(
    {
        "baseline_perplexity": _perplexity("Perplexity per {token} by frequencies alone", _baseline(NATS), None),
        "token_accuracy": _accuracy("Accuracy per {token}", _hits),
        "baseline_accuracy": _accuracy("Accuracy per {token} by frequencies alone", _baseline(HITS), None),
        "sequence_accuracy": _accuracy("Sequences without an error", _without_error),
        "undefined": _accuracy("Predictions that are no number", _undefined, "lower"),
    },
    [
        Family(r"perplexity@(.+)", _perplexity_in, _carried("perplexity"), beside=True),
        Family(r"token_accuracy@(.+)", _accuracy_in, _carried("token_accuracy"), beside=True),
        Family(r"accuracy_lost@(.+)", _accuracy_lost),
    ],
)
