"""The figures of translation papers, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.reports.document import SPREAD, Figure
from shared.reports.exhibits import Exhibit, OfPanels, OfVariant, Results, first_run, run_ones
from shared.reports.explorer import Explored
from shared.reports.panels import chosen_panels, panels


class ScoresByLength(OfPanels):
    """Figures ``<measure>_by_length_<panel>.png``: BLEU of panels that translate, the brackets' F1 of those that parse.

    A task that no variant of the panels is of is shown whole.
    """

    def measures(self) -> Sequence[str]:
        """BLEU, and the brackets' F1."""
        return ("bleu", "bracket_f1")

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The score against source length, panel by panel."""
        from shared.tasks.translation.length_figures import scores_by_length
        from shared.tasks.translation.lengths import also_longer, scored_by

        figures = []
        for panel in panels(results, self.panels):
            name, runs = scored_by(panel.runs)
            if runs:
                path = folder / f"{name}_by_length_{panel.name}.png"
                title = "BLEU" if name == "bleu" else "F1 of the brackets"
                scores_by_length(runs, path, name)
                caption = (
                    f"{title} against source length, with 95 % bands over test sentences and seeds.{also_longer(runs)}"
                )
                figures.append(Figure(path, f"{panel.title}. {caption}"))
        return figures


class AlignmentOffsets(OfPanels):
    """Figures ``alignment_offsets_<panel>.png``, of panels with attention and gold alignments.

    A task that no variant of the panels is of is shown whole.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """Where attention peaks, panel by panel."""
        from shared.tasks.translation.length_figures import offset_histogram
        from shared.tasks.translation.lengths import also_longer

        figures = []
        for panel in panels(results, self.panels):
            path = folder / f"alignment_offsets_{panel.name}.png"
            if offset_histogram(panel.runs, path):
                caption = f"Where the attention peaks relative to the gold source word.{also_longer(panel.runs)}"
                figures.append(Figure(path, f"{panel.title}. {caption}"))
        return figures


class Heatmaps(OfVariant):
    """A figure ``alignments_<variant>.png`` of attention on several test sentences."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        from shared.tasks.translation.heatmaps import alignment_heatmaps
        from shared.tasks.translation.maps import maps_of_sentences

        run, path = first_run(results, self.variant), folder / f"alignments_{self.variant}.png"
        if run is None or not alignment_heatmaps(run.attention(run.seeds[0]), path):
            return ()
        return [Explored(path, self.caption, maps=maps_of_sentences({run.variant: run.attention(run.seeds[0])}))]


@dataclass(frozen=True)
class SideBySide(Exhibit):
    """A figure ``alignments_<variant>_<variant>….png`` of the attention of several variants on one test sentence.

    Attributes:
        caption: says what is compared.
        compared: the variants; each shows its first seed.
    """

    caption: str
    compared: Sequence[str]

    def variants(self) -> Sequence[str]:
        """Those compared."""
        return self.compared

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if at least two of the variants have kept their attention."""
        from shared.tasks.translation.heatmaps import compare_alignments
        from shared.tasks.translation.maps import maps_of_sentences

        sources = {run.variant: run.attention(run.seeds[0]) for run in run_ones(results, self.compared)}
        path = folder / f"alignments_{'_'.join(self.compared)}.png"
        if not compare_alignments(sources, path):
            return ()
        caption = f"{self.caption} Beige: a weight of exactly zero."
        return [Explored(path, caption, maps=maps_of_sentences(sources))]


class Heads(OfVariant):
    """Figures ``heads_<variant>_<kind>.png`` of every head of every layer on one sentence."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each kind of attention, if the variant has kept its heads."""
        from shared.tasks.translation.heads import SAID, draw_heads
        from shared.tasks.translation.maps import maps_of_heads

        run = first_run(results, self.variant)
        if run is None:
            return ()
        paths = {kind: folder / f"heads_{run.variant}_{kind}.png" for kind in SAID}
        source = run.heads(run.seeds[0])
        drawn = [kind for kind, path in paths.items() if draw_heads(source, kind, path)]
        return [
            Explored(
                paths[kind], f"{self.caption.rstrip('.')}. {SAID[kind]}", maps=maps_of_heads(run.variant, source, kind)
            )
            for kind in drawn
        ]


class LossByOperations(OfPanels):
    """Figures ``loss_by_operations_<panel>.png``: validation loss against the operations of training so far."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel of which any variant counted its operations."""
        from shared.reports.sections import CONVENTION
        from shared.tasks.translation.operations import loss_by_operations

        figures = []
        for panel in chosen_panels(results, self.panels):
            path = folder / f"loss_by_operations_{panel.name}.png"
            if loss_by_operations(panel.runs, path):
                caption = "Loss on the validation split against the operations of training so far"
                figures.append(Figure(path, f"{panel.title}. {caption}: {SPREAD} {CONVENTION}"))
        return figures
