"""The models of Luong et al. beside a straightforward implementation, and windows beside whole sources."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.plain_luong import PlainLuong
from benchmarks.steps import Step, passes, translation_searches, translation_update
from replications.luong.model import EncoderDecoder
from shared.attention.alignments import GeneralScore, GlobalAlignment, LocalMonotonic, LocalPredictive

VOCABULARY, N = 8000, 256
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": N, "hidden_size": N,
    "layers": 1,
}  # fmt: skip


def ours(input_feeding: bool, init_range: float = 0.1) -> EncoderDecoder:
    """Global attention with the score general."""
    attention = (GeneralScore(query_size=N, key_size=N), GlobalAlignment())
    return EncoderDecoder(**SIZES, attention=attention, input_feeding=input_feeding, init_range=init_range)


def training(input_feeding: bool) -> dict[str, Step]:
    """Updates of 40 pairs of 27 words."""
    models = {"plain": PlainLuong(**SIZES, general=True, input_feeding=input_feeding), "ours": ours(input_feeding)}
    return {name: translation_update(model, VOCABULARY, 40, 27) for name, model in models.items()}


def alignments(words: int) -> dict[str, Step]:
    """Contexts of 27 target words over so many source words, forward and backward."""
    score, mask = GeneralScore(query_size=N, key_size=N), torch.ones(40, words, dtype=torch.bool)
    positions = torch.arange(27)
    inputs = tuple(torch.randn(40, n, N, requires_grad=True) for n in (27, words, words))
    kinds = {
        "global": GlobalAlignment(), "local-m": LocalMonotonic(window=5), "local-p": LocalPredictive(window=5, size=N),
    }  # fmt: skip
    return passes(
        {name: lambda q, k, v, of=kind: of(score, q, k, v, mask, positions) for name, kind in kinds.items()}, inputs
    )


COMPARISONS = {
    "training without input feeding": partial(training, False), "training with input feeding": partial(training, True),
    "alignment over 25 words": partial(alignments, 25), "alignment over 400 words": partial(alignments, 400),
    "decoding": lambda: translation_searches(ours(True, init_range=0.3).eval(), VOCABULARY),
}  # fmt: skip
