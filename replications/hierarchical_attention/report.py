"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import LearningCurves
from shared.tasks.classification.figures import CURVES, HeatTexts

FIGURES = [
    HeatTexts(
        "attention",
        "What a word weighs: in its sentence, times what that weighs. The sentence that decides, where known, "
        "is underlined. The paper draws the root of the sentence's weight times that of the word.",
        claim="Y16-C4", counterpart="Figures 5 and 6",
    ),
    HeatTexts(
        "words-alone", "The same, where a word's weight in its sentence depends on the word alone.",
        claim="Y16-C5", counterpart="Figures 3 and 4",
    ),
    LearningCurves({
        "Attention and pooling": ["attention", "average", "maximum", "words-alone"],
        "Sentences or none": ["attention", "flat-attention", "flat-average", "flat-maximum"],
        "Twice the updates": ["attention", "attention-twice", "average", "average-twice", "flat-attention-twice"],
    }, CURVES),
]  # fmt: skip
