"""The registry of measures: which named quantities there are, and their values on test examples.

Every measure is registered once, where it is defined: those of several kinds of task in
:mod:`shared.metrics.measures`, those of one kind in its ``measures`` module. Importing such a module registers what
it holds, and :func:`shared.tasks.kinds.load_measures` does that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shared.errors import ReplicationError
from shared.metrics.quantities import Example, Measure

_measures: dict[str, Measure] = {}
FAMILIES: list[Family] = []
"""Registered families."""
_numbers: set[str] = set()
MEASURES: Mapping[str, Measure] = MappingProxyType(_measures)
"""Registered measures by name, in the order in which reports show them; the members of families are not among them."""


@dataclass(frozen=True)
class Family:
    """Measures of one quantity that differ in a parameter, such as a length of the memory, which is in their names.

    Attributes:
        pattern: regular expression of the whole name; its groups are the parameters.
        make: from the parameters to the measure.
        carried: from test examples to the names of the members that they carry statistics of and that evaluation
            computes; by default none.
        beside: whether score tables show the members, each behind the measure whose name stands before its ``@``.
    """

    pattern: str
    make: Callable[..., Measure]
    carried: Callable[[Sequence[Example]], Iterable[str]] = lambda examples: ()
    beside: bool = False

    def member(self, name: str) -> Measure | None:
        """The member with this name; None if the name does not follow the pattern."""
        match = re.fullmatch(self.pattern, name)
        return self.make(*match.groups()) if match else None


def members(name: str, entry: str, order: Callable[[str], Any] = str) -> Callable[[Sequence[Example]], list[str]]:
    """A member ``<name>@<key>`` for each key that the examples' entries of a name have, for :class:`Family`."""

    def carried(examples: Sequence[Example]) -> list[str]:
        keys = {key for example in examples for key in example.get(entry, ())}
        return [f"{name}@{key}" for key in sorted(keys, key=order)]

    return carried


def register(measures: Mapping[str, Measure], families: Sequence[Family] = (), numbers: Collection[str] = ()) -> None:
    """Add measures by name, and families, after those that are registered already.

    Args:
        measures: by name.
        families: of measures that have a parameter in their names.
        numbers: names of what evaluation writes into metrics.json and no table of scores shows.

    Raises:
        ReplicationError: a measure or a pattern of this name is registered already.
    """
    for name in (*measures, *(family.pattern for family in families)):
        if name in _measures or any(name == family.pattern for family in FAMILIES):
            raise ReplicationError(f"the measure '{name}' is registered twice; give one of the two another name.")
    _measures.update(measures)
    FAMILIES.extend(families)
    _numbers.update(numbers)


def known(name: str) -> Measure | None:
    """The registered measure or member of a family called ``name``; None for a number that only metrics.json holds."""
    return _measures.get(name) or next((found for family in FAMILIES if (found := family.member(name))), None)


def is_known(name: str) -> bool:
    """Whether evaluation has a measure or a number of this name."""
    return name in _numbers or known(name) is not None


def split_of(name: str) -> tuple[str, str]:
    """The further test split that stands before a measure's name, ``test_long.bleu``, else nothing; and that name."""
    split, dot, plain = name.partition(".")
    return (split, plain) if dot and not is_known(name) else ("", name)


def measure(name: str) -> Measure:
    """As :func:`known`; for a number that only metrics.json holds a measure without statistics, titled by its name."""
    return known(name) or Measure(name.replace("_", " ").replace(".", ": "))


def corpus_values(examples: Sequence[Example]) -> dict[str, float]:
    """Name to value of every measure that the examples carry statistics of, members of families last."""
    members = {name: measure(name) for family in FAMILIES for name in family.carried(examples)}
    values = {name: each.of(examples) for name, each in (_measures | members).items()}
    return {name: value for name, value in values.items() if value is not None}


def by_theme(carried: Collection[str] = ()) -> list[list[str]]:
    """The names of all measures, in order, those of one theme together.

    Args:
        carried: names of the numbers that runs have; the members of families among them that score tables show follow
            the measure before their ``@``.
    """
    members = sorted(name for name in carried if any(each.beside and each.member(name) for each in FAMILIES))
    themes: dict[str, list[str]] = defaultdict(list)
    for name, each in _measures.items():
        themes[each.theme] += [name, *(member for member in members if member.startswith(f"{name}@"))]
    return list(themes.values())
