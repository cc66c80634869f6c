"""What reports call a model, its name in words and its id beside it; and the tokens that its likelihoods are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, RootModel

from shared.claims.results import RunResults
from shared.config import build, load_yaml, near
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.reports.document import Code, Inline

_NONE: Mapping[str, str] = MappingProxyType({})
_NAMES: ContextVar[Mapping[str, str]] = ContextVar("names", default=_NONE)


class Names(RootModel[dict[str, Annotated[str, Field(min_length=1)]]]):
    """``names.yaml`` of a paper: variant to its name, which tells it from the others of its task."""


def load_names(paper: Path) -> Mapping[str, str]:
    """The names of a paper's variants; none where it has no ``names.yaml``, for ids serve too.

    Args:
        paper: ``replications/<paper>``.

    Raises:
        ReplicationError: the file is wrong, or names a variant that ``variants.yaml`` does not have.
    """
    path = paper / "names.yaml"
    if not path.is_file():
        return _NONE
    names = build(Names, load_yaml(path), where=str(path)).root
    variants = load_yaml(paper / "variants.yaml")["variants"]
    for name in names:
        if name not in variants:
            raise ReplicationError(f"{path}: {paper / 'variants.yaml'} has no variant '{name}'{near(name, variants)}.")
    return names


@contextmanager
def named(names: Mapping[str, str]) -> Iterator[None]:
    """Call the variants by these names in all that is written and drawn meanwhile."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def name_of(variant: str) -> str:
    """A variant's name in words; its id where it has none. An ensemble is called after its variant."""
    own = variant.removesuffix("-ensemble")
    names = _NAMES.get()
    if own not in names:
        return variant
    return names[own] if own == variant else f"{names[own]}, ensemble"


def name_and_id(variant: str) -> str:
    """Both in words, as where models of several tasks, which may have one name, stand in a list."""
    name = name_of(variant)
    return variant if name == variant else f"{name} ({variant})"


def called(variant: str) -> tuple[Inline, ...]:
    """A variant's name, and its id in small type; the id alone where it has no name."""
    name = name_of(variant)
    return (Code(variant),) if name == variant else (f"{name} ", Code(variant))


def token_of(runs: Sequence[RunResults]) -> str:
    """The unit of the likelihoods of a task, from a run that has any; aligners and studies have none."""
    return next((run.token for run in runs if has_tokens(run)), runs[0].token)


def has_tokens(run: RunResults) -> bool:
    """Whether anything is measured for each token."""
    return any("{token}" in measure(name).title for name in run.mean)
