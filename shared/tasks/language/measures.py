"""The measures of language models beside losses per unit, from what blocks of consecutive symbols of a text carry.

Losses are per unit, the named thing that a text is counted in: word, character or byte. Some measures come in
families: one for every length of the memory, for every distance of what is recalled, for every group of models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shared.metrics.quantities import Array, Example, Measure, Statistics, bits, percentage, perplexity, where_carried
from shared.metrics.registry import Family, members, register

LATE = slice(4, None)
"""The parts of a segment, of eight, that are compared with its start; most of their context is in the segment."""
RATIOS = {10: 0.1, 50: 0.5, 100: 1.0}
"""Per cent, in the names of measures, to r: the shares of positions that effective context lengths are of."""


def bits_apart(sums: Array) -> Array:
    """Difference of the bits per unit of two parts of the text: nats, units, nats, units (..., 4) to (...)."""
    return bits(sums[..., :2]) - bits(sums[..., 2:])


def _positions(*parts: slice) -> Statistics:
    """Nats and units of each selection of the eight parts of a segment."""

    def statistics(example: Example) -> Sequence[float]:
        table, per_symbol = np.array(example["positions"]), example["units"] / example["tokens"]
        return [number for part in parts for number in table[part].sum(axis=0) * (1.0, per_symbol)]

    return where_carried(statistics)


def _memory(length: str) -> Statistics:
    """Nats with a memory of ``length``, and units."""
    return where_carried(lambda example: (example["memories"][length], example["units"]))


def _recall(distance: str, number: int) -> Statistics:
    """The nats of the recalls at a distance (``number`` 0), or how many of them succeed (2); and their number."""
    return where_carried(lambda example: (example["recalls"][distance][number], example["recalls"][distance][1]))


def _bits(title: str, statistics: Statistics) -> Measure:
    return Measure(title, "bits", 3, statistics, bits, better="lower")


def _at_memories(name: str, *, words: bool) -> Callable[[Sequence[Example]], list[str]]:
    """A member for every length of the memory that examples were scored at, of texts that are counted in words or of
    all others."""
    found = members(name, "memories", int)
    return lambda examples: found(examples) if any(e.get("unit") == "word" for e in examples) == words else []


START, REST = slice(0, 1), slice(1, None)
register(
    {
        "bits_start": _bits("Bits per {token}, first eighth of segments", _positions(START)),
        "bits_rest": _bits("Bits per {token}, rest of segments", _positions(REST)),
        "start_excess": Measure(
            "Bits per {token}, first eighth less second half", "bits", 3, _positions(START, LATE), bits_apart,
            better="lower",
        ),
    },
    [
        Family(r"word_perplexity@(\d+)", lambda memory: Measure(
            f"Perplexity per word, memory of {memory}", "", 2, _memory(memory), perplexity, better="lower"
        ), _at_memories("word_perplexity", words=True)),
        Family(r"bits@(\d+)", lambda memory: _bits(f"Bits per {{token}}, memory of {memory}", _memory(memory)),
               _at_memories("bits", words=False)),
        Family(r"bits_saved@(\d+)-(\d+)", lambda memory, longer: Measure(
            f"Bits per {{token}} saved by a memory of {longer} over one of {memory}", "bits", 3,
            where_carried(lambda e: (e["memories"][memory] - e["memories"][longer], e["units"])), bits, better="higher",
        )),
        Family(r"recall_bits@(\d+)", lambda distance: _bits(
            f"Bits per recall, distances up to {distance}", _recall(distance, 0)
        ), members("recall_bits", "recalls", int)),
        Family(r"recalled@(\d+)", lambda distance: Measure(
            f"Recalled, distances up to {distance}", "%", 1, _recall(distance, 2), percentage, 100.0, better="higher"
        ), members("recalled", "recalls", int)),
        Family(r"recl_(.+)_(10|50|100)", lambda group, percent: Measure(
            f"RECL among {group}, r = {RATIOS[int(percent)]}", "symbols", 0, better="higher", step=f"recl_{group}_step"
        )),
    ],
)  # fmt: skip
