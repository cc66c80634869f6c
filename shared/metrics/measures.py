"""The quantities that claims and reports speak of, and how each follows from per-example statistics.

A measure takes a few additive numbers from every test example; the corpus value is a function of their sums.
So a bootstrap can recompute any corpus-level score from resampled examples by one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from shared.metrics import caption_scores
from shared.metrics.alignment import agreement
from shared.metrics.quantities import (
    Array,
    Corpus,
    Example,
    Measure,
    Statistics,
    percentage,
    perplexity,
    ratio,
)
from shared.metrics.translation import corpus_bleu
from shared.tasks.language import measures as language_measures
from shared.tasks.sequences import measures as sequence_measures


def share_of_any(sums: Array) -> Array:
    """Share of a count, (..., 2) to (...); 0 where there is nothing to count, as a model may say nothing."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))


def bracket_f1(sums: Array) -> Array:
    """Harmonic mean of precision and recall, per cent: matched, predicted and gold brackets (..., 3) to (...)."""
    return percentage(np.stack((2 * sums[..., 0], sums[..., 1] + sums[..., 2]), axis=-1))


def bracket_precision(sums: Array) -> Array:
    """Share of the predicted brackets that match, per cent, from the same; 0 where none is predicted."""
    matched, predicted, gold = np.moveaxis(sums, -1, 0)
    return percentage(np.stack((matched, np.maximum(predicted, np.minimum(gold, 1))), axis=-1))


def bracket_recall(sums: Array) -> Array:
    """Share of the gold brackets that match, per cent, from the same."""
    return percentage(sums[..., ::2])


def _field(name: str) -> Statistics:
    return lambda example: example.get(name)


def _caption(name: str) -> Statistics:
    return lambda example: (example.get("caption") or {}).get(name)


def _mean(name: str, within: str | None = None) -> Statistics:
    """Of the number ``name`` of an example, or of its entry ``within``; it may have neither."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example if within is None else example.get(within) or {}
        return (found[name], 1.0) if name in found else None

    return statistics


def _of(entry: str, *names: str) -> Statistics:
    """Of the numbers of these names in an example's entry; it may have none."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get(entry)
        return None if found is None else [found[name] for name in names]

    return statistics


def _above_chance(name: str, chance: str) -> Statistics:
    """Of the words of an image's captions that name something with a box."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get("regions")
        return None if found is None else (found[name] - found[chance], found["words"])

    return statistics


def _contrast(within: str) -> Statistics:
    """Of the words that name something in an image of several things; where there is one, nothing is compared."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get(within) or {}
        return (found["named"] - found["others"], found["compared"]) if "compared" in found else None

    return statistics


def _gate(*kinds: str) -> Statistics:
    """Of the mean gate at an image's symbols of the first kind, less that of the second if there is one."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get("gate")
        if found is None or not all(found[kind][1] for kind in kinds):
            return None
        first, *others = (found[kind][0] / found[kind][1] for kind in kinds)
        return first - sum(others), 1.0

    return statistics


def _nll(example: Example) -> Sequence[float] | None:
    """Of what is predicted from a source; the losses of running text are per unit of it, and measures of their own."""
    return (example["nll"], example["tokens"]) if "nll" in example and "units" not in example else None


def _per_token(example: Example) -> Sequence[float] | None:
    """The same, or of a sequence of symbols."""
    return _nll(example) or sequence_measures.nats(example)


def _nll_per_sentence(example: Example) -> Sequence[float] | None:
    """Of the one reference, or of all that an image has."""
    found = _nll(example)
    return None if found is None else (found[0], len(example.get("references", [""])))


def _links(example: Example) -> Sequence[float] | None:
    return (example.get("alignment") or {}).get("aer")


def _agreement(name: str) -> Corpus:
    return lambda sums: np.asarray(getattr(agreement(sums), name))


def _evidence(name: str, per: str) -> Statistics:
    """Of the ratio of two numbers of a text's evidence; every text counts alike."""

    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get("evidence")
        return None if found is None else (found[name] / found[per], 1.0)

    return statistics


def _deletion_effect(example: Example) -> Sequence[float] | None:
    found = example.get("deletion")
    return None if found is None else (found["random"] - found["top"], 1.0)


def _known(example: Example) -> Sequence[float] | None:
    """Of sentences without an unknown word in source or reference (Bahdanau et al. 2015, table 1)."""
    return None if example.get("unknown") else example.get("bleu_known")


def _bleu(field: str, title: str, *, smooth: bool = True) -> dict[str, Measure]:
    """BLEU of the statistics in ``field``; multi-bleu.perl, which the "tokenized" kinds stand for, does not smooth."""
    corpus = corpus_bleu if smooth else partial(corpus_bleu, smooth=False)
    return {field: Measure(title, "BLEU", 2, _field(field), corpus, 100.0)}


def _caption_bleu(title: str, **options: Any) -> Measure:
    return Measure(title, "BLEU", 2, _caption("bleu"), partial(caption_scores.corpus_bleu, **options), 100.0)


def _share(title: str, statistics: Statistics, corpus: Corpus = ratio, *, theme: str = "score") -> Measure:
    return Measure(title, "", 3, statistics, corpus, 1.0, theme)


def _percentage(title: str, statistics: Statistics, *, theme: str = "score") -> Measure:
    return Measure(title, "%", 2, statistics, percentage, 100.0, theme)


def _attention(title: str, statistics: Statistics, corpus: Corpus = ratio) -> Measure:
    return _share(title, statistics, corpus, theme="attention")


MEASURES: dict[str, Measure] = {
    **_bleu("bleu", "BLEU"),
    **_bleu("bleu_replaced", "BLEU, UNK replaced"),
    **_bleu("bleu_tokenized", "BLEU, Moses-tokenized", smooth=False),
    **_bleu("bleu_tokenized_replaced", "BLEU, Moses-tokenized, UNK replaced", smooth=False),
    **_bleu("bleu_compounds", "BLEU, compounds split", smooth=False),
    **_bleu("bleu_compounds_replaced", "BLEU, compounds split, UNK replaced", smooth=False),
    "bleu_known": Measure("BLEU, no UNK", "BLEU", 2, _known, corpus_bleu, 100.0),
    "chrf": Measure("chrF", "chrF", 2, most=100.0),
    "nll_per_token": Measure("NLL per {token}, nats", "nats", 3, _nll, ratio),
    "nll_per_sentence": Measure("NLL per sentence, nats", "nats", 2, _nll_per_sentence, ratio),
    "perplexity": Measure("Perplexity per {token}", "", 2, _per_token, perplexity),
    **language_measures.MEASURES,
    **sequence_measures.MEASURES,
    **{
        f"bleu{n}": _caption_bleu(f"BLEU-{n}, no brevity penalty", orders=n, brevity_penalty=False) for n in range(1, 5)
    },
    "bleu4_penalised": _caption_bleu("BLEU-4"),
    "meteor": Measure("METEOR", "METEOR", 2, _caption("meteor"), caption_scores.corpus_meteor, 100.0),
    "rouge_l": Measure("ROUGE-L", "ROUGE-L", 2, _mean("rouge_l", "caption"), percentage, 100.0),
    "cider": Measure("CIDEr", "CIDEr", 2, _mean("cider", "caption"), percentage, 1000.0),
    "spice": Measure("SPICE", "SPICE", 2, _mean("spice", "caption"), percentage, 100.0),
    "object_recall": _share("Objects of the scene named", _of("truth", "named", "objects")),
    "object_precision": _share("Named objects that are there", _of("truth", "right", "mentioned"), share_of_any),
    "relation_accuracy": _share("Statements that hold", _of("truth", "true", "relations"), share_of_any),
    "truth": _percentage("Captions entirely true", _mean("all_true", "truth")),
    "exact_match": _share("Exact match", _mean("exact")),
    "accuracy": _percentage("Accuracy", _mean("correct")),
    "cross_entropy": Measure("Cross-entropy per text, nats", "nats", 3, _mean("cross_entropy"), ratio),
    "bracket_f1": Measure("Bracket F1", "F1", 2, _field("brackets"), bracket_f1, 100.0),
    "bracket_precision": Measure("Bracket precision", "%", 2, _field("brackets"), bracket_precision, 100.0),
    "bracket_recall": Measure("Bracket recall", "%", 2, _field("brackets"), bracket_recall, 100.0),
    "alignment_accuracy": _share("Alignment accuracy", _of("alignment", "hits", "words"), theme="alignment"),
    "alignment_precision": _share("Alignment precision", _links, _agreement("precision"), theme="alignment"),
    "alignment_recall": _share("Alignment recall", _links, _agreement("recall"), theme="alignment"),
    "aer": _share("AER", _links, _agreement("error_rate"), theme="alignment"),
    "redundancy": _attention("Redundancy of the rows of A", _mean("redundancy", "rows")),
    "focus": _attention("Focus, mean diagonal of AAᵀ", _mean("focus", "rows")),
    "penalty": Measure("‖AAᵀ − I‖²", "", 3, _mean("penalty", "rows"), ratio, theme="attention"),
    "evidence_mass": _attention("Attention on evidence words", _mean("mass", "evidence")),
    "evidence_found": _attention("Share of evidence words found", _evidence("found", "words")),
    "evidence_chance": _attention("Evidence by chance", _evidence("words", "length")),
    "attention_correctness": _attention(
        "Attention correctness, weight inside the box", _of("regions", "mass", "words")
    ),
    "attention_correctness_chance": _attention("Attention correctness by chance", _of("regions", "area", "words")),
    "attention_gain": _attention("Attention correctness above chance", _above_chance("mass", "area")),
    "attention_contrast": _attention(
        "Attention on the thing named less that on another thing", _contrast("regions"), share_of_any
    ),
    "pointing_accuracy": _attention("Pointing accuracy", _of("regions", "hits", "words")),
    "pointing_accuracy_chance": _attention("Pointing accuracy by chance", _of("regions", "centres", "words")),
    "pointing_gain": _attention("Pointing accuracy above chance", _above_chance("hits", "centres")),
    "generated_correctness": _attention(
        "Attention correctness in own captions", _of("generated_regions", "mass", "words"), share_of_any
    ),
    "generated_contrast": _attention(
        "Attention on the thing named less that on another thing, in own captions",
        _contrast("generated_regions"),
        share_of_any,
    ),
    "gate_content": _attention("Gate β at words that name objects", _gate("content")),
    "gate_function": _attention("Gate β at other words", _gate("function")),
    "gate_end": _attention("Gate β at the end symbol", _gate("end")),
    "gate_difference": _attention("Gate β, words that name objects less other words", _gate("content", "function")),
    "accuracy_top_deleted": _percentage(
        "Accuracy, words most attended to deleted", _mean("top", "deletion"), theme="attention"
    ),
    "accuracy_random_deleted": _percentage(
        "Accuracy, random words deleted", _mean("random", "deletion"), theme="attention"
    ),
    "deletion_effect": _percentage(
        "Deletion effect, random less most attended to", _deletion_effect, theme="attention"
    ),
}
"""By name, in the order in which reports show them. ``{token}`` stands for what the run calls its token."""


def corpus_values(examples: Sequence[Example]) -> dict[str, float]:
    """Every measure that the examples carry statistics of, those of families included."""
    measures = MEASURES | language_measures.members(examples) | sequence_measures.members(examples)
    values = {name: of.of(examples) for name, of in measures.items()}
    return {name: value for name, value in values.items() if value is not None}


def known(name: str) -> Measure | None:
    """The measure called ``name``, of `MEASURES` or of a family; None for a number that only metrics.json holds."""
    return MEASURES.get(name) or language_measures.member(name) or sequence_measures.member(name)


def measure(name: str) -> Measure:
    """The measure called ``name``; a number that only metrics.json holds is shown as it is."""
    return known(name) or Measure(name.replace("_", " "))
