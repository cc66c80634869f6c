"""The measures of captions: against references, against the scene, and of where attention lies in the image."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from shared.metrics.captioning import corpus_meteor
from shared.metrics.quantities import Measure, Statistics, entries, mean, per_cent, share, share_of_any, where_carried
from shared.metrics.registry import register
from shared.metrics.translation import corpus_bleu


def _caption(name: str) -> Statistics:
    return where_carried(lambda example: example["caption"][name])


def _less(within: str, one: str, other: str, words: str) -> Statistics:
    """The difference of two sums over the words of an image's captions that name an object; and their number."""
    return where_carried(lambda e: (e[within][one] - e[within][other], e[within][words]))


def _gate(*kinds: str) -> Statistics:
    """Of the mean gate at an image's symbols of the first kind, less that of the second if there is one."""

    def statistics(example: Mapping[str, Any]) -> tuple[float, float] | None:
        gate = example["gate"]
        if not all(gate[kind][1] for kind in kinds):
            return None
        first, *others = (gate[kind][0] / gate[kind][1] for kind in kinds)
        return first - sum(others), 1.0

    return where_carried(statistics)


def _bleu(title: str, **options: Any) -> Measure:
    corpus = partial(corpus_bleu, smooth=False, **options)
    return Measure(title, "BLEU", 2, _caption("bleu"), corpus, 100.0, better="higher")


def _score(title: str, name: str, most: float = 100.0) -> Measure:
    """The mean over images of a score of each, times 100."""
    return per_cent(title, mean(name, "caption"), unit=title, most=most)


_attention = partial(share, theme="attention")
_regions, _own_regions = (partial(entries, within) for within in ("regions", "generated_regions"))
_COMPARED = ("named", "others", "compared")  # of the object named and of others; images with one object give zeros
_THING = "Attention on the thing named less that on another thing"
register({
    **{f"bleu{n}": _bleu(f"BLEU-{n}, no brevity penalty", orders=n, brevity_penalty=False) for n in range(1, 5)},
    "bleu4_penalised": _bleu("BLEU-4"),
    "meteor": Measure("METEOR", "METEOR", 2, _caption("meteor"), corpus_meteor, 100.0, better="higher"),
    "rouge_l": _score("ROUGE-L", "rouge_l"),
    "cider": _score("CIDEr", "cider", 1000.0),
    "spice": _score("SPICE", "spice"),
    "object_recall": share("Objects of the scene named", entries("truth", "named", "objects")),
    "object_precision": share("Named objects that are there", entries("truth", "right", "mentioned"), share_of_any),
    "relation_accuracy": share("Statements that hold", entries("truth", "true", "relations"), share_of_any),
    "truth": per_cent("Captions entirely true", mean("all_true", "truth")),
    "attention_correctness": _attention("Attention correctness, weight inside the box", _regions("mass", "words")),
    "attention_correctness_chance": _attention(
        "Attention correctness by chance", _regions("area", "words"), better=None
    ),
    "attention_gain": _attention("Attention correctness above chance", _less("regions", "mass", "area", "words")),
    "attention_contrast": _attention(_THING, _less("regions", *_COMPARED), share_of_any),
    "pointing_accuracy": _attention("Pointing accuracy", _regions("hits", "words")),
    "pointing_accuracy_chance": _attention("Pointing accuracy by chance", _regions("centres", "words"), better=None),
    "pointing_gain": _attention("Pointing accuracy above chance", _less("regions", "hits", "centres", "words")),
    "generated_correctness": _attention(
        "Attention correctness in own captions", _own_regions("mass", "words"), share_of_any
    ),
    "generated_contrast": _attention(
        f"{_THING}, in own captions", _less("generated_regions", *_COMPARED), share_of_any
    ),
    "gate_content": _attention("Gate β at words that name objects", _gate("content"), better=None),
    "gate_function": _attention("Gate β at other words", _gate("function"), better=None),
    "gate_end": _attention("Gate β at the end symbol", _gate("end"), better=None),
    "gate_difference": _attention(
        "Gate β, words that name objects less other words", _gate("content", "function"), better=None
    ),
})  # fmt: skip
