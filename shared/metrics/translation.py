"""BLEU and chrF, and the sufficient statistics of every example for resampling.

sacreBLEU counts the n-grams. Only scores with the same signature, which names the settings, are comparable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Tokenisation = Literal["13a", "none"]
"""``13a``: the tokeniser of mteval-v13a, for running text; ``none``: for text that is tokenised already."""
_COMPOUND = re.compile(r"(\S)-(\S)", re.ASCII)  # ASCII, because Perl matches bytes


@dataclass(frozen=True)
class Score:
    """A corpus score from 0 to 100 and its sacreBLEU signature."""

    value: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenise: Tokenisation = "13a") -> Score:
    """Return corpus BLEU (Papineni et al. 2002) by sacreBLEU: one reference per example, exponential smoothing."""
    metric = _bleu_metric(tokenise)
    value = metric.corpus_score(hypotheses, [references]).score
    return Score(value, str(metric.get_signature()))


def moses_tokenised(lines: Sequence[str], language: str) -> list[str]:
    """Tokenise text as Moses' tokenizer.perl does, with sacremoses; ``<unk>`` stays one token.

    Args:
        lines: running text.
        language: two-letter code; it selects the rules for abbreviations and apostrophes.
    """
    from sacremoses import MosesTokenizer

    tokenizer, protected = MosesTokenizer(language), ["<unk>"]
    return [tokenizer.tokenize(line, return_str=True, escape=False, protected_patterns=protected) for line in lines]


def compounds_split(lines: Sequence[str], language: str) -> list[str]:
    """Tokenise as :func:`moses_tokenised` and split hyphenated compounds in three: ``rich ##AT##-##AT## text``.

    This is what get_ende_bleu.sh of tensor2tensor does before it scores, as GNMT and ConvS2S did; it raises BLEU.
    Unicode punctuation is first replaced by ASCII. As in the Perl script, matches do not overlap: only the first hyphen
    of ``a-b-c`` is split.
    """
    from sacremoses import MosesPunctNormalizer

    plain = map(MosesPunctNormalizer().replace_unicode_punct, lines)
    return [_COMPOUND.sub(r"\1 ##AT##-##AT## \2", line) for line in moses_tokenised(list(plain), language)]


def bleu_moses(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, compounds: bool = False
) -> Score:
    """Return the "tokenized BLEU" of multi-bleu.perl: Moses tokens, cased, 0 if n-grams of one length have no match.

    With ``compounds`` the text is split by :func:`compounds_split`; that BLEU is not comparable with BLEU without it.
    """
    metric, cut = _bleu_metric("none", smooth="none"), compounds_split if compounds else moses_tokenised
    value = metric.corpus_score(cut(hypotheses, language), [cut(references, language)]).score
    words = f"tok:moses-{language}-sacremoses{version('sacremoses')}{'-compounds' * compounds}"
    return Score(value, str(metric.get_signature()).replace("tok:none", words))


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return corpus chrF2 (Popović 2015) by sacreBLEU: character 1- to 6-grams, recall weighted twice."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    value = metric.corpus_score(hypotheses, [references]).score
    return Score(value, str(metric.get_signature()))


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str | Sequence[str]], *, tokenise: Tokenisation = "13a"
) -> NDArray[np.int64]:
    """Return the statistics of BLEU for each example; :func:`corpus_bleu` of their sum is corpus BLEU.

    Args:
        hypotheses: N texts.
        references: for each one reference, or several.
        tokenise: how texts are tokenised.

    Returns:
        (N, 10): hypothesis length; length of the closest reference (the shorter of ties); matches of 1- to 4-grams,
        each clipped to its largest count in one reference; number of 1- to 4-grams in the hypothesis.
    """
    metric = _bleu_metric(tokenise, effective_order=True)  # silences a warning about sentence scores, unused here
    pairs = zip(hypotheses, references, strict=True)
    scores = (metric.sentence_score(h, [r] if isinstance(r, str) else list(r)) for h, r in pairs)
    rows = [[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores]
    return np.array(rows, dtype=np.int64).reshape(-1, 10)


def corpus_bleu(
    sums: ArrayLike, *, smooth: bool = True, orders: int = 4, brevity_penalty: bool = True
) -> NDArray[np.float64]:
    """Return BLEU of summed :func:`bleu_statistics`, equal to that of sacreBLEU with exponential or no smoothing.

    Exponential smoothing replaces zero matches by 1/2, 1/4, 1/8 … for each n-gram length without a match in turn.
    Without smoothing BLEU is then 0, as in multi-bleu.perl.

    Args:
        sums: (…, 10).
        smooth: whether to smooth.
        orders: the length of the longest n-grams, 1 to 4.
        brevity_penalty: whether to apply it. Xu et al. (2015) report BLEU without it, which favours short captions.

    Returns:
        (…) from 0 to 100; 0 where no word matches or no hypothesis has as many tokens as the longest n-gram.
    """
    sums = np.asarray(sums, dtype=np.float64)
    hypothesis, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + orders], sums[..., 6 : 6 + orders]
    needed = matches[..., :1] if smooth else matches
    defined = (needed > 0).all(axis=-1) & (totals[..., -1] > 0)
    smoothed = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    log_precision = np.log(smoothed / np.maximum(totals, 1)).mean(axis=-1)
    log_brevity = np.minimum(0, 1 - reference / np.maximum(hypothesis, 1)) if brevity_penalty else 0.0
    return np.where(defined, 100 * np.exp(log_precision + log_brevity), 0.0)


def _bleu_metric(tokenise: Tokenisation, *, smooth: str = "exp", effective_order: bool = False) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    # "force" suppresses the warning that the text looks tokenised, as the text of a word vocabulary does.
    return BLEU(tokenize=tokenise, smooth_method=smooth, effective_order=effective_order, force=True)
