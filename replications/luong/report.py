"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from shared.reports.learning_curves import LearningCurves
from shared.tasks.translation.figures import SentenceScores, SideBySide

PANELS = {
    "The ladder where neighbours change places": [
        "swaps-base", "swaps-reverse", "swaps-location", "swaps-location-feed", "swaps-local-p-general-feed",
    ],
    "Architectures where neighbours change places": [
        "swaps-location", "swaps-dot", "swaps-general", "swaps-concat", "swaps-local-m-general",
        "swaps-local-p-dot", "swaps-local-p-general",
    ],
    "Without input feeding where halves change places": [
        "halves-reverse", "halves-location", "halves-dot", "halves-general", "halves-local-m-general",
        "halves-local-p-general",
    ],
    "With and without input feeding where halves change places": [
        "halves-location", "halves-location-feed", "halves-dot", "halves-dot-feed", "halves-local-p-general",
        "halves-local-p-general-feed",
    ],
    "The ladder on real text": [
        "base", "base-reverse", "base-reverse-dropout", "global-location", "global-location-feed",
        "local-m-general", "local-p-general-feed",
    ],
    "Architectures on real text, with input feeding": [
        "global-location-feed", "global-dot-feed", "global-general-feed", "local-m-dot-feed",
        "local-m-general-feed", "local-p-dot-feed", "local-p-general-feed",
    ],
}  # fmt: skip
FIGURES = [
    SentenceScores(PANELS),
    SideBySide(
        "Global and local attention where neighbours change places; the true alignment is marked.",
        ["swaps-dot", "swaps-local-m-general", "swaps-local-p-general"],
    ),
    SideBySide(
        "Global and local attention where halves change places; the true alignment is marked.",
        ["halves-general", "halves-location-feed", "halves-local-p-general"],
    ),
    SideBySide(
        "Global and local attention on real text.", ["global-location", "local-m-general", "local-p-general-feed"]
    ),
    SideBySide(
        "Greek to English, with the alignment that people made.",
        ["gold-dot", "gold-local-m-general", "gold-local-p-general"],
    ),
    LearningCurves(PANELS),
]
