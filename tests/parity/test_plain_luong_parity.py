"""The whole of the attentional models against torch's LSTM cells with plain autograd, weights copied."""

import pytest
import torch
from torch import nn

from benchmarks.plain_luong import PlainLuong
from replications.luong.model import EncoderDecoder
from shared.attention.alignments import DotScore, GeneralScore, GlobalAlignment

F64 = torch.float64
N = 6
SIZES = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": N}


def shared(ours, plain):
    """Pairs of parameters that are the same, ours first."""
    pairs = [
        (ours.encoder.embedding.weight, plain.source.weight), (ours.embedding.weight, plain.target.weight),
        (ours.attention.w_c.weight, plain.attentional.weight), (ours.w_s.weight, plain.output.weight),
    ]  # fmt: skip
    for lstm, cells in ((ours.encoder.lstm, plain.encoder), (ours.lstm, plain.decoder)):
        for layer, cell in enumerate(cells):
            pairs.append((getattr(lstm, f"weight_ih_l{layer}"), cell.weight_ih))
            pairs.append((getattr(lstm, f"weight_hh_l{layer}"), cell.weight_hh))
    if isinstance(ours.attention.score, GeneralScore):
        pairs.append((ours.attention.score.w_a, plain.key.weight))
    return pairs


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("feed", [False, True])
@pytest.mark.parametrize("general", [False, True])
def test_logits_weights_and_gradients_are_those_of_torchs_cells(general, feed, layers):
    score = GeneralScore(query_size=N, key_size=N) if general else DotScore()
    ours = EncoderDecoder(**SIZES, layers=layers, attention=(score, GlobalAlignment()), input_feeding=feed).to(F64)
    plain = PlainLuong(**SIZES, layers=layers, general=general, input_feeding=feed).to(F64)
    pairs = shared(ours, plain)
    assert len(pairs) == len(list(ours.parameters())) == len(list(plain.parameters()))
    with torch.no_grad():
        for mine, theirs in pairs:
            nn.init.normal_(mine, std=0.5)
            theirs.copy_(mine)
    mask = torch.arange(7) < torch.tensor([7, 4, 2]).unsqueeze(1)
    source, target = torch.randint(1, 11, (3, 7)) * mask, torch.randint(1, 9, (3, 5))
    found, expected = ours(source, mask, target), plain(source, mask, target)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    cotangents = [torch.randn_like(output) for output in expected]
    torch.autograd.backward(found, cotangents)
    torch.autograd.backward(expected, cotangents)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-10, rtol=1e-10)
