"""The figures and tables of language-modelling papers, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from shared.reports.document import Block, Figure
from shared.reports.exhibits import Exhibit, OfPanels, OfVariant, OfVariants, Results, first_run
from shared.reports.explorer import Explored


class _ByPlace(OfPanels):
    """Figures of one quantity of every variant against another, with tables.

    Attributes:
        figure: of :mod:`shared.tasks.language.memory_figures`.
    """

    figure: ClassVar[str]

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each panel that has the numbers."""
        from shared.tasks.language import memory_figures

        figure: memory_figures.MemoryFigure = getattr(memory_figures, self.figure)
        return list(figure.blocks(results, folder, self.panels))


class MemoryLengths(_ByPlace):
    """Figures ``loss_by_memory_<panel>.png`` of the loss against the length of the memory, with tables."""

    figure = "BY_MEMORY"


class SegmentPositions(_ByPlace):
    """Figures ``loss_by_position_<panel>.png`` of the loss by the place in the segment, with tables."""

    figure = "BY_POSITION"


class RecallDistances(_ByPlace):
    """Figures ``recall_by_distance_<panel>.png`` of the share of repeated words that are recalled, with tables."""

    figure = "BY_DISTANCE"


class ContextLengths(OfPanels):
    """Figures ``contexts_<group>.png`` and tables of relative effective context lengths, which it adds to the results.

    Its panels are groups of variants whose lengths are found together: the metrics ``recl_<group>_<100 r>``.
    """

    def measures(self) -> Sequence[str]:
        """The lengths of every group."""
        from shared.tasks.language.measures import RATIOS

        return [f"recl_{group}_{percent}" for group in self.panels for percent in RATIOS]

    def completed(self, results: Results) -> Results:
        """The results with the lengths of every group."""
        from shared.tasks.language.context_lengths import with_context_lengths

        return with_context_lengths(results, self.panels)

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each group of which two variants measured losses by context."""
        from shared.tasks.language.context_length_figures import context_blocks

        return context_blocks(results, folder, self.panels)


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


class AttentionToText(OfVariant):
    """A figure ``attention_<variant>.png`` of what every head attends to before a word, in memory and segment."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        from shared.tasks.language.attention_figures import SAID, draw_attention, maps_of_texts, read_kept

        run, path = first_run(results, self.variant), folder / f"attention_{self.variant}.png"
        kept = read_kept(run.attention(run.seeds[0])) if run is not None else []
        if not kept:
            return ()
        draw_attention(kept[0], path)
        return [Explored(path, f"{self.caption.rstrip('.')}. {SAID}", maps=maps_of_texts(self.variant, kept))]


class Samples(OfVariants):
    """Tables of texts that models (of their first seeds) wrote, beside what they were to continue."""

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A table for all variants that continue the same beginnings in the same way."""
        from shared.tasks.language.sample_texts import sample_tables

        return sample_tables(results, self.shown)
