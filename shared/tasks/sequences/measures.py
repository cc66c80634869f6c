"""The quantities of models of separate sequences, from what each sequence of a test split carries.

Of a sequence are known its nats over all targets that count, how many those are and, unless they are pixels, how many
of them are the symbol that the model thinks the most probable. The weights of a model may be judged once more in a
model that is built otherwise; what that comes to is a family of measures, with a member for every such model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shared.metrics.quantities import Example, Measure, Statistics, percentage, perplexity

NATS, HITS = 0, 1
"""Places in what an example carries of swapped models and of the baseline."""


def nats(example: Example) -> Sequence[float] | None:
    """Nats and targets of a sequence whose hits are counted; the others, of pixels, have bits alone."""
    return (example["nll"], example["tokens"]) if "hits" in example else None


def _hits(example: Example) -> Sequence[float] | None:
    return (example["hits"], example["tokens"]) if "hits" in example else None


def _without_error(example: Example) -> Sequence[float] | None:
    """Of sequences that have one right answer, as those of a made-up task do."""
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
        found = example.get("swapped", {}).get(model)
        return (found[number], example["tokens"]) if found and "hits" in example else None

    return statistics


def _lost(model: str) -> Statistics:
    """Hits of the model less those with its weights in another one, and targets."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = _swapped(model, HITS)(example)
        return None if found is None else (example["hits"] - found[0], found[1])

    return statistics


def _accuracy(title: str, statistics: Statistics) -> Measure:
    return Measure(title, "%", 2, statistics, percentage, 100.0)


def _perplexity(title: str, statistics: Statistics) -> Measure:
    return Measure(title, "", 2, statistics, perplexity)


MEASURES: dict[str, Measure] = {
    "baseline_perplexity": _perplexity("Perplexity per {token} by frequencies alone", _baseline(NATS)),
    "token_accuracy": _accuracy("Accuracy per {token}", _hits),
    "baseline_accuracy": _accuracy("Accuracy per {token} by frequencies alone", _baseline(HITS)),
    "sequence_accuracy": _accuracy("Sequences without an error", _without_error),
    "undefined": _accuracy("Predictions that are no number", _undefined),
}
_FAMILIES: dict[str, Callable[[str], Measure]] = {
    "perplexity": lambda model: _perplexity(
        f"Perplexity per {{token}}, same weights in {model}", _swapped(model, NATS)
    ),
    "token_accuracy": lambda model: _accuracy(
        f"Accuracy per {{token}}, same weights in {model}", _swapped(model, HITS)
    ),
    "accuracy_lost": lambda model: _accuracy(
        f"Accuracy per {{token}} lost with the same weights in {model}", _lost(model)
    ),
}


def member(name: str) -> Measure | None:
    """The measure of a family with this name; None if it is of none."""
    found = re.fullmatch(r"(\w+)@(.+)", name)
    return _FAMILIES[found[1]](found[2]) if found and found[1] in _FAMILIES else None


def members(examples: Sequence[Example]) -> dict[str, Measure]:
    """Name to measure, of the families, for all models that the weights were judged in."""
    models = sorted({model for example in examples for model in example.get("swapped", ())})
    names = (f"{family}@{model}" for family in ("perplexity", "token_accuracy") for model in models)
    return {name: of for name in names if (of := member(name)) is not None}
