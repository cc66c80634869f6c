"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import LearningCurves
from shared.tasks.translation.report import ScoresByLength

FIGURES = [
    LearningCurves({
        "Relative and absolute positions": ["relative", "absolute", "clip-0"],
        "Distances clipped at k": ["clip-0", "clip-1", "clip-2", "clip-4", "relative"],
        "Positions of keys or of values": ["relative", "keys-alone", "values-alone", "clip-0"],
    }, claim="S18-C2", counterpart="Table 2"),
    ScoresByLength({
        "Relative and absolute positions": ["relative", "clip-4", "absolute"],
        "Trained on short captions": ["short-clip-4", "short-absolute"],
    }, claim="S18-C4"),
]  # fmt: skip
