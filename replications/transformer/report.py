"""What the report of this paper shows beside the tables that every report has."""

from replications.transformer.figures import Heads, LearningRates, LossByOperations
from shared.reports.curves import LearningCurves
from shared.tasks.translation.report import AlignmentOffsets, Heatmaps, ScoresByLength, SideBySide

ROW_D = "Regularisation (row D)"
PANELS = {
    "Heads and the width of keys (rows A and B)": [
        "base", "heads-1", "heads-half", "heads-2x", "heads-4x", "keys-quarter", "keys-half",
    ],
    "Heads where every word needs five others": ["agreement-base", "agreement-heads-1", "agreement-heads-4x"],
    "Width, and the width of keys, where every word needs five others": [
        "agreement-base", "agreement-width-half", "agreement-width-quarter", "agreement-keys-quarter",
    ],
    "Size (row C)": [
        "base", "layers-third", "layers-two-thirds", "layers-four-thirds", "width-half", "width-2x", "big",
    ],
    "The feed-forward network, and the scale of scores": ["base", "ff-half", "ff-2x", "unscaled"],
    ROW_D: ["base", "dropout-0", "dropout-2x", "smoothing-0", "smoothing-2x"],
    "Positions (row E)": ["base", "learned-positions", "no-positions"],
    "The Transformer and its rivals": ["base", "rnnsearch", "luong"],
    "Real text": [
        "corpus-base", "bahdanau/corpus-rnnsearch", "bahdanau/corpus-rnnencdec", "luong/local-p-general-feed",
    ],
    "Trees": ["parsing-transformer", "parsing-luong"],
}  # fmt: skip
FIGURES = [
    ScoresByLength(PANELS),
    Heatmaps("corpus-base", "The last layer's attention to the source on real sentences, mean over its heads."),
    SideBySide(
        ["base", "rnnsearch", "luong"],
        "Attention to the source, mean over the last layer's heads, beside that of the rivals.",
        claim="V17-C1",
    ),
    SideBySide(
        ["corpus-base", "bahdanau/corpus-rnnsearch", "luong/local-p-general-feed"],
        "Attention to the source of the Transformer, RNNsearch and Luong et al.'s local-p on real sentences.",
        claim="V17-C1",
    ),
    Heads("base", "Every head of the base model on a test sentence"),
    Heads("agreement-base", "Every head of a model whose words each need five others", claim="V17-C2"),
    Heads("corpus-base", "Every head of the base model on real text"),
    Heads("parsing-transformer", "Every head on a sentence and its tree", claim="V17-C9"),
    AlignmentOffsets(PANELS),
    LearningCurves({ROW_D: PANELS[ROW_D]}, only="regularised", claim="V17-C5"),
    LearningCurves({title: names for title, names in PANELS.items() if title != ROW_D}, only="compared"),
    LossByOperations({
        "The noisy language": ["base", "layers-third", "layers-four-thirds", "rnnsearch", "luong"],
        "Real text": [
            "corpus-base", "corpus-big", "bahdanau/corpus-rnnsearch", "bahdanau/corpus-rnnencdec",
            "luong/local-p-general-feed",
        ],
    }, claim="V17-C1", counterpart="Table 2"),
    LossByOperations({"Trees": ["parsing-transformer", "parsing-luong"]}, claim="V17-C9"),
    LearningRates({"The learning rate": ["base", "layers-third", "rnnsearch", "luong"]}),
]  # fmt: skip
