"""The quantities of language models, from what a block of consecutive symbols of a test text carries.

Losses are per unit, the named thing that a text is counted in: word, character or byte. Some measures come in
families: one for every length of the memory, for every distance of what is recalled, for every group of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from shared.metrics.quantities import Array, Example, Measure, Statistics, percentage, perplexity, ratio

LATE = slice(4, None)
"""Of the eight parts of a segment those that are compared with its start: most of what they need is in it."""
RATIOS = {10: 0.1, 50: 0.5, 100: 1.0}
"""Per cent, in the names of measures, to r: the shares of positions that effective context lengths are of."""


def bits(sums: Array) -> Array:
    """From summed nats and units (..., 2) to bits per unit (...)."""
    return np.asarray(ratio(sums) / np.log(2))


def bits_apart(sums: Array) -> Array:
    """Bits per unit of one part of the text less those of another: nats, units, nats, units (..., 4) to (...)."""
    return bits(sums[..., :2]) - bits(sums[..., 2:])


def _loss(*, words: bool) -> Statistics:
    """Of texts that are counted in words, or of all others."""

    def statistics(example: Example) -> Sequence[float] | None:
        fits = "unit" in example and (example["unit"] == "word") == words
        return (example["nll"], example["units"]) if fits else None

    return statistics


def _positions(*parts: slice) -> Statistics:
    """Nats and units of each selection of the eight parts of a segment."""

    def statistics(example: Example) -> Sequence[float] | None:
        if "positions" not in example:
            return None
        table, per_symbol = np.array(example["positions"]), example["units"] / example["tokens"]
        return [number for part in parts for number in table[part].sum(axis=0) * (1.0, per_symbol)]

    return statistics


def _memory(length: str, longer: str | None = None) -> Statistics:
    """Nats at a length of the memory, less those at another one if that is given, and units."""

    def statistics(example: Example) -> Sequence[float] | None:
        nats = example.get("memories", {})
        if length not in nats or longer not in (None, *nats):
            return None
        return nats[length] - (nats[longer] if longer else 0.0), example["units"]

    return statistics


def _recall(distance: str, number: int) -> Statistics:
    """Of recalls at a distance their nats (0) or how many are found (2), and how many there are."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get("recalls", {}).get(distance)
        return None if found is None else (found[number], found[1])

    return statistics


def _bits(title: str, statistics: Statistics) -> Measure:
    return Measure(title, "bits", 3, statistics, bits)


START, REST = slice(0, 1), slice(1, None)
MEASURES: dict[str, Measure] = {
    "word_perplexity": Measure("Perplexity per word", "", 2, _loss(words=True), perplexity),
    "bits": _bits("Bits per {token}", _loss(words=False)),
    "bits_start": _bits("Bits per {token}, first eighth of segments", _positions(START)),
    "bits_rest": _bits("Bits per {token}, rest of segments", _positions(REST)),
    "start_excess": Measure(
        "Bits per {token}, first eighth less second half", "bits", 3, _positions(START, LATE), bits_apart
    ),
}
_FAMILIES: dict[str, Callable[..., Measure]] = {
    r"word_perplexity@(\d+)": lambda memory: Measure(
        f"Perplexity per word, memory of {memory}", "", 2, _memory(memory), perplexity
    ),
    r"bits@(\d+)": lambda memory: _bits(f"Bits per {{token}}, memory of {memory}", _memory(memory)),
    r"bits_saved@(\d+)-(\d+)": lambda memory, longer: _bits(
        f"Bits per {{token}} saved by a memory of {longer} over one of {memory}", _memory(memory, longer)
    ),
    r"recall_bits@(\d+)": lambda distance: _bits(f"Bits per recall, distances up to {distance}", _recall(distance, 0)),
    r"recalled@(\d+)": lambda distance: Measure(
        f"Recalled, distances up to {distance}", "%", 1, _recall(distance, 2), percentage, 100.0
    ),
    r"recl_(.+)_(10|50|100)": lambda group, percent: Measure(
        f"RECL among {group}, r = {RATIOS[int(percent)]}", "symbols", 0
    ),
}


def member(name: str) -> Measure | None:
    """The measure of a family with this name; None if it is of none."""
    for pattern, made in _FAMILIES.items():
        if found := re.fullmatch(pattern, name):
            return made(*found.groups())
    return None


def members(examples: Sequence[Example]) -> dict[str, Measure]:
    """Name to measure, of the families, for all lengths and distances that the examples carry."""
    loss = "word_perplexity" if any(example.get("unit") == "word" for example in examples) else "bits"
    families = {"memories": (loss,), "recalls": ("recall_bits", "recalled")}
    carried = {entry: {key for example in examples for key in example.get(entry, ())} for entry in families}
    names = (
        f"{name}@{key}"
        for entry, found in families.items()
        for name in found
        for key in sorted(carried[entry], key=int)
    )
    return {name: of for name in names if (of := member(name)) is not None}
