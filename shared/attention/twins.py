"""Equations as papers print them, each with a faster twin that runs in its place.

    @runs_as(attentive_recurrence)
    def align_and_write(x, initial, keys, …): …

Callers name the equation. Its twin, which takes the same arguments and gives the same results, runs for it everywhere
but inside of ``with plain_equations():``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)


class Twins(NamedTuple):
    """An equation and what runs in its place."""

    equation: Callable[..., object]
    twin: Callable[..., object]


TWINS: dict[str, Twins] = {}
"""All of them, by the module and the name of the equation; a module's are here as soon as it is imported."""


def runs_as(twin: Callable[..., Result]) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate an equation: outside of :func:`plain_equations` ``twin`` runs when it is called."""

    def decorate(equation: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(equation)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            return (equation if _PLAIN.get() else twin)(*args, **kwargs)

        TWINS[f"{equation.__module__}.{equation.__qualname__}"] = Twins(equation, twin)
        return run

    return decorate


@contextmanager
def plain_equations() -> Iterator[None]:
    """Inside, every equation runs as it is printed."""
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)
