"""The Transformer beside straightforward implementations, and where they are installed beside other packages."""

from __future__ import annotations

import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.steps import Recomputing, Step, heads, joeynmt_update, passes, plainly, translation_update
from replications.transformer.model import Transformer
from shared.attention.scaled_dot_product import attend, fused_attention
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.layers.positions import SinusoidalPositions

VOCABULARY, SOURCES, SYMBOLS = 8000, 16, 40


def ours() -> Transformer:
    """A model whose last norm has either sign, so that a symbol does not predict itself for ever."""
    model = Transformer(
        vocabulary=VOCABULARY, width=256, layers=3, heads=4, hidden_size=1024, key_size=64, value_size=64, dropout=0.0,
        positions=SinusoidalPositions(width=256),
    )  # fmt: skip
    with torch.no_grad():
        model.decoder[-1].feed_forward_norm.weight.copy_(torch.randint(2, (256,)) * 2 - 1)
    return model


class PyTorchs(nn.Module):
    """``nn.Transformer`` of the same sizes between one matrix of embeddings, without positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 256)
        self.layers = nn.Transformer(256, 4, 3, 3, 1024, dropout=0.0, batch_first=True)

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, None]:
        """Logits (B, T, V)."""
        later = torch.ones(2 * target.shape[1:], dtype=torch.bool).triu(1)
        read, written = self.embedding(source), self.embedding(target)
        h = self.layers(read, written, tgt_mask=later, tgt_is_causal=True, src_key_padding_mask=~mask,
                        memory_key_padding_mask=~mask)  # fmt: skip
        return h @ self.embedding.weight.mT, None


def training() -> dict[str, Step]:
    """Updates of 40 pairs of 27 words, without dropout."""
    step = translation_update(ours().train(), VOCABULARY, 40, 27)
    torchs = translation_update(PyTorchs(), VOCABULARY, 40, 27)
    embeddings = {"embedding_dim": 256, "scale": True}
    part = {"type": "transformer", "num_layers": 3, "num_heads": 4, "hidden_size": 256, "ff_size": 1024,
            "layer_norm": "post", "embeddings": embeddings, "dropout": 0.0}  # fmt: skip
    config = {"encoder": part, "decoder": part, "tied_embeddings": True, "tied_softmax": True}
    theirs = joeynmt_update(config, VOCABULARY, 40, 27)
    return {"equations": plainly(step), "ours": step, "nn.Transformer": torchs, **theirs}


def attention(length: int) -> dict[str, Step]:
    """Causal self-attention's core, forward and backward."""
    equation = plainly(partial(attend, causal=True))
    return passes({"equation": equation, "fused": partial(fused_attention, causal=True)}, heads(length))


def decoding(beam: int) -> dict[str, Step]:
    """Translations of a fixed length; the packages translate with the same weights."""
    model = ours().eval()
    lengths = torch.randint(12, 25, (SOURCES,)).sort().values
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    source = torch.randint(4, VOCABULARY, mask.shape).masked_fill(~mask, PAD)
    source[torch.arange(SOURCES), lengths - 1] = EOS
    ways: dict[str, Step] = {"ours": partial(search, model, source, mask, beam, SYMBOLS)}
    if beam == 1:
        ways["recomputing"] = partial(search, Recomputing(model), source, mask, beam, SYMBOLS)
    fixed = {"beam": beam, "minimum": SYMBOLS, "maximum": SYMBOLS}
    if find_spec("transformers") and find_spec("ctranslate2"):
        from tests.parity import copied_transformer

        marian = copied_transformer.marian(model)
        ways["Hugging Face generate"] = partial(copied_transformer.generate, marian, source, mask, **fixed)
        with tempfile.TemporaryDirectory() as folder:
            translator = copied_transformer.translator(model, Path(folder))
        rows = [row[:n] for row, n in zip(source.tolist(), lengths.tolist(), strict=True)]
        ways["CTranslate2"] = partial(copied_transformer.translate, translator, rows, **fixed)
    return ways


@torch.no_grad()
def search(model: Any, source: Tensor, mask: Tensor, beam: int, symbols: int) -> list[list[int]]:
    """Translations of exactly so many symbols."""
    length = torch.full((len(source),), symbols)
    limits = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=length, maximum=length)
    state = model.start(source, mask)
    found = greedy_search(model, state, limits) if beam == 1 else beam_search(model, state, limits, beam=beam)
    return found.best()


COMPARISONS = {
    "training": training, "attention over 25": partial(attention, 25), "attention over 400": partial(attention, 400),
    "greedy decoding": partial(decoding, 1), "beams of five": partial(decoding, 5),
}  # fmt: skip
