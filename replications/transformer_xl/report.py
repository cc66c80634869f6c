"""What the report of this paper shows beside the tables that every report has."""

from replications.transformer_xl import figures
from replications.transformer_xl.texts import AttentionToText, Samples
from shared.reports.curves import LearningCurves

FIGURES = [
    figures.MemoryLengths({
        "Characters of the Bible": ["xl", "shaw", "absolute-memory"],
        "Generated text": ["recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute-memory"],
        "Characters of WikiText-2": ["characters-xl", "characters-no-memory"],
        "Penn Treebank": ["ptb-xl", "ptb-xl-twice", "ptb-no-memory", "ptb-shaw"],
        "Penn Treebank, absolute positions": ["ptb-absolute-memory"],
        "WikiText-103": ["wikitext103-base"],
    }, claim="D19-C4", counterpart="Table 6"),
    figures.SegmentPositions({
        "Characters of the Bible": ["xl", "lstm"],
        "Unrelated lines, words": ["sentences-xl", "sentences-no-memory"],
    }, claim="D19-C2"),
    figures.RecallDistances({
        "Facts recalled in generated text": [
            "recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute", "recall-absolute-memory", "recall-lstm",
        ],
    }, claim="D19-C5"),
    AttentionToText("recall-xl", "From a question to the fact that answers it, in memory"),
    AttentionToText("ptb-xl", "A place of Penn Treebank"),
    figures.ContextLengths({
        "bible": ["xl", "shaw", "lstm"],
        "recall": ["recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute", "recall-lstm"],
        "ptb": ["contexts-xl", "contexts-no-memory", "contexts-lstm"],
        "wikitext103": [
            "wikitext103-ablation", "wikitext103-ablation-no-memory", "wikitext103-ablation-shaw",
            "wikitext103-ablation-absolute-half",
        ],
    }, claim="D19-C5", counterpart="Table 8"),
    figures.EvaluationSpeed("evaluation-speed", claim="D19-C6", counterpart="Table 9"),
    Samples(["xl", "sentences-xl", "ptb-xl", "characters-xl", "wikitext103-base"]),
    LearningCurves({
        "Characters of the Bible": ["xl", "shaw", "absolute-memory", "lstm"],
        "Generated text": [
            "recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute", "recall-absolute-memory", "recall-lstm",
        ],
        "Unrelated lines": ["sentences-xl", "sentences-no-memory"],
    }),
]  # fmt: skip
