"""BLEU and chrF, and the sufficient statistics of every example for resampling.

sacreBLEU counts the n-grams. Only scores with the same signature, which names the settings, are comparable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Tokenisation = Literal["13a", "none"]
"""``13a``: the tokeniser of mteval-v13a, for running text; ``none``: for text that is tokenised already."""
_COMPOUND = re.compile(r"(\S)-(\S)", re.ASCII)  # ASCII, because Perl matches bytes


def bleu_signature(tokenise: Tokenisation = "none", *, moses: str = "", compounds: bool = False) -> str:
    """Return sacreBLEU's signature of corpus BLEU (Papineni et al. 2002) with one reference per example.

    Args:
        tokenise: how texts are tokenised, for exponential smoothing.
        moses: language of :func:`moses_tokenised`, instead; for the "tokenized BLEU" of multi-bleu.perl, which is cased
            and 0 if n-grams of one length have no match.
        compounds: as there; BLEU with it is not comparable with BLEU without.
    """
    metric = _bleu_metric(tokenise, smooth="none" if moses else "exp")
    metric.corpus_score(["a"], [["a"]])  # the signature has the number of references
    words = f"tok:moses-{moses}-sacremoses{version('sacremoses')}{'-compounds' * compounds}"
    signature = str(metric.get_signature())
    return signature.replace("tok:none", words) if moses else signature


def moses_tokenised(lines: Sequence[str], language: str, *, compounds: bool = False) -> list[str]:
    """Tokenise text as Moses' tokenizer.perl does, with sacremoses; ``<unk>`` stays one token.

    Args:
        lines: running text.
        language: two-letter code; it selects the rules for abbreviations and apostrophes.
        compounds: whether hyphenated compounds are split in three, ``rich ##AT##-##AT## text``, and Unicode punctuation
            is first replaced by ASCII. This is what get_ende_bleu.sh of tensor2tensor does before it scores, as GNMT
            and ConvS2S did; it raises BLEU. As in the Perl script, matches do not overlap: only the first hyphen of
            ``a-b-c`` is split.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    tokenizer, protected = MosesTokenizer(language), ["<unk>"]
    plain = list(map(MosesPunctNormalizer().replace_unicode_punct, lines)) if compounds else lines
    cut = [tokenizer.tokenize(line, return_str=True, escape=False, protected_patterns=protected) for line in plain]
    return [_COMPOUND.sub(r"\1 ##AT##-##AT## \2", line) for line in cut] if compounds else cut


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Return corpus chrF2 (Popović 2015), and its signature, by sacreBLEU: 1- to 6-grams, recall weighted twice."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    return metric.corpus_score(hypotheses, [references]).score, str(metric.get_signature())


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
