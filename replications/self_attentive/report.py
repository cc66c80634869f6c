"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from replications.self_attentive.sweeps import Sweep
from shared.reports.curves import LearningCurves
from shared.reports.exhibits import Shows
from shared.tasks.classification.figures import CURVES, HeatRows, HeatTexts

PANELS = {
    "Self-attention and pooling": ["attention", "penalty-0", "max-matched", "max", "mean", "cnn"],
    "Twice the updates": ["attention", "attention-twice", "max-matched", "max-matched-twice"],
    "Rows, without the penalty": ["rows-1", "rows-1-matched", "rows-5", "penalty-0", "rows-30"],
    "The penalty": ["penalty-0", "penalty-code", "attention", "penalty-tenth", "penalty-1"],
}
FIGURES = [
    Shows(
        Sweep(
            title="The number of rows, without the penalty",
            x="r",
            points={1: "rows-1", 5: "rows-5", 10: "penalty-0", 30: "rows-30"},
            metrics=("accuracy", "evidence_mass", "redundancy"),
        ),
        claim="L17-C6", counterpart="figure on the effect of r",
    ),
    Shows(
        HeatTexts(
            "attention", "What the self-attentive model attends to; the words that decide the class are underlined."
        ),
    ),
    Shows(HeatTexts("max-matched", "Where the maxima of the LSTM with max pooling lie, in the same texts.")),
    Shows(
        HeatRows(
            ["few-attention", "few-penalty-0"],
            "Single rows of A on one generated text, with the penalty and without it.",
        ),
        claim="L17-C3", counterpart="Figure 2",
    ),
    Shows(
        HeatRows(
            ["imdb-penalty-tenth", "imdb-penalty-0"],
            "Single rows of A on one review, with a penalty that acts on them and without it.",
        ),
        claim="L17-C3", counterpart="Figure 2",
    ),
    Shows(
        HeatTexts(
            "imdb-penalty-tenth",
            "What the self-attentive model attends to in reviews with a penalty that acts, all rows together.",
        ),
        claim="L17-C4", counterpart="Figure 3",
    ),
    Shows(LearningCurves(PANELS, CURVES)),
]  # fmt: skip
