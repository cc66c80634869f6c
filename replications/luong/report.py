"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import LearningCurves
from shared.tasks.translation.report import AlignmentOffsets, ScoresByLength, SideBySide

PANELS = {
    "Where neighbours change places": [
        "swaps-base", "swaps-reverse", "swaps-dot", "swaps-dot-forward", "swaps-location-forward",
        "swaps-local-m-general-forward",
    ],
    "Where halves change places": ["halves-reverse", "halves-location", "halves-general"],
    "Without attention and dropout on real text": ["base", "base-reverse"],
    "The ladder on real text": [
        "base-reverse-dropout", "global-location", "global-location-feed", "local-p-general-feed",
    ],
    "Twice the updates on real text": [
        "global-location", "global-location-feed", "global-location-twice", "global-location-feed-twice",
    ],
    "Architectures on real text, with input feeding": [
        "global-location-feed", "global-dot-feed", "global-general-feed", "local-m-dot-feed",
        "local-m-general-feed", "local-p-dot-feed", "local-p-general-feed",
    ],
}  # fmt: skip
FIGURES = [
    ScoresByLength(PANELS, claim="L15-C6", counterpart="Figure 6"),
    SideBySide(
        ["swaps-dot-forward", "swaps-location-forward", "swaps-local-m-general-forward"],
        "Global and local attention where neighbours change places; the true alignment is marked.",
        claim="L15-C7",
    ),
    SideBySide(
        ["halves-general", "halves-location"],
        "Scores of content and of location where halves change places; the true alignment is marked.",
        claim="L15-C4",
    ),
    SideBySide(["global-location", "local-p-general-feed"], "Global and local attention on real text."),
    SideBySide(
        ["gold-location", "gold-local-m-general", "gold-local-p-general"],
        "Greek to English, with the alignment that people made.",
        claim="L15-C7",
    ),
    AlignmentOffsets(PANELS, claim="L15-C7"),
    LearningCurves(PANELS),
]
