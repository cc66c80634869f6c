"""One style for each model, the same in all figures of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

_STYLES: ContextVar[Mapping[str, int]] = ContextVar("styles")


def assigned(groups: Iterable[Sequence[str]]) -> dict[str, int]:
    """Variant to the number of its style, so that no two variants of a group have the same.

    Args:
        groups: the variants that share a figure. Those of the first ones get the first numbers.
    """
    groups = [*groups]
    beside: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for variant in group:
            beside[variant].update(group)
    styles: dict[str, int] = {}
    for variant in dict.fromkeys(variant for group in groups for variant in group):
        taken = {styles[other] for other in beside[variant] if other in styles}
        styles[variant] = next(number for number in count() if number not in taken)
    return styles


@contextmanager
def styled(groups: Iterable[Sequence[str]]) -> Iterator[None]:
    """Give every variant of the groups its style in all that is drawn meanwhile."""
    token = _STYLES.set(assigned(groups))
    try:
        yield
    finally:
        _STYLES.reset(token)


def style_of(variant: str, place: int) -> int:
    """The number of a variant's style; its ``place`` in the figure where none was assigned."""
    return _STYLES.get({}).get(variant, place)
