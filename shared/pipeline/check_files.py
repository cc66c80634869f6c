"""Refuses wrong data cards, facts of papers and lists of searches, which are otherwise read only after long work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.config import Strict, build, near
from shared.data.cards import Card, GeneratedSource, load_card
from shared.data.generated.translation import TASKS
from shared.data.readers import READERS
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, refuse_huge
from shared.pipeline.files import REPLICATIONS
from shared.pipeline.names import check_variants
from shared.pipeline.search import load_search
from shared.reports.naming import load_names
from shared.reports.paper import Paper
from shared.reports.styles import FILE, load_colours

CARDS = Path("data")
MOST_GENERATED = 1_000_000
"""The largest whole number among the parameters of a generated task: some are lengths that are counted one by one."""
MOST_READ = 1_000_000_000
"""The same for the options of a reader."""


def check_card(dataset: str) -> Card:
    """Read a data card, and check the options of its reader and the parameters of what it generates.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    path = CARDS / f"{dataset}.yaml"
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


def check_names(settings: ScaleFile) -> None:
    """Check that the names of a paper's variants tell those of one task apart at a scale; and the colours of models.

    Raises:
        ReplicationError: a file is wrong; names no variant, or gives two of a task one name.
    """
    load_colours(FILE)
    names = load_names(REPLICATIONS / settings.paper)
    first: dict[tuple[str, str], str] = {}
    for variant, section in settings.variants.items():
        name = names.get(variant, variant)
        if (other := first.setdefault((section.task, name), variant)) != variant:
            path = REPLICATIONS / settings.paper / "names.yaml"
            raise ReplicationError(f"{path}: '{other}' and '{variant}' have one name, '{name}'; give each its own.")


def check_search(settings: ScaleFile) -> None:
    """Check the list of what a search tries, where a scale has one.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    if settings.path.with_name("search.yaml").exists():
        load_search(settings.paper, settings.scale)
