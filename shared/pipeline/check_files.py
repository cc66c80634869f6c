"""Refuses wrong data cards, facts of papers and lists of searches, which are otherwise read only after long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

from pydantic import ValidationError

from shared.config import Strict, build, near
from shared.data.cards import Card, GeneratedSource, load_card
from shared.data.generated.translation import TASKS
from shared.data.readers import READERS
from shared.errors import ReplicationError
from shared.pipeline.config import REPLICATIONS, ScaleFile, refuse_huge
from shared.pipeline.names import check_variants
from shared.pipeline.search_file import load_search
from shared.reports.paper import Paper

CARDS = Path("data")
MOST_GENERATED = 1_000_000
"""The largest whole number among the parameters of a generated task: some are lengths that are counted one by one."""
MOST_READ = 1_000_000_000
"""The same for the options of a reader."""


@contextmanager
def naming_short_lists(path: Path) -> Iterator[None]:
    """Within it, a list of a file that has fewer entries than it needs is refused by its key.

    `shared.config.build` looks for the entry that is not there, and fails with an ``IndexError`` instead.
    """
    try:
        yield
    except IndexError as error:
        if not isinstance(error.__context__, ValidationError):
            raise
        problem = next(each for each in error.__context__.errors() if each["type"] == "missing")
        keys = ".".join(map(str, problem["loc"][:-1]))
        raise ReplicationError(
            f"{path}: '{keys}' has too few entries, {shorten(repr(problem['input']), 60)}."
        ) from None


def check_card(dataset: str) -> Card:
    """Read a data card, and check the options of its reader and the parameters of what it generates.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    path = CARDS / f"{dataset}.yaml"
    with naming_short_lists(path):
        card = load_card(dataset)
        if card.reader is not None:
            _check_options(READERS, card.reader.name, card.reader.options, f"{path}: reader", "options")
        for number, source in enumerate(card.sources):
            if isinstance(source, GeneratedSource):
                _check_options(TASKS, source.task, source.parameters, f"{path}: sources.{number}", "parameters")
    return card


def settings_class(function: Callable[..., Any]) -> type[Strict] | None:
    """What checks the settings of a reader or of a generated task: the one such class that its code names."""
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    classes = [each for each in named if isinstance(each, type) and issubclass(each, Strict)]
    return classes[0] if classes else None


def _check_options(
    functions: dict[str, Callable[..., Any]], name: str, options: dict[str, Any], where: str, key: str
) -> None:
    if name not in functions:
        raise ReplicationError(f"{where}: '{name}' is not known{near(name, functions)}.")
    settings = settings_class(functions[name])
    refuse_huge(options, f"{where}.{key}", MOST_GENERATED if functions is TASKS else MOST_READ)
    if settings is not None:
        build(settings, options, where=f"{where}.{key}")
    elif options:
        raise ReplicationError(f"{where}.{key}: '{name}' takes none, got '{min(options)}'; leave them out.")


def check_paper(settings: ScaleFile) -> None:
    """Check the facts of a paper, and the cards and variants that they name; a table may show any number of a run.

    Args:
        settings: of one of its scales.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    path = REPLICATIONS / settings.paper / "paper.yaml"
    paper = Paper.load(path)
    cards = [card.stem for card in CARDS.glob("*.yaml")]
    for name in paper.data:
        if name not in cards:
            raise ReplicationError(f"{path}: data: there is no card '{name}'{near(name, cards)}.")
    for table in paper.tables:
        for row in range(len(table.rows)):
            where = f"{path}: tables.{table.id}, row '{table.label(row)}'"
            check_variants(settings, table.variants(row), where)


def check_search(settings: ScaleFile) -> None:
    """Check the list of what a search tries, where a scale has one.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    if settings.path.with_name("search.yaml").exists():
        load_search(settings.paper, settings.scale)
