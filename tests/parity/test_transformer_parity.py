"""The Transformer's stacks against torch's own, weights copied, with padding and causal masks.

Torch's attention has biases where the paper has none; they are zero.
"""

import pytest
import torch
from torch import nn

from replications.transformer.model import DecoderLayer
from tests.parity.transformer_case import TOLERANCES, WIDTH, batch, transformer

HEADS, HIDDEN = 2, 12


def torchs(kind):
    return kind(WIDTH, HEADS, HIDDEN, dropout=0.0, activation="relu", batch_first=True, norm_first=False)


def pairs(ours, theirs):
    """What is the same in both: some of our parameters, one below the other, and one of theirs."""
    attentions = [(ours.attention, theirs.self_attn)]
    norms = [(ours.attention_norm, theirs.norm1), (ours.feed_forward_norm, theirs.norm2)]
    if isinstance(ours, DecoderLayer):
        attentions.append((ours.source_attention, theirs.multihead_attn))
        norms[1:] = [(ours.source_norm, theirs.norm2), (ours.feed_forward_norm, theirs.norm3)]
    found = []
    for mine, other in attentions:
        found.append(((mine.w_q.weight, mine.w_kv.weight), other.in_proj_weight))
        found.append(((mine.w_o.weight,), other.out_proj.weight))
    linears = [(ours.feed_forward.w_1, theirs.linear1), (ours.feed_forward.w_2, theirs.linear2)]
    for mine, other in linears + norms:
        found += [((mine.weight,), other.weight), ((mine.bias,), other.bias)]
    return found


def copied(ours, theirs):
    """The pairs, theirs with the values of ours and no biases of attention."""
    found = pairs(ours, theirs)
    assert sum(len(mine) for mine, _ in found) == len(list(ours.parameters()))
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith(("in_proj_bias", "out_proj.bias")):
                parameter.zero_()
        for mine, other in found:
            other.copy_(torch.cat(mine))
    return found


def gradients(output, inputs, groups, cotangent):
    """Of the inputs, and of each group of parameters, one below the other."""
    flat = [parameter for group in groups for parameter in group]
    found = iter(torch.autograd.grad(output, [*inputs, *flat], cotangent, retain_graph=True))
    return [next(found) for _ in inputs] + [torch.cat([next(found) for _ in group]) for group in groups]


def assert_same(found, expected, inputs, parameters, tolerance):
    """Outputs, and gradients of the inputs and of the pairs of parameters for one cotangent."""
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(expected)
    ours = gradients(found, inputs, [mine for mine, _ in parameters], cotangent)
    theirs = gradients(expected, inputs, [(other,) for _, other in parameters], cotangent)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_whole_model_is_torchs_stacks_between_embeddings_and_softmax(dtype, tolerance, training, layers):
    ours = transformer(layers=layers).to(dtype).train(training)
    encoder = nn.TransformerEncoder(torchs(nn.TransformerEncoderLayer), layers, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(torchs(nn.TransformerDecoderLayer), layers)
    theirs = nn.Transformer(
        WIDTH, HEADS, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    ).to(dtype).train(training)  # fmt: skip
    parameters = [
        pair
        for mine, others in ((ours.encoder, encoder), (ours.decoder, decoder))
        for layer, other in zip(mine, others.layers, strict=True)
        for pair in copied(layer, other)
    ]
    source, mask, target = batch()
    found, weights = ours(source, mask, target)
    assert (weights is None) == training  # the fused path has none
    embedding = ours.embedding.weight
    x, y = (embedding[s] * WIDTH**0.5 + ours.positions(0, s.size(1)) for s in (source, target))
    after = nn.Transformer.generate_square_subsequent_mask(target.size(1)).isinf()
    out = theirs(x, y, tgt_mask=after, src_key_padding_mask=~mask, memory_key_padding_mask=~mask)
    assert_same(found, out @ embedding.t(), [embedding], parameters, tolerance)
