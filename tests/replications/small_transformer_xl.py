"""Language models of Dai et al. of a few weights, how they read a text, and the same in one pass over it."""

import math

import torch

from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from shared.layers.positions import sinusoids
from tests.checklist import F64, spread

VOCABULARY, D, N, H, K = 19, 8, 2, 2, 3
SIZES = {"d_model": D, "n_layer": N, "n_head": H, "d_head": K, "d_inner": 7, "dropout": 0.0}
TRANSFORMERS = {
    "relative": {},
    "untied": {"untie_r": True},
    "shaw": {"positions": "shaw", "shaw_distances": 4},
    "absolute": {"positions": "absolute"},
    "adaptive": {"cutoffs": (5, 11), "div_val": 2, "tied_projections": (False, True, True)},
}
KINDS = TRANSFORMERS | {"lstm": {"network": "lstm"}}


def built(kind, **changes):
    """As it begins."""
    return build_model(ModelConfig.model_validate(SIZES | KINDS[kind] | changes), VOCABULARY, None)


def small(kind="relative", **changes):
    """Far from its initial values, in evaluation mode."""
    return spread(built(kind, **changes), 0.5)


def a_text(symbols, columns=2):
    """Inputs (B, n) and what follows each of them."""
    text = torch.randint(VOCABULARY, (columns, symbols + 1))
    return text[:, :-1], text[:, 1:]


def in_segments(model, inputs, targets, length, reach=None, memory=None):
    """Nats (B, n) of a text that is read segment by segment; a memory goes on with what it has."""
    memory = model.memory(len(inputs), reach) if memory is None else memory
    pairs = zip(inputs.split(length, dim=1), targets.split(length, dim=1), strict=True)
    return torch.cat([model(ours, theirs, memory) for ours, theirs in pairs], dim=1)


def in_one_pass(model, inputs, targets, length, reach):
    """The same of a Transformer, from the papers' equations: what a query sees is a matter of places alone."""
    i, j = torch.arange(inputs.size(1)).unsqueeze(1), torch.arange(inputs.size(1))
    seen = (j <= i) & (j >= i // length * length - reach.memory)
    if reach.same_length:
        seen &= j > i - reach.memory
    h = model.softmax.embedding(inputs)
    if not model.relative:
        h = h + sinusoids(j % length, D).to(F64)
    for layer in model.layers:
        a = _attention(layer.attention, h, seen, (i - j).clamp(0), reach.clamp)
        h = layer.attention_norm(h + a)
        h = layer.feed_forward_norm(h + layer.feed_forward(h))
    return model.softmax(h, targets)


def _attention(attention, h, seen, distance, clamp):
    """Section 3.3 of Dai et al. (2019), 3.2 of Shaw et al. (2018), or equation 1 of Vaswani et al. (2017)."""
    q = (h @ attention.w_q.weight.T).unflatten(-1, (H, K))
    k, v = (h @ attention.w_kv.weight.T).unflatten(-1, (2, H, K)).unbind(2)
    biases = getattr(attention, "biases", None)
    u, w = (0, 0) if biases is None else (biases.u, biases.v)
    scores = torch.einsum("bihk,bjhk->bhij", q + u, k)
    positions = getattr(attention, "positions", None)
    if hasattr(positions, "w_r"):
        clamped = distance if clamp is None else distance.clamp(max=clamp)
        r = sinusoids(clamped.flatten(), D).to(F64) @ positions.w_r.weight.T
        scores = scores + torch.einsum("bihk,ijhk->bhij", q + w, r.view(*distance.shape, H, K))
    elif positions is not None:
        r = positions.table[distance.clamp(max=len(positions.table) - 1)]
        scores = scores + torch.einsum("bihk,ijk->bhij", q, r)
    weights = (scores / math.sqrt(K)).masked_fill(~seen, -torch.inf).softmax(-1)
    return torch.einsum("bhij,bjhk->bihk", weights, v).flatten(2) @ attention.w_o.weight.T
