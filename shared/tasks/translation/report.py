"""What reports of translation papers show: scores by source length, and where attention peaks."""

from __future__ import annotations

from collections.abc import Sequence

import shared.tasks.translation.measures  # noqa: F401  registers BLEU, the brackets' and the alignment scores
from shared.claims.results import RunResults
from shared.metrics.registry import measure
from shared.reports.document import Block, Paragraph, Table, Text, plain, signed
from shared.reports.kind import KindReport
from shared.reports.learning_curves import LearningCurves
from shared.reports.naming import called
from shared.tasks.translation.figures import AlignmentOffsets, ScoresByLength
from shared.tasks.translation.lengths import alignment_offsets, also_longer, length_bins, score_by_length, scored_by

INNER = (-2, -1, 0, 1, 2)
"""Offsets from the gold source word that have columns of their own."""


def by_length(runs: Sequence[RunResults]) -> list[Block]:
    """A table of the score by source length; nothing of variants that translate nothing."""
    name, runs = scored_by(runs)
    if not runs:
        return []
    shown, bins = measure(name), length_bins(runs[0])
    scored = {run.variant: score_by_length(run, shown, bins) for run in runs}
    counts = next(iter(scored.values()))
    heads = (f"{s.bin[0]}–{s.bin[1]} (n = {s.n})" for s in counts)
    rows: list[list[Text]] = [[called(one), *(plain(s.value, 1) for s in scores)] for one, scores in scored.items()]
    return [Table((f"{shown.title} by source length", *heads), rows, "l" + "r" * len(counts))]


def offsets(runs: Sequence[RunResults]) -> list[Block]:
    """A table of the share of target words by where attention peaks; nothing of variants without alignments."""
    shares = {run.variant: by_offset for run in runs if (by_offset := alignment_offsets(run))}
    rows: list[list[Text]] = [
        [
            called(name),
            *(plain(by_offset.get(offset, 0.0), 3) for offset in INNER),
            plain(sum(share for offset, share in by_offset.items() if offset not in INNER), 3),
        ]
        for name, by_offset in shares.items()
    ]
    heads = ["0" if offset == 0 else signed(offset, 0) for offset in INNER]
    return [Table(("Attention peak minus gold position", *heads, "further"), rows, "lrrrrrr")] if rows else []


def tables(runs: Sequence[RunResults]) -> list[Block]:
    """Both tables of the variants of one task."""
    found = [*by_length(runs), *offsets(runs)]
    said = also_longer(runs) if found else ""
    return [*found, Paragraph(said.strip())] if said else found


REPORT = KindReport(tables=tables, figures=(ScoresByLength(), AlignmentOffsets(), LearningCurves()))
