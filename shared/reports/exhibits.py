"""What a paper's report shows beside the tables that all reports have: figures and tables as objects.

A paper lists its own in ``replications/<paper>/report.py`` as ``FIGURES``. That file imports neither torch nor
matplotlib: an exhibit imports what it draws with when it is drawn, so that its names can be checked at once.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Block, Figure

Results = Mapping[str, RunResults]
"""All variants of a paper at one scale, by name."""


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


def first_run(results: Results, variant: str) -> RunResults | None:
    """The results of a variant that has a trained seed; None if it was not run."""
    run = results.get(variant)
    return run if run is not None and run.seeds else None


def run_ones(results: Results, variants: Sequence[str]) -> list[RunResults]:
    """The results of those variants that have a trained seed, in the order given."""
    return [run for variant in variants if (run := first_run(results, variant)) is not None]


def slug(title: str) -> str:
    """A title as part of a file name: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


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


def draw_all(exhibits: Sequence[Exhibit], results: Results, folder: Path) -> list[Block]:
    """The blocks of all exhibits in order, their pictures drawn into ``folder``.

    Raises:
        ReplicationError: two exhibits draw a picture of the same name.
    """
    blocks: list[Block] = []
    drawn: set[Path] = set()
    for exhibit in exhibits:
        made = exhibit.draw(results, folder)
        paths = [block.path for block in made if isinstance(block, Figure)]
        if twice := drawn.intersection(paths):
            raise ReplicationError(f"two figures of the report are drawn to {min(twice).name}; change a title of one.")
        drawn.update(paths)
        blocks += made
    return blocks
