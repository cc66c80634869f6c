"""The Linear Transformer and the Performer against twins of loops: values and all gradients.

The twins are the models of Katharopoulos et al. and of Choromanski et al. from their equations, a number of loops
inside another. They take the weights by their names, one sequence without padding, and nothing else of the models.
Every position is a list entry, every head is apart, and all weights of attention are there.

Shape letters: D model width, K width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.replications.small_sequences import F64, MODELS, PERFORMERS, TRANSFORMERS, VOCABULARY, H, N, padded, small

CASES = [(name, causal) for name in MODELS for causal in (True, False) if causal or "lsh" not in name]
"""Attention by hashing sees what is near in an order of chunks where it is not causal, which has a test of its own."""


def reader(name: str, model: torch.nn.Module, causal: bool) -> Reader:
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    sizes = {"heads": H, "layers": N, "causal": causal}
    if name in PERFORMERS:
        return Reader(weights, "softmax" if name == "exact" else name, **sizes)
    section = TRANSFORMERS[name]
    positions = section.get("positions")
    beside, grid = positions in ("concatenated", "rows and columns"), positions == "rows and columns"
    sizes |= {"columns": round(section["max_length"] ** 0.5) if grid else 0}
    return Reader(weights, section["attention"], beside=beside, chunk=section.get("chunk", 0), **sizes)


def give_exact_sinusoids(model: torch.nn.Module, columns: int) -> None:
    """Ours are rounded to single precision."""
    width = model.embedding.embedding_dim
    table = torch.stack([encoded(place, width, columns) for place in range(12)])
    torch.testing.assert_close(model.positions(0, 12), table, atol=1e-6, rtol=0)
    given = model.positions.sinusoids if columns else model.positions
    given.table = torch.stack([sinusoid(place, width // 2 if columns else width) for place in range(12)])


@pytest.mark.parametrize(("name", "causal"), CASES, ids=str)
def test_values_and_gradients_are_those_of_the_equations(name: str, causal: bool) -> None:
    model = small(name, causal=causal, std=0.4).train()
    plain = reader(name, model, causal)
    told = linear_transformer if name in TRANSFORMERS else performer
    give_exact_sinusoids(model, plain.columns)
    inputs, mask = padded([9, 1, 6])
    targets = torch.randint(VOCABULARY - 1, inputs.shape)
    h = model(inputs, mask)
    nats = model.output(h, targets)
    expected_states, expected = [], []
    for row, length in enumerate(mask.sum(1).tolist()):
        states = told(plain, inputs[row, :length].tolist())
        expected_states += states
        for state, target in zip(states, targets[row].tolist(), strict=False):
            pixels = name == "linear, pixels"
            expected.append(
                pixel_nats(plain.weights, state, target, VOCABULARY - 1)
                if pixels
                else symbol_nats(plain.weights, state, target)
            )
    close = {"atol": 1e-10, "rtol": 1e-10}
    torch.testing.assert_close(h[mask], torch.stack(expected_states), **close)
    torch.testing.assert_close(nats[mask], torch.stack(expected), **close)
    cotangent, parameters = torch.randn(len(expected), dtype=F64), dict(model.named_parameters())
    found, wanted = (
        torch.autograd.grad((each * cotangent).sum(), list(parameters.values()))
        for each in (nats[mask], torch.stack(expected))
    )
    for weight, ours, theirs in zip(parameters, found, wanted, strict=True):
        assert theirs.abs().max() > 1e-8, weight
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


Weights = Mapping[str, Tensor]
Vectors = list[Tensor]
"""One for each position."""


class Reader(NamedTuple):
    """How a model reads.

    Attributes:
        weights: parameters and buffers by their names.
        attention: its name.
        heads: how many.
        layers: how many.
        causal: whether position i sees those up to i only.
        beside: whether sinusoids stand beside embeddings.
        chunk: of attention by hashing.
        columns: pixels of a row where places are rows and columns; 0 where they are those in the sequence.
    """

    weights: Weights
    attention: str
    heads: int
    layers: int
    causal: bool
    beside: bool = False
    chunk: int = 0
    columns: int = 0


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    """W x, and b where there is one."""
    y = weights[f"{name}.weight"] @ x
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def norm(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Layer normalisation (Ba et al. 2016)."""
    centred = x - x.sum() / len(x)
    deviation = ((centred**2).sum() / len(x) + 1e-5) ** 0.5
    return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def feed_forward(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Two products with ReLU between them."""
    hidden = linear(weights, f"{name}.w_1", x)
    return linear(weights, f"{name}.w_2", hidden * (hidden > 0))


def sinusoid(place: int, width: int) -> Tensor:
    """Sines and cosines in turn."""
    angles = [place / 10_000 ** (2 * (i // 2) / width) for i in range(width)]
    return torch.tensor([(math.cos if i % 2 else math.sin)(a) for i, a in enumerate(angles)]).double()


def encoded(place: int, width: int, columns: int) -> Tensor:
    """A place in the sequence, or the row and the column of a pixel."""
    if not columns:
        return sinusoid(place, width)
    return torch.cat((sinusoid(place // columns, width // 2), sinusoid(place % columns, width // 2)))


def embedded(reader: Reader, symbols: list[int]) -> Vectors:
    """With their places."""
    table = reader.weights["embedding.weight"]
    placed = [(table[s], encoded(i, table.size(1), reader.columns)) for i, s in enumerate(symbols)]
    return [torch.cat((x, p)) if reader.beside else x + p for x, p in placed]


def weighted(weights: list[Tensor], values: Vectors) -> Tensor:
    """Σ w v / Σ w."""
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)  # type: ignore[return-value]


def over_what_is_seen(
    reader: Reader, q: Vectors, k: Vectors, v: Vectors, similarity: Callable[[Tensor, Tensor], Tensor]
) -> Vectors:
    """Equation (3) of Katharopoulos et al.: any similarity of a query and a key."""
    out = []
    for i, query in enumerate(q):
        seen = range(i + 1) if reader.causal else range(len(k))
        out.append(weighted([similarity(query, k[j]) for j in seen], [v[j] for j in seen]))
    return out


# Katharopoulos et al. (2020)


def elu_plus_one(x: Tensor) -> Tensor:
    """Equation (7)."""
    return torch.stack([y + 1 if y > 0 else y.exp() for y in x])


def recurrent(q: Vectors, k: Vectors, v: Vectors) -> Vectors:
    """Equations (16) to (20), with a matrix and a vector for a state."""
    s, z, out = torch.zeros(len(k[0]), len(v[0])).double(), torch.zeros(len(k[0])).double(), []
    for query, key, value in zip(q, k, v, strict=True):
        s, z = s + torch.outer(elu_plus_one(key), value), z + elu_plus_one(key)
        out.append(elu_plus_one(query) @ s / (elu_plus_one(query) @ z))
    return out


def hashed(reader: Reader, qk: Vectors, v: Vectors, rotations: Tensor) -> Vectors:
    """The last keys of its bucket before it, of any round; of a head, whose rotations are (rounds, K, half)."""
    out = []
    buckets = [[int(torch.cat((x @ r, -(x @ r))).argmax()) for x in qk] for r in rotations]
    for i, query in enumerate(qk):
        found = set()
        for round_ in buckets:
            found |= set([j for j in range(i) if round_[j] == round_[i]][-reader.chunk :])
        near = sorted(found)
        scores = [(query @ qk[j] / (qk[j] @ qk[j]) ** 0.5 / len(query) ** 0.5).exp() for j in near]
        out.append(weighted(scores, [v[j] for j in near]) if near else v[i])
    return out


def head(reader: Reader, name: str, number: int, x: Vectors) -> Vectors:
    """A head of A_l in equation (1)."""
    weights, size = reader.weights, len(x[0]) // reader.heads
    own = slice(number * size, (number + 1) * size)
    if reader.attention == "lsh":
        qk, v = ([linear(weights, f"{name}.heads.{w}", each)[own] for each in x] for w in ("w_qk", "w_v"))
        return hashed(reader, qk, v, weights[f"{name}.heads.rotations"][number])
    q = [linear(weights, f"{name}.heads.w_q", each)[own] for each in x]
    k, v = ([linear(weights, f"{name}.heads.w_kv", each).chunk(2)[n][own] for each in x] for n in (0, 1))
    if reader.attention == "softmax":
        return over_what_is_seen(reader, q, k, v, lambda a, b: (a @ b / size**0.5).exp())
    if reader.causal:
        return recurrent(q, k, v)
    return over_what_is_seen(reader, q, k, v, lambda a, b: elu_plus_one(a) @ elu_plus_one(b))


def linear_transformer(reader: Reader, symbols: list[int]) -> Vectors:
    """States of all symbols: norms after each of the two sums."""
    weights, x = reader.weights, embedded(reader, symbols)
    for n in range(reader.layers):
        layer = f"layers.{n}"
        heads = [head(reader, f"{layer}.attention", number, x) for number in range(reader.heads)]
        for i, parts in enumerate(zip(*heads, strict=True)):
            a = linear(weights, f"{layer}.attention.heads.w_o", torch.cat(parts))
            y = norm(weights, f"{layer}.attention_norm", x[i] + a)
            added = feed_forward(weights, f"{layer}.feed_forward", y)
            x[i] = norm(weights, f"{layer}.feed_forward_norm", y + added)
    return [norm(weights, "norm", each) for each in x]


# Choromanski et al. (2021)


def features(attention: str, w: Tensor, x: Tensor) -> Tensor:
    """φ of section 2.3, lemma 1, and of section 2.2; ``x`` is divided by the fourth root of K."""
    half = x @ x / 2
    if attention == "positive":
        return torch.stack([(row @ x - half).exp() for row in w])
    if attention == "hyperbolic":
        return torch.stack([(sign * (row @ x) - half).exp() for sign in (1, -1) for row in w])
    return torch.stack([f(row @ x) * half.exp() for f in (torch.sin, torch.cos) for row in w])


def favor_head(reader: Reader, name: str, number: int, x: Vectors) -> Vectors:
    """A head of exact attention, equation (1), or of attention by features, equation (4)."""
    size = len(x[0]) // reader.heads
    own = slice(number * size, (number + 1) * size)
    q, k, v = ([linear(reader.weights, f"{name}.w_{part}", each)[own] for each in x] for part in "qkv")
    if reader.attention == "softmax":
        return over_what_is_seen(reader, q, k, v, lambda a, b: (a @ b / size**0.5).exp())
    if reader.attention == "relu":
        f = [[y * (y > 0) + 1e-3 for y in each] for each in (q, k)]
    else:
        w = reader.weights[f"{name}.features.w"]
        f = [[features(reader.attention, w, y / size**0.25) for y in each] for each in (q, k)]
    return over_what_is_seen(reader, *f, v, lambda a, b: a @ b)


def performer(reader: Reader, symbols: list[int]) -> Vectors:
    """States of all symbols: norms before attention and before the feed-forward network."""
    weights, x = reader.weights, embedded(reader, symbols)
    for n in range(reader.layers):
        layer = f"layers.{n}"
        read = [norm(weights, f"{layer}.attention_norm", each) for each in x]
        heads = [favor_head(reader, f"{layer}.attention", number, read) for number in range(reader.heads)]
        for i, parts in enumerate(zip(*heads, strict=True)):
            y = x[i] + linear(weights, f"{layer}.attention.w_o", torch.cat(parts))
            inner = norm(weights, f"{layer}.feed_forward_norm", y)
            x[i] = y + feed_forward(weights, f"{layer}.feed_forward", inner)
    return [norm(weights, "norm", each) for each in x]


# Outputs


def symbol_nats(weights: Weights, h: Tensor, symbol: int) -> Tensor:
    """-log of a softmax."""
    logits = linear(weights, "output.projection", h)
    return sum(logit.exp() for logit in logits).log() - logits[symbol]  # type: ignore[union-attr]


def pixel_nats(weights: Weights, h: Tensor, level: int, levels: int) -> Tensor:
    """-log of a mixture of logistics, section 2.1 of Salimans et al. (2017), as differences of probabilities."""
    logits, means, log_scales = linear(weights, "output.projection", h).chunk(3)
    step, total = 2 / (levels - 1), sum(logit.exp() for logit in logits)
    p = torch.zeros(()).double()
    for logit, mean, log_scale in zip(logits, means, log_scales, strict=True):
        x, scale = level * step - 1, log_scale.exp()
        above = 1 if level == levels - 1 else 1 / (1 + (-(x + step / 2 - mean) / scale).exp())
        below = 0 if level == 0 else 1 / (1 + (-(x - step / 2 - mean) / scale).exp())
        p = p + logit.exp() / total * (above - below)
    return -p.log()
