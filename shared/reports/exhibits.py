"""What a paper's report shows beside the tables that all reports have: figures and tables as objects.

A paper lists its own in ``replications/<paper>/report.py`` as ``FIGURES``. That file imports neither torch nor
matplotlib: an exhibit imports what it draws with when it is drawn, so that its names can be checked at once.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.metrics.quantities import Example
from shared.reports.document import Block, Figure, Table
from shared.reports.naming import name_and_code

if TYPE_CHECKING:
    from shared.claims.outcomes import Decision  # brings scipy, which a check of names does without

Results = Mapping[str, RunResults]
"""All variants of a paper at one scale, by name."""
LINES = 7  # of a figure: as many as the palette tells apart


@dataclass(frozen=True)
class Exhibit(ABC):
    """A figure or table of a paper's report.

    Attributes:
        claim: id of the claim whose card has it; without one it stands among the figures.
        counterpart: the paper's figure or table that shows the same, such as ``Figure 3``; none without.
    """

    claim: str = field(default="", kw_only=True)
    counterpart: str = field(default="", kw_only=True)

    @abstractmethod
    def variants(self) -> Sequence[str]:
        """Names of the variants that it shows, as ``variants.yaml`` has them."""

    def measures(self) -> Sequence[str]:
        """Names of the measures that it shows; none where it shows something else."""
        return ()

    def completed(self, results: Results) -> Results:
        """Add metrics that depend on several variants together to the results; by default none."""
        return results

    @abstractmethod
    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """Draw pictures into ``folder``; returns them with what stands between them, nothing if no variant was run."""


@dataclass(frozen=True)
class OfPanels(Exhibit):
    """An exhibit with a figure for each group of variants.

    Attributes:
        panels: title to the variants of one task, at most seven, that share a figure.
    """

    panels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def variants(self) -> Sequence[str]:
        """Those of all panels, each once."""
        return list(dict.fromkeys(variant for names in self.panels.values() for variant in names))


@dataclass(frozen=True)
class OfVariant(Exhibit):
    """An exhibit of one variant, by its first seed, with a caption that says what is seen."""

    variant: str
    caption: str

    def variants(self) -> Sequence[str]:
        """The one."""
        return (self.variant,)


@dataclass(frozen=True)
class OfVariants(Exhibit):
    """An exhibit that shows several variants."""

    shown: Sequence[str]

    def variants(self) -> Sequence[str]:
        """Those shown."""
        return self.shown


@dataclass(frozen=True)
class KindReport:
    """What reports of the papers of one kind of task show beside what all reports show; reports know no kind.

    Attributes:
        tables: from the variants of one task to what stands under their scores.
        sections: from decided claims and all variants to what follows the results of all tasks.
        figures: shown of papers that list no figures of their own.
    """

    tables: Callable[[Sequence[RunResults]], Sequence[Block]] = lambda runs: ()
    sections: Callable[[Sequence[Decision], Results], Sequence[Block]] = lambda decisions, results: ()
    figures: Sequence[Exhibit] = ()


def load_exhibits(paper: str, default: Sequence[Exhibit] = ()) -> Sequence[Exhibit]:
    """``FIGURES`` of ``replications/<paper>/report.py``; the ``default``, if the paper has no such file.

    Raises:
        ReplicationError: the file does not define ``FIGURES``.
    """
    file = Path("replications", paper, "report.py")
    if not file.is_file():
        return default
    module = importlib.import_module(f"replications.{paper}.report")
    if not hasattr(module, "FIGURES"):
        raise ReplicationError(f"{file} does not define FIGURES; let it list what is shown.")
    return module.FIGURES


def draw_exhibits(exhibits: Sequence[Exhibit], results: Results, folder: Path) -> dict[str, list[Block]]:
    """Claim to the blocks of its exhibits in order, "" to those of no claim; their pictures are drawn into ``folder``.

    Captions end with what the paper shows of it.

    Raises:
        ReplicationError: two exhibits draw a picture of the same name.
    """
    groups: dict[str, list[Block]] = defaultdict(list)
    made: set[Path] = set()
    for exhibit in exhibits:
        said = f" The paper shows the same in {exhibit.counterpart}." if exhibit.counterpart else ""
        blocks = [
            replace(block, caption=f"{block.finding}{block.caption}{said}") if isinstance(block, Figure) else block
            for block in exhibit.draw(results, folder)
        ]
        paths = {block.path for block in blocks if isinstance(block, Figure)}
        if twice := made & paths:
            raise ReplicationError(f"two figures of the report are drawn to {min(twice).name}; change a title of one.")
        made |= paths
        groups[exhibit.claim] += blocks
    return {claim: blocks for claim, blocks in groups.items() if blocks}


def first_run(results: Results, variant: str) -> RunResults | None:
    """The results of a variant that has a trained seed; None if it was not run."""
    run = results.get(variant)
    return run if run is not None and run.seeds else None


def by_task(results: Results) -> dict[str, list[RunResults]]:
    """The variants that were run, grouped by task, in order of name, whatever paper they are of."""
    groups: dict[str, list[RunResults]] = defaultdict(list)
    for name in sorted(results, key=lambda name: name.rpartition("/")[2]):
        if results[name].not_run is None:
            groups[results[name].task].append(results[name])
    return dict(groups)


def examples_with(examples: Sequence[Example], field: str) -> list[Example]:
    """Of the split ``test`` those that carry ``field``; those of every split where that is the field."""
    return [row for row in examples if field in row and (field == "split" or row["split"] == "test")]


def table_by(
    head: str, counts: Mapping[Any, int], runs: Sequence[RunResults], cell: Callable[[RunResults, Any], str]
) -> Table:
    """A row for each variant, and a column for each value that a field of the examples has.

    Args:
        head: of the first column.
        counts: value to the number of examples that have it, in the order of the columns.
        runs: the variants.
        cell: what stands in the column of a value.
    """
    heads = (f"{value} (n = {count:,})" for value, count in counts.items())
    rows = [[name_and_code(run.variant), *(cell(run, value) for value in counts)] for run in runs]
    return Table((head, *heads), rows, "l" + "r" * len(counts))


@dataclass(frozen=True)
class Panel:
    """Variants of one task that share a figure.

    Attributes:
        name: for the figure's file.
        title: what the figure's caption begins with.
        runs: 1 to :data:`LINES` of them.
    """

    name: str
    title: str
    runs: list[RunResults]


def panels(results: Results, chosen: Mapping[str, Sequence[str]], *, others: bool = True) -> list[Panel]:
    """Few enough variants per figure to tell their lines apart, ordered by task.

    Args:
        results: all variants.
        chosen: title to variants. Variants that were not run are left out, and so is a panel of several variants of
            which only one was run, or which another panel shows all together.
        others: whether a task that none of these variants is of is shown whole, in as many figures as it takes.

    Raises:
        ReplicationError: a chosen panel has too many variants, or those of several tasks.
    """
    asked = list[tuple[str, list[RunResults]]]()
    for title, names in chosen.items():
        runs = [results[name] for name in names if name in results and results[name].not_run is None]
        if len(runs) > LINES or len({run.task for run in runs}) > 1:
            raise ReplicationError(
                f"the panel '{title}' needs variants of one task, at most {LINES}; change it in the paper's report.py."
            )
        if len(runs) > 1 or len(names) == len(runs) == 1:
            asked.append((f", {title}", runs))
    own = [{run.variant for run in runs} for _, runs in asked]
    found = [  # of two panels with the same variants the first stays
        panel
        for i, panel in enumerate(asked)
        if not any(own[i] <= other for other in own[:i]) and not any(own[i] < other for other in own[i + 1 :])
    ]
    shown = {runs[0].task for _, runs in found}
    for task, runs in by_task(results).items():
        if others and task not in shown:
            found += [("", runs[i : i + LINES]) for i in range(0, len(runs), LINES)]
    several, place = Counter(runs[0].task for _, runs in found), Counter[str]()
    panels = []
    for title, runs in sorted(found, key=lambda panel: panel[1][0].task):
        place[task := runs[0].task] += 1
        numbered = f"_{place[task]}" if several[task] > 1 else ""
        panels.append(Panel(f"{task}{numbered}", f"Task {task}{title}", runs))
    return panels
