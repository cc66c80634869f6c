"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import LearningCurves
from shared.tasks.translation.report import AlignmentOffsets, Heatmaps, ScoresByLength

PANELS = {
    "The models of the paper": [
        "rnnsearch-50", "rnnsearch-50-half", "rnnsearch-50-long", "rnnsearch-30", "rnnencdec-50", "rnnencdec-50-long",
        "rnnencdec-30",
    ],
    "The same of real text": ["corpus-rnnsearch", "rnnsearch-50-half", "rnnsearch-30", "corpus-rnnencdec"],
    "Which word a state reads": ["rnnsearch-50", "rnnsearch-appendix"],
}  # fmt: skip
FIGURES = [
    ScoresByLength(PANELS, claim="B15-C3", counterpart="Figure 2"),
    Heatmaps(
        "rnnsearch-50", "What RNNsearch-50 attends to in generated sentences; the true alignment is marked.",
        claim="B15-C6", counterpart="Figure 3",
    ),
    Heatmaps(
        "corpus-rnnsearch", "What RNNsearch attends to in real sentences.", claim="B15-C6", counterpart="Figure 3",
    ),
    AlignmentOffsets(PANELS, claim="B15-C6"),
    LearningCurves(PANELS),
]  # fmt: skip
