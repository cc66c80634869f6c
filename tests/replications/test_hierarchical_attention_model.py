"""Hierarchical attention: its equations by hand, sentence by sentence; what pooling and flat reading leave out."""

import pytest
import torch
from torch import Tensor

from replications.hierarchical_attention.model import HierarchicalNetwork, sentence_sizes
from tests.checklist import spread

DOCUMENTS = [[5, 6, 4, 7, 8, 9, 4, 5], [4, 6], [7, 4]]
"""Of words from 5 on; 4 ends a sentence. The first has three sentences, the last without its end; the second, two."""
SENTENCES = [[[5, 6, 4], [7, 8, 9, 4], [5]], [[4], [6]], [[7, 4]]]


def network(**settings) -> HierarchicalNetwork:
    torch.manual_seed(1)
    sizes = {"vocabulary": 10, "classes": 3, "embedding": 4, "hidden": 3, "ends": [4], "dropout": 0.0}
    return spread(HierarchicalNetwork(**sizes | {"pooling": "attention", "sentences": True} | settings), 0.7)


def batch() -> tuple[Tensor, Tensor]:
    text = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in DOCUMENTS], batch_first=True)
    return text, text != 0


def gru(unit: torch.nn.GRU, x: Tensor) -> Tensor:
    """Equations 1 to 4 as the paper prints them, (T, X) to (T, u); its z is 1 less the unit's."""
    w, b = unit.weight_ih_l0[:, :-1], unit.weight_ih_l0[:, -1]
    (w_r, w_z, w_h), (b_r, b_z, b_h), (u_r, u_z, u_h) = w.chunk(3), b.chunk(3), unit.weight_hh_l0.chunk(3)
    h, states = torch.zeros(len(u_r), dtype=x.dtype), []
    for x_t in x:
        z = torch.sigmoid(-(w_z @ x_t + u_z @ h + b_z))
        r = torch.sigmoid(w_r @ x_t + u_r @ h + b_r)
        candidate = torch.tanh(w_h @ x_t + r * (u_h @ h) + b_h)
        h = (1 - z) * h + z * candidate
        states.append(h)
    return torch.stack(states)


def read(level: torch.nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Equations 5 to 7, or 8 to 10, of one part (T, X): its vector and the weights (T,)."""
    encoder = level.encoder
    h = torch.cat((gru(encoder.forwards, x), gru(encoder.backwards, x.flip(0)).flip(0)), dim=1)
    if level.pooling == "maximum":
        return h.amax(0), h.argmax(0).bincount(minlength=len(h)) / h.size(1)
    if level.pooling == "average":
        return h.mean(0), h.new_full((len(h),), 1 / len(h))
    seen = x if level.pooling == "words alone" else h
    attention = level.attention
    u = torch.tanh(seen @ attention.w.weight.T + attention.w.bias)
    scores = (u @ attention.u_w.weight[0]).exp()
    alpha = scores / scores.sum()
    return alpha @ h, alpha


@pytest.mark.parametrize("pooling", ["attention", "words alone", "average", "maximum"])
def test_the_equations_sentence_by_sentence(pooling: str) -> None:
    model, (text, mask) = network(pooling=pooling), batch()
    found = model((text,), (mask,))
    for row, sentences in enumerate(SENTENCES):
        read_sentences = [read(model.words, model.embedding(torch.tensor(words))) for words in sentences]
        v, alpha = read(model.sentences, torch.stack([s for s, _ in read_sentences]))
        torch.testing.assert_close(found.logits[row], model.output(v))
        of_words = torch.cat([a * of for a, (_, of) in zip(alpha, read_sentences, strict=True)]).double()
        torch.testing.assert_close(found.attention[0][row, 0, mask[row]], of_words, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(found.attention[0][row].sum(), torch.ones((), dtype=torch.float64))


def test_flat_a_document_is_one_sentence() -> None:
    model, (text, mask) = network(sentences=False), batch()
    found = model((text,), (mask,))
    for row, words in enumerate(DOCUMENTS):
        v, alpha = read(model.words, model.embedding(torch.tensor(words)))
        torch.testing.assert_close(found.logits[row], model.output(v))
        torch.testing.assert_close(found.attention[0][row, 0, mask[row]], alpha)


def test_sentences_end_with_their_symbol_or_the_document() -> None:
    sizes, counts = sentence_sizes(*batch(), torch.tensor([4]))
    assert sizes.tolist() == [len(words) for sentences in SENTENCES for words in sentences]
    assert counts.tolist() == [len(sentences) for sentences in SENTENCES]
    sizes, counts = sentence_sizes(*batch(), torch.tensor([4, 8]))  # several symbols may
    assert sizes.tolist() == [3, 2, 2, 1, 1, 1, 2]
