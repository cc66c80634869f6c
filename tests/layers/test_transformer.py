"""The Transformer that papers build on is that of Vaswani et al. with their attention, and tells attentions places."""

import torch
from torch import nn

from replications.transformer.model import Transformer as Paper
from shared.attention.multi_head import MultiHeadAttention
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.layers.positions import SinusoidalPositions
from shared.layers.transformer import Transformer
from tests.checklist import assert_translator, sequences

V, D = 19, 12
SIZES = {"vocabulary": V, "width": D, "layers": 2, "hidden_size": 20, "dropout": 0.1}


def heads():
    return MultiHeadAttention(query_size=D, heads=3, key_size=4, value_size=5)


def limits():
    minimum, maximum = torch.tensor([2, 0, 3]), torch.tensor([9, 90, 8])
    return Constraints(begin=1, end=2, padding=0, minimum=minimum, maximum=maximum)


def test_with_the_papers_attention_it_is_the_papers_model_to_the_bit():
    torch.manual_seed(1)
    paper = Paper(**SIZES, heads=3, key_size=4, value_size=5, positions=SinusoidalPositions(width=D))
    torch.manual_seed(1)
    shared = Transformer(**SIZES, encoder_attention=heads, positions=SinusoidalPositions(width=D))
    assert shared.state_dict().keys() == paper.state_dict().keys()
    assert all(torch.equal(x, y) for x, y in zip(shared.parameters(), paper.parameters(), strict=True))
    (source, mask), target = sequences(V), torch.randint(4, V, (3, 6))
    found = []
    for model in (paper, shared):
        torch.manual_seed(2)
        logits, none = model(source, mask, target)
        gradients = torch.autograd.grad(logits.square().sum(), list(model.parameters()))
        model.eval()
        maps = model.attention_maps(source, mask, target)
        hypotheses = beam_search(model, model.start(source, mask), limits(), beam=4, attention=True)
        assert none is None
        found.append((logits, *gradients, *model(source, mask, target), *maps.values(), *vars(hypotheses).values()))
    assert all(torch.equal(x, y) for x, y in zip(*found, strict=True))


class Relative(nn.Module):
    """Attention whose scores have a learned number for every distance, from the places that it is told alone."""

    def __init__(self, heads):
        super().__init__()
        self.heads, self.bias = heads, nn.Parameter(torch.zeros(2 * 40 + 1))

    def project(self, memory):
        return self.heads.project(memory)

    def forward(self, x, memory, *, mask=None, causal=False, weights=False, positions):
        (k, v), q = memory, self.heads.queries(x)
        places = positions.keys.unsqueeze(-2) - positions.queries.unsqueeze(-1)  # (T, S) or (B, T, S)
        scores = q @ k.mT + self.bias[places + 40].unsqueeze(-3)
        if causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        a = scores.masked_fill(~mask, -torch.inf).softmax(-1) if mask is not None else scores.softmax(-1)
        return self.heads.joined(a @ v), a if weights else None


def test_an_attention_is_told_where_queries_and_keys_stand_in_a_beam_search_too():
    relative = Transformer(
        **SIZES | {"dropout": 0.0}, encoder_attention=lambda: Relative(heads()), source_attention=heads,
        positions=SinusoidalPositions(width=D),
    )  # fmt: skip
    assert len({type(layer.attention) for layer in (*relative.encoder, *relative.decoder)}) == 1
    assert not hasattr(relative.decoder[0].source_attention, "bias")
    assert_translator(relative, V)
