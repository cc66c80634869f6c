"""The measures that several kinds of task have: BLEU, likelihoods, and losses per unit of a text.

A measure takes a few additive numbers from every test example; the corpus value is a function of their sums.
So a bootstrap can recompute any corpus-level score from resampled examples by one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shared.metrics.quantities import Corpus, Example, Measure, Statistics, bits, field, perplexity, ratio
from shared.metrics.registry import register
from shared.metrics.translation import corpus_bleu


def _nll(example: Example) -> Sequence[float] | None:
    """Of targets predicted from a source; losses of running text are per unit, and measures of their own."""
    return (example["nll"], example["tokens"]) if "nll" in example and "units" not in example else None


def _nll_per_token(example: Example) -> Sequence[float] | None:
    """As above, or of a separate sequence whose hits are counted; sequences of pixels have bits alone."""
    return _nll(example) or ((example["nll"], example["tokens"]) if "hits" in example else None)


def _nll_per_sentence(example: Example) -> Sequence[float] | None:
    """Of the one reference, or of all that an image has."""
    sums = _nll(example)
    return None if sums is None else (sums[0], len(example.get("references", [""])))


def _loss(*, words: bool) -> Statistics:
    """Of texts that are counted in words, or of all others."""

    def statistics(example: Example) -> Sequence[float] | None:
        fits = "unit" in example and (example["unit"] == "word") == words
        return (example["nll"], example["units"]) if fits else None

    return statistics


def _known(example: Example) -> Sequence[float] | None:
    """Of sentences without an unknown word in source or reference (Bahdanau et al. 2015, table 1)."""
    return None if example.get("unknown") else example.get("bleu_known")


def _bleu(title: str, statistics: Statistics, *, smooth: bool = True) -> Measure:
    """Corpus BLEU; multi-bleu.perl, which the "tokenized" and "compounds" kinds stand for, does not smooth."""
    corpus: Corpus = corpus_bleu if smooth else partial(corpus_bleu, smooth=False)
    return Measure(title, "BLEU", 2, statistics, corpus, 100.0, better="higher")


_UNSMOOTHED = {
    "bleu_tokenized": "BLEU, Moses-tokenized",
    "bleu_tokenized_replaced": "BLEU, Moses-tokenized, UNK replaced",
    "bleu_compounds": "BLEU, compounds split",
    "bleu_compounds_replaced": "BLEU, compounds split, UNK replaced",
}
register({
    "bleu": _bleu("BLEU", field("bleu")),
    "bleu_replaced": _bleu("BLEU, UNK replaced", field("bleu_replaced")),
    **{name: _bleu(title, field(name), smooth=False) for name, title in _UNSMOOTHED.items()},
    "bleu_known": _bleu("BLEU, no UNK", _known),
    "chrf": Measure("chrF", "chrF", 2, most=100.0, better="higher"),
    "nll_per_token": Measure("NLL per {token}, nats", "nats", 3, _nll, ratio, better="lower"),
    "nll_per_sentence": Measure("NLL per sentence, nats", "nats", 2, _nll_per_sentence, ratio, better="lower"),
    "perplexity": Measure("Perplexity per {token}", "", 2, _nll_per_token, perplexity, better="lower"),
    "word_perplexity": Measure("Perplexity per word", "", 2, _loss(words=True), perplexity, better="lower"),
    "bits": Measure("Bits per {token}", "bits", 3, _loss(words=False), bits, better="lower"),
})  # fmt: skip
