"""What a paper's report shows beside the tables that all reports have: figures and tables as objects.

A paper lists its own in ``replications/<paper>/report.py`` as ``FIGURES``. That file imports neither torch nor
matplotlib: an exhibit imports what it draws with when it is drawn, so that its names can be checked at once.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Block, Figure

Results = Mapping[str, RunResults]
"""All variants of a paper at one scale, by name."""
NO_COUNTERPART = "No counterpart in the paper."


class Exhibit(ABC):
    """A figure or table of a paper's report."""

    @abstractmethod
    def variants(self) -> Sequence[str]:
        """Names of the variants that it shows, as ``variants.yaml`` has them."""

    def measures(self) -> Sequence[str]:
        """Names of the measures that it shows; none where it shows something else."""
        return ()

    def columns(self) -> Sequence[str]:
        """The numbers of studies that it shows, each ``<variant>: <subject>.<quantity>``."""
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
class Shows(Exhibit):
    """An exhibit and where it belongs.

    Attributes:
        exhibit: what is drawn.
        counterpart: the paper's figure or table that shows the same, such as ``Figure 3``, else :data:`NO_COUNTERPART`.
        claim: id of the claim whose card has it; without one it stands among the figures.
    """

    exhibit: Exhibit
    counterpart: str
    claim: str = ""

    def variants(self) -> Sequence[str]:
        """The exhibit's."""
        return self.exhibit.variants()

    def measures(self) -> Sequence[str]:
        """The exhibit's."""
        return self.exhibit.measures()

    def columns(self) -> Sequence[str]:
        """The exhibit's."""
        return self.exhibit.columns()

    def completed(self, results: Results) -> Results:
        """As the exhibit does."""
        return self.exhibit.completed(results)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """What the exhibit draws; captions begin with what the paper shows."""
        known = self.counterpart != NO_COUNTERPART
        said = f"As the paper's {self.counterpart}." if known else NO_COUNTERPART
        drawn = self.exhibit.draw(results, folder)
        return [
            replace(block, caption=f"{said} {block.caption}", alt=block.seen) if isinstance(block, Figure) else block
            for block in drawn
        ]


def first_run(results: Results, variant: str) -> RunResults | None:
    """The results of a variant that has a trained seed; None if it was not run."""
    run = results.get(variant)
    return run if run is not None and run.seeds else None


def run_ones(results: Results, variants: Sequence[str]) -> list[RunResults]:
    """The results of those variants that have a trained seed, in the order given."""
    return [run for variant in variants if (run := first_run(results, variant)) is not None]


def load_exhibits(paper: str, default: Sequence[Exhibit] = ()) -> Sequence[Exhibit]:
    """``FIGURES`` of ``replications/<paper>/report.py``; the ``default``, if the paper has no such file.

    Raises:
        ReplicationError: the file does not define ``FIGURES``.
    """
    name = f"replications.{paper}.report"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return default
    figures: Sequence[Exhibit] | None = getattr(module, "FIGURES", None)
    if figures is None:
        raise ReplicationError(f"{name.replace('.', '/')}.py does not define FIGURES; let it list what is shown.")
    return figures


def by_claim(exhibits: Sequence[Exhibit], results: Results, folder: Path) -> dict[str, list[Block]]:
    """Claim to the blocks of its exhibits in order, "" to those of no claim; captions say what the paper shows.

    Raises:
        ReplicationError: as :func:`drawn`.
    """
    placed = [exhibit if isinstance(exhibit, Shows) else Shows(exhibit, NO_COUNTERPART) for exhibit in exhibits]
    groups: dict[str, list[Block]] = {}
    for exhibit, blocks in zip(placed, drawn(placed, results, folder), strict=True):
        if blocks:
            groups.setdefault(exhibit.claim, []).extend(blocks)
    return groups


def drawn(exhibits: Sequence[Exhibit], results: Results, folder: Path) -> Iterator[Sequence[Block]]:
    """The blocks of each exhibit in order, their pictures drawn into ``folder``.

    Raises:
        ReplicationError: two exhibits draw a picture of the same name.
    """
    made: set[Path] = set()
    for exhibit in exhibits:
        blocks = exhibit.draw(results, folder)
        paths = [block.path for block in blocks if isinstance(block, Figure)]
        if twice := made.intersection(paths):
            raise ReplicationError(f"two figures of the report are drawn to {min(twice).name}; change a title of one.")
        made.update(paths)
        yield blocks
