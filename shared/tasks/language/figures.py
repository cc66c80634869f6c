"""The figures and tables of language-modelling papers, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.reports.document import Block, Figure
from shared.reports.exhibits import Exhibit, Results, flattened

Panels = Mapping[str, Sequence[str]]
"""Title to the variants of one task, at most seven, that share a figure."""


@dataclass(frozen=True)
class MemoryLengths(Exhibit):
    """Figures ``loss_by_memory_<panel>.png`` of the loss against the length of the memory, with tables."""

    panels: Panels

    def variants(self) -> Sequence[str]:
        """Those of all panels."""
        return flattened(self.panels)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each panel that was scored at several lengths."""
        from shared.tasks.language.memory_figures import BY_MEMORY

        return list(BY_MEMORY.blocks(results, folder, self.panels))


@dataclass(frozen=True)
class SegmentPositions(Exhibit):
    """Figures ``loss_by_position_<panel>.png`` of the loss by the place in the segment, with tables."""

    panels: Panels

    def variants(self) -> Sequence[str]:
        """Those of all panels."""
        return flattened(self.panels)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each panel."""
        from shared.tasks.language.memory_figures import BY_POSITION

        return list(BY_POSITION.blocks(results, folder, self.panels))


@dataclass(frozen=True)
class RecallDistances(Exhibit):
    """Figures ``recall_by_distance_<panel>.png`` of the share of repeated words that are recalled, with tables."""

    panels: Panels

    def variants(self) -> Sequence[str]:
        """Those of all panels."""
        return flattened(self.panels)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each panel."""
        from shared.tasks.language.memory_figures import BY_DISTANCE

        return list(BY_DISTANCE.blocks(results, folder, self.panels))


@dataclass(frozen=True)
class ContextLengths(Exhibit):
    """Figures ``contexts_<group>.png`` and tables of relative effective context lengths, which it adds to the results.

    Attributes:
        groups: name to the variants whose lengths are found together: the metrics ``recl_<name>_<100 r>``.
    """

    groups: Mapping[str, Sequence[str]]

    def variants(self) -> Sequence[str]:
        """Those of all groups."""
        return flattened(self.groups)

    def measures(self) -> Sequence[str]:
        """The lengths of every group."""
        from shared.tasks.language.measures import RATIOS

        return [f"recl_{group}_{percent}" for group in self.groups for percent in RATIOS]

    def completed(self, results: Results) -> Results:
        """The results with the lengths of every group."""
        from shared.tasks.language.context_lengths import with_context_lengths

        return with_context_lengths(results, self.groups)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each group of which two variants measured losses by context."""
        from shared.tasks.language.context_length_figures import context_blocks

        return context_blocks(results, folder, self.groups)


@dataclass(frozen=True)
class EvaluationSpeed(Exhibit):
    """A figure ``speed_<variant>.png`` of what scoring a symbol costs, with states kept and in sliding windows."""

    variant: str

    def variants(self) -> Sequence[str]:
        """The study."""
        return (self.variant,)

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the study was run."""
        from shared.tasks.language.evaluation_speed import CAPTION, draw_speed

        path = folder / f"speed_{self.variant}.png"
        if self.variant not in results or not draw_speed(results[self.variant], path):
            return ()
        return [Figure(path, f"{self.variant}: {CAPTION[0].lower()}{CAPTION[1:]}")]


@dataclass(frozen=True)
class Samples(Exhibit):
    """Tables of texts that models wrote, beside what they were to continue."""

    shown: Sequence[str]

    def variants(self) -> Sequence[str]:
        """Those shown."""
        return self.shown

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A table for all variants that continue the same beginnings in the same way."""
        from shared.tasks.language.sample_texts import sample_tables

        return sample_tables(results, self.shown)
