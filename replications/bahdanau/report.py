"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from shared.reports.learning_curves import LearningCurves
from shared.tasks.translation.figures import Heatmaps, SentenceScores

FIGURES = [
    SentenceScores(),
    Heatmaps(
        "rnnsearch-50",
        "RNNsearch-50 on the generated task, as the paper's Figure 3; the true alignment is marked.",
    ),
    Heatmaps("corpus-rnnsearch", "RNNsearch on real sentences, as the paper's Figure 3."),
    LearningCurves(),
]
