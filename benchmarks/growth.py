"""How processor time and peak memory grow with the length of sentences and sequences and with corpora."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import torch

from benchmarks import transformer
from benchmarks.steps import Step, both_ways, heads, translation_update
from shared.attention.linear import chunkwise_linear_attention
from shared.tasks.translation.corpus import prepare
from shared.tasks.translation.settings import ParallelCorpusConfig


def translation() -> dict[str, Step]:
    """Updates of the Transformer on 20 pairs."""
    model = transformer.ours().train()
    return {str(n): translation_update(model, transformer.VOCABULARY, 20, n) for n in (10, 20, 40, 80)}


def decoding() -> dict[str, Step]:
    """Translations by beams of five, as long as their sources."""
    model = transformer.ours().eval()
    sources = {n: torch.randint(4, transformer.VOCABULARY, (4, n)) for n in (10, 20, 40, 80)}
    return {
        str(n): partial(transformer.search, model, source, torch.ones_like(source, dtype=torch.bool), 5, n)
        for n, source in sources.items()
    }


def attention() -> dict[str, Step]:
    """Causal linear attention, forward and backward."""
    lengths = (256, 1024, 4096, 16_384, 65_536)
    return {str(n): both_ways(chunkwise_linear_attention, heads(n, positive=True)) for n in lengths}


def corpora() -> dict[str, Step]:
    """The stage prepare of sentences of 5 to 24 words of 5,000."""

    def prepared(count: int) -> None:
        config = ParallelCorpusConfig(
            dataset="made", source="en", target="fr", tokenizer={"kind": "words", "size": 4000}, max_words=50
        )
        with tempfile.TemporaryDirectory() as name:
            folder, random = Path(name), torch.Generator().manual_seed(0)
            for split, lines in (("train", count), ("valid", 100), ("test", 100)):
                for language in ("en", "fr"):
                    lengths = torch.randint(5, 25, (lines,), generator=random).tolist()
                    text = (torch.randint(5000, (n,), generator=random).tolist() for n in lengths)
                    rows = "".join(" ".join(f"w{word}" for word in words) + "\n" for words in text)
                    (folder / f"{split}.{language}").write_text(rows, encoding="utf-8")
            prepare(config, folder, folder)

    return {str(count): partial(prepared, count) for count in (1000, 3000, 10_000, 30_000)}


COMPARISONS = {"training": translation, "decoding": decoding, "linear attention": attention, "corpora": corpora}
AXES = {"training": "Words of a sentence", "decoding": "Words of a sentence", "linear attention": "Positions",
         "corpora": "Sentences"}  # fmt: skip
