"""Refuses wrong data cards, facts of papers and lists of searches, which are otherwise read only after long work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.config import Strict, build, near
from shared.data.cards import Card, GeneratedSource, load_card
from shared.data.generated import TASKS
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
        readers = {name: reader.options for name, reader in READERS.items()}
        _check_options(readers, card.reader.name, card.reader.options, f"{path}: reader", "options", MOST_READ)
    for number, source in enumerate(card.sources):
        if isinstance(source, GeneratedSource):
            where, tasks = f"{path}: sources.{number}", {name: task.parameters for name, task in TASKS.items()}
            _check_options(tasks, source.task, source.parameters, where, "parameters", MOST_GENERATED)
    return card


def _check_options(
    classes: dict[str, type[Strict]], name: str, options: dict[str, Any], where: str, key: str, most: int
) -> None:
    if name not in classes:
        raise ReplicationError(f"{where}: '{name}' is not known{near(name, classes)}.")
    refuse_huge(options, f"{where}.{key}", most)
    build(classes[name], options, where=f"{where}.{key}")


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
