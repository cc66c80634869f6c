"""Numbers of things in sentences."""

from __future__ import annotations


def number_of(number: int, one: str, many: str = "") -> str:
    """``number`` of what is called ``one``: "1 seed", "2 seeds", "1,000 seeds".

    Args:
        number: how many.
        one: what one is called.
        many: what several are called; by default ``one`` with an s.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
