"""What reports call a model, and its colour: the same in the figures of all papers and scales."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, RootModel

from shared.claims.results import RunResults
from shared.config import build, load_yaml, near
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.reports.document import code

PALETTE: Mapping[str, str] = {
    "blue": "#0090f0", "brown": "#902400", "green": "#609c6c", "orange": "#d87800", "navy": "#00306c",
    "purple": "#84789c", "black": "#000000",
}  # fmt: skip
"""As far apart as seven colours near those of Okabe & Ito (2008) can be that stand out from white, also to readers who
do not see red or green; tests/reports/test_naming.py measures both."""
FILE = Path("replications/colours.yaml")
FAILED = re.compile(r"[\w/-]+(?=( and [\w/-]+)* (did not learn|was not tuned))")
"""The ids with which a check says why it failed."""
Word = Annotated[str, Field(min_length=1)]
Names = RootModel[dict[str, Word]]
"""``names.yaml`` of a paper: variant to its name, which tells it from the others of its task."""
Colours = RootModel[dict[str, tuple[Word, ...]]]
"""``colours.yaml``: colour to the names of the models that have it."""
_USED: ContextVar[tuple[Mapping[str, str], Mapping[str, int]]] = ContextVar("names and colours", default=({}, {}))


def load_names(paper: Path) -> Mapping[str, str]:
    """The names of a paper's variants; none where it has no ``names.yaml``, for ids serve too.

    Args:
        paper: ``replications/<paper>``.

    Raises:
        ReplicationError: the file is wrong, or names a variant that ``variants.yaml`` does not have.
    """
    path = paper / "names.yaml"
    if not path.is_file():
        return {}
    names = build(Names, load_yaml(path), where=str(path)).root
    for name in names:
        other, _, variant = name.rpartition("/")  # such as bahdanau/rnnsearch, of another paper
        there = (paper.parent / other if other else paper) / "variants.yaml"
        if variant not in (variants := load_yaml(there)["variants"]):
            raise ReplicationError(f"{path}: {there} has no variant '{variant}'{near(variant, variants)}.")
    return names


def load_colours(path: Path) -> Mapping[str, int]:
    """Name of a model to the place of its colour in :data:`PALETTE`; none where there is no such file.

    Raises:
        ReplicationError: the file is wrong, has an unknown colour, or a name twice.
    """
    if not path.is_file():
        return {}
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
def use_names(names: Mapping[str, str], colours: Mapping[str, int] | None = None) -> Iterator[None]:
    """Call the variants by these names, and give models these colours, in all that is written and drawn meanwhile."""
    before = _USED.set((names, colours or {}))
    try:
        yield
    finally:
        _USED.reset(before)


def name_of(variant: str) -> str:
    """A variant's name in words; its id where it has none. An ensemble is called after its variant."""
    own = variant.removesuffix("-ensemble")
    name = _USED.get()[0].get(own, own)
    return name if own == variant else variant if name == own else f"{name}, ensemble"


def name_and_id(variant: str) -> str:
    """Both in words, as where models of several tasks, which may have one name, stand in a list."""
    name = name_of(variant)
    return variant if name == variant else f"{name} ({variant})"


def name_and_code(variant: str) -> str:
    """A variant's name, and its id in small type; the id alone where it has no name."""
    name = name_of(variant)
    return code(variant) if name == variant else f"{name} {code(variant)}"


def in_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of claims.json whose reasons call models that failed a check by their names."""

    def worded(key: str, value: Any) -> Any:
        if key in ("how", "reason"):
            return FAILED.sub(lambda id: name_of(id[0]), value)
        return [*map(in_words, value)] if key == "parts" else value

    return {key: worded(key, value) for key, value in entry.items()}


def styles_of(names: Sequence[str]) -> list[int]:
    """The number of each line's style in a figure with lines of these names.

    A number beyond the palette has a colour of it again, with other dashes. A name without a colour gets one that no
    other line of the figure has, while there are any.
    """
    _, colours = _USED.get()
    own = {colours[name] for name in names if name in colours}
    styles: list[int] = []
    for name in names:
        again = count(colours[name], len(PALETTE)) if name in colours else (n for n in count() if n not in own)
        styles.append(next(number for number in again if number not in styles))
    return styles


def token_of(runs: Sequence[RunResults]) -> str:
    """The unit of the likelihoods of a task, from a run that has any; aligners and studies have none."""
    return next((run.token for run in runs if has_tokens(run)), runs[0].token)


def has_tokens(run: RunResults) -> bool:
    """Whether anything is measured for each token."""
    return any("{token}" in measure(name).title for name in run.mean)
