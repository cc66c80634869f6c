"""One colour for each model, by its name: the same in the figures of all papers and scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, RootModel

from shared.config import build, load_yaml, near
from shared.errors import ReplicationError

PALETTE: Mapping[str, str] = MappingProxyType({
    "blue": "#0090f0", "brown": "#902400", "green": "#609c6c", "orange": "#d87800", "navy": "#00306c",
    "purple": "#84789c", "black": "#000000",
})  # fmt: skip
"""As far apart as seven colours near those of Okabe & Ito (2008) can be that stand out from white, also to readers who
do not see red or green; tests/reports/test_styles.py measures both."""
FILE = Path("replications/colours.yaml")
_NONE: Mapping[str, int] = MappingProxyType({})
_COLOURS: ContextVar[Mapping[str, int]] = ContextVar("colours", default=_NONE)


class Colours(RootModel[dict[str, tuple[Annotated[str, Field(min_length=1)], ...]]]):
    """``colours.yaml``: colour to the names of the models that have it."""


def load_colours(path: Path) -> Mapping[str, int]:
    """Name of a model to the place of its colour in :data:`PALETTE`; none where there is no such file.

    Raises:
        ReplicationError: the file is wrong, has an unknown colour, or a name twice.
    """
    if not path.is_file():
        return _NONE
    places: dict[str, int] = {}
    for colour, names in build(Colours, load_yaml(path), where=str(path)).root.items():
        if colour not in PALETTE:
            raise ReplicationError(
                f"{path}: there is no colour '{colour}'{near(colour, PALETTE)}; take one of {', '.join(PALETTE)}."
            )
        for name in names:
            if name in places:
                raise ReplicationError(f"{path}: {colour} has '{name}', which has a colour already; leave one out.")
            places[name] = [*PALETTE].index(colour)
    return places


@contextmanager
def coloured(colours: Mapping[str, int]) -> Iterator[None]:
    """Give models these colours in all that is drawn meanwhile."""
    token = _COLOURS.set(colours)
    try:
        yield
    finally:
        _COLOURS.reset(token)


def styles_of(names: Sequence[str]) -> list[int]:
    """The number of each line's style in a figure with lines of these names.

    A number beyond the palette has a colour of it again, with other dashes. A name without a colour gets one that no
    other line of the figure has, while there are any.
    """
    colours = _COLOURS.get()
    own = {colours[name] for name in names if name in colours}
    styles: list[int] = []
    for name in names:
        again = count(colours[name], len(PALETTE)) if name in colours else (n for n in count() if n not in own)
        styles.append(next(number for number in again if number not in styles))
    return styles
