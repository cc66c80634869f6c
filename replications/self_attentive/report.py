"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from shared.reports.learning_curves import LearningCurves
from shared.reports.sweeps import Sweep
from shared.tasks.classification.figures import CURVES, HeatRows, HeatTexts

PANELS = {
    "Self-attention and pooling": ["attention", "penalty-0", "max", "max-long", "mean", "cnn"],
    "As many parameters": ["attention", "max-matched", "max", "attention-small", "pruned"],
    "Rows, without the penalty": ["rows-1", "rows-1-matched", "rows-5", "penalty-0", "rows-30"],
    "The penalty": ["penalty-0", "penalty-code", "attention", "penalty-tenth", "penalty-1"],
}
FIGURES = [
    Sweep(
        title="The number of rows, without the penalty",
        x="r",
        points={1: "rows-1", 5: "rows-5", 10: "penalty-0", 30: "rows-30"},
        metrics=("accuracy", "evidence_mass", "redundancy"),
    ),
    Sweep(
        title="The penalty",
        x="Coefficient of P",
        points={0: "penalty-0", 0.01: "penalty-code", 0.03: "attention", 0.1: "penalty-tenth", 1: "penalty-1"},
        metrics=("accuracy", "redundancy", "focus"),
        log=True,
    ),
    HeatTexts("sentiment-attention", "What the self-attentive model attends to in sentences, all rows together."),
    HeatTexts("newsgroups-attention", "The same in posts."),
    HeatTexts("attention", "The same in generated texts; the words that decide the class are underlined."),
    HeatTexts("max", "Where the maxima of the LSTM with max pooling lie, in the same texts."),
    HeatRows(
        "Single rows of A on one sentence, with the penalty and without it.",
        ["sentiment-attention", "sentiment-penalty-0"],
    ),
    HeatRows(
        "Single rows of A on one generated text, by the coefficient of the penalty.",
        ["penalty-0", "penalty-code", "attention", "penalty-1"],
    ),
    LearningCurves(PANELS, CURVES),
]
