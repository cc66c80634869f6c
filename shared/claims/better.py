"""Which of several verdicts on a claim is the better evidence, where a paper was replicated at several scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.claims.scales import SCALES

DATA = ("measured", "generated", "standard data", "paper's data")
"""What decided, from the weakest to the strongest. What is merely measured, and identities, count as generated."""
SIDES = {"reproduced": "for", "verified": "for", "contradicted": "against", "refuted": "against"}
"""Decided verdicts, and whether they speak for the claim."""

Entry = Mapping[str, Any]
"""An entry of claims.json."""


def better(entries: Iterable[Entry]) -> Entry:
    """The best evidence among the entries of one claim at several scales.

    A decided verdict beats an inconclusive one, and that beats one that was not tested. Among equals the better data
    win, then the larger scale.
    """
    return max(entries, key=_rank)


def disagree(entries: Sequence[Entry]) -> bool:
    """Whether decided verdicts speak for a claim at one scale and against it at another."""
    return len({SIDES[entry["verdict"]] for entry in entries if entry["verdict"] in SIDES}) > 1


def left_open(best: Entry, entries: Iterable[Entry]) -> list[Entry]:
    """The inconclusive entries whose data are better than those of the decided one that counts."""
    if best["verdict"] not in SIDES:
        return []
    return [entry for entry in entries if entry["verdict"] == "inconclusive" and _data(entry) > _data(best)]


def _rank(entry: Entry) -> tuple[int, int, int]:
    decided = 2 if entry["verdict"] in SIDES else int(entry["verdict"] == "inconclusive")
    return decided, _data(entry), SCALES.index(entry["scale"])


def _data(entry: Entry) -> int:
    data = DATA.index(entry["evidence"]) if entry["evidence"] in DATA else 0
    return max(data, DATA.index("generated"))
