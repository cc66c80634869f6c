"""What the report of this paper shows beside its tables; nothing here is part of training."""

from __future__ import annotations

ATTENTION_LENGTHS = {
    "Characters of the Bible": ["xl", "no-memory", "shaw", "shaw-no-memory", "absolute-memory"],
    "Generated text": ["recall-xl", "recall-no-memory", "recall-shaw"],
    "WikiText-2": ["wikitext2-xl", "wikitext2-no-memory"],
    "Penn Treebank": ["ptb-xl", "ptb-no-memory"],
    "WikiText-103": ["wikitext103-base"],
}
POSITIONS = {
    "Characters of the Bible": ["xl", "no-memory", "lstm"],
    "Shuffled verses, words": ["sentences-xl", "sentences-no-memory", "sentences-shaw"],
}
DISTANCES = {
    "Facts recalled in generated text": [
        "recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute", "recall-lstm",
    ],
}  # fmt: skip
CONTEXTS = {
    "bible": ["xl", "no-memory", "shaw", "absolute", "lstm"],
    "recall": ["recall-xl", "recall-no-memory", "recall-shaw", "recall-absolute", "recall-lstm"],
    "wikitext2": ["wikitext2-xl", "wikitext2-no-memory", "wikitext2-absolute", "wikitext2-lstm"],
    "wikitext103": [
        "wikitext103-ablation", "wikitext103-ablation-no-memory", "wikitext103-ablation-shaw",
        "wikitext103-ablation-absolute-half",
    ],
}  # fmt: skip
SAMPLES = ["xl", "sentences-xl", "ptb-xl", "wikitext2-xl", "wikitext103-base"]
PANELS = {
    "Characters of the Bible": ["xl", "no-memory", "shaw", "shaw-no-memory", "absolute", "absolute-memory", "lstm"],
}
