"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import LearningCurves
from shared.tasks.classification.figures import CURVES, HeatRows, HeatTexts

PANELS = {
    "Self-attention and pooling": ["attention", "max-matched", "max", "cnn"],
    "Twice the updates": ["attention", "attention-twice", "max-matched", "max-matched-twice"],
}
FIGURES = [
    HeatTexts(
        "attention", "What the self-attentive model attends to; the words that decide the class are underlined."
    ),
    HeatTexts("max-matched", "Where the maxima of the LSTM with max pooling lie, in the same texts."),
    HeatRows(
        ["few-attention", "few-penalty-0"],
        "Single rows of A on one generated text, with the penalty and without it.",
        claim="L17-C3", counterpart="Figure 2",
    ),
    HeatRows(
        ["imdb-penalty-tenth", "imdb-penalty-0"],
        "Single rows of A on one review, with a penalty that acts on them and without it.",
        claim="L17-C3", counterpart="Figure 2",
    ),
    HeatTexts(
        "imdb-penalty-tenth",
        "What the self-attentive model attends to in reviews with a penalty that acts, all rows together.",
        claim="L17-C4", counterpart="Figure 3",
    ),
    LearningCurves(PANELS, CURVES),
]  # fmt: skip
