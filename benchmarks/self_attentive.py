"""Speed of the self-attentive classifier, its LSTM beside torch's packed one, as ratios within one run.

    python -m benchmarks.self_attentive [--threads 2] [--out FILE]

At the sizes of the quick scale's posts and of the paper's reviews. The LSTM alone is measured forward and backward over
a batch of texts of similar length and over one of texts in no order; training is whole updates, counted in words that
are read, padding not among them; and an update is taken apart, each part forward and backward by itself. See timing.py
for how contenders are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.timing import Step, run, seconds_in_turns
from replications.self_attentive.model import SelfAttentiveEncoder, TextClassifier
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.attention.structured import redundancy_penalty
from shared.data.batching import Indices, epoch_batches, padding_share
from shared.data.ragged import RaggedArray
from shared.tasks.classification.corpus import ClassifiedBatch, ClassifiedText


class Size(NamedTuple):
    """A model, its optimiser's rate, and the texts that it reads."""

    model: dict[str, object]
    vocabulary: int
    classes: int
    median: int  # words of a text
    longest: int
    adam: bool  # otherwise plain gradient descent


POSTS = {"d": 50, "u": 50, "attention": {"d_a": 50, "r": 10, "penalty": 0.1}, "b": 100}
REVIEWS = {"d": 100, "u": 300, "attention": {"d_a": 350, "r": 30, "penalty": 1.0}, "b": 3000}
SIZES = {
    "quick": Size(POSTS, vocabulary=15_000, classes=20, median=150, longest=200, adam=True),
    "paper": Size(REVIEWS, vocabulary=233_297, classes=5, median=110, longest=1000, adam=False),
}
BATCH, POOL, SAMPLED = 32, 50, 3
ORDERS = {"bucketed": POOL, "unsorted": 1}  # how many batches' texts are sorted by length together
LSTMS = ("ours", "packed")


class PackedLSTM(nn.Module):
    """What BidirectionalLSTM is, by torch's packed sequences."""

    def __init__(self, *, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, I) inputs and their mask (B, n) to (B, n, 2u), zero at padding."""
        packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        h: Tensor = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.size(1))[0]
        return h


def model_of(size: Size, lstm: str) -> TextClassifier:
    """The self-attentive model with one of the two LSTMs."""
    torch.manual_seed(0)
    config = ModelConfig.model_validate(size.model | {"encoder": "attention", "dropout": 0.5})
    model = build_model(config, size.vocabulary, size.classes)
    if lstm == "packed":
        model.encoder.lstm = PackedLSTM(input_size=config.d, hidden_size=config.u)
    return model


def batches_of(size: Size, order: str) -> tuple[list[ClassifiedBatch], float]:
    """Some batches of random texts, evenly from short to long ones, and the share of padding in all batches."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(size.median), 0.7, BATCH * POOL).astype(int), 5, size.longest)
    lines = [rng.integers(4, size.vocabulary, length).tolist() for length in lengths]
    text = ClassifiedText((RaggedArray.pack(lines),), rng.integers(0, size.classes, len(lines)))
    indices = epoch_batches(text.lengths, pool=ORDERS[order], seed=1, epoch=0, sentences=BATCH)

    def words(batch: Indices) -> int:
        return int(text.lengths[0][batch].sum())

    step = POOL // SAMPLED
    sampled = sorted(indices, key=words)[step // 2 :: step][:SAMPLED]
    return [text.batch(batch) for batch in sampled], padding_share(text.lengths, indices)


def optimizer_of(size: Size, model: nn.Module) -> torch.optim.Optimizer:
    """As the scale has it."""
    if size.adam:
        return torch.optim.Adam(model.parameters(), fused=True)
    return torch.optim.SGD(model.parameters(), lr=0.06, weight_decay=2e-4, fused=True)


def updates(size: Size, lstm: str, batches: Iterable[ClassifiedBatch]) -> Step:
    """A function that makes one whole update with every batch: forward, backward, clipping and optimiser."""
    model = model_of(size, lstm)
    optimizer = optimizer_of(size, model)

    def step() -> None:
        for batch in batches:
            out = model(batch.texts, batch.masks)
            assert out.auxiliary is not None
            (cross_entropy(out.logits, batch.labels) + out.auxiliary.mean()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()

    return step


def contender(name: str) -> Step:
    """The updates of a contender."""
    lstm, size = name.split(", ")
    return updates(SIZES[size], lstm, batches_of(SIZES[size], "bucketed")[0])


NAMES = [f"{lstm}, {size}" for size in SIZES for lstm in LSTMS]
CONTENDERS = {name: partial(contender, name) for name in NAMES}


def lstm_alone(turns: int) -> dict[str, object]:
    """Milliseconds forward and backward over a batch of middling length, and how many times as fast as packed."""
    figures: dict[str, object] = {}
    for name, size in SIZES.items():
        models = {lstm: model_of(size, lstm) for lstm in LSTMS}
        for order in ORDERS:
            batch = batches_of(size, order)[0][SAMPLED // 2]
            mask = batch.masks[0]
            s = models["ours"].embedding(batch.texts[0]).detach()
            lstms = {lstm: model.get_submodule("encoder.lstm") for lstm, model in models.items()}
            steps = {which: both_ways(lstm, s, fixed=(mask,)) for which, lstm in lstms.items()}
            seconds = seconds_in_turns(steps, turns)
            packed = seconds["packed"]
            figures[f"{name}, {order}"] = {
                lstm: {"milliseconds": round(1000 * value, 1), "times_packed": round(packed / value, 2)}
                for lstm, value in seconds.items()
            }
    return figures


def training(turns: int) -> dict[str, object]:
    """Words per second of both LSTMs in both orders, and how many times those of the packed one in no order."""
    figures: dict[str, object] = {}
    for name, size in SIZES.items():
        batches, padding = {}, {}
        for order in ORDERS:
            batches[order], padding[order] = batches_of(size, order)
        steps = {(lstm, order): updates(size, lstm, batches[order]) for lstm in LSTMS for order in ORDERS}
        seconds = seconds_in_turns({", ".join(key): step for key, step in steps.items()}, turns)
        words = {order: sum(batch.tokens for batch in batches[order]) for order in ORDERS}
        rates = {key: words[key[1]] / seconds[", ".join(key)] for key in steps}
        figures[name] = {
            ", ".join(key): {
                "words_per_second": round(rate),
                "times_packed_unsorted": round(rate / rates["packed", "unsorted"], 2),
                "padding_share": round(padding[key[1]], 3),
            }
            for key, rate in rates.items()
        }
    return figures


def both_ways(module: nn.Module, *inputs: Tensor, fixed: tuple[Tensor, ...] = ()) -> Step:
    """Forward and backward of ``module(*inputs, *fixed)``, to its parameters and to the inputs of real numbers."""
    known = [tensor.detach().requires_grad_(tensor.is_floating_point()) for tensor in inputs]
    wanted = [*(tensor for tensor in known if tensor.requires_grad), *module.parameters()]

    def step() -> None:
        torch.autograd.grad(module(*known, *fixed).sum(), wanted)

    return step


class Embedded(nn.Module):
    """M of annotations H, by the encoder's attention."""

    def __init__(self, encoder: SelfAttentiveEncoder) -> None:
        super().__init__()
        self.attention = encoder.attention

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """(B, n, D) and (B, n) to (B, r, D)."""
        m: Tensor = self.attention(h, mask) @ h
        return m


class Penalty(nn.Module):
    """P as a module."""

    def forward(self, a: Tensor) -> Tensor:
        """(B, r, n) to (B,)."""
        return redundancy_penalty(a)


def parts_of(size: Size, batch: ClassifiedBatch) -> dict[str, Step]:
    """An update and its parts, each forward and backward."""
    model, (text,), (mask,) = model_of(size, "ours"), batch.texts, batch.masks
    encoder = model.encoder
    assert isinstance(encoder, SelfAttentiveEncoder)
    s = model.embedding(text)
    h = encoder.lstm(s, mask)
    a = encoder.attention(h, mask)
    trained = model_of(size, "ours")
    optimizer = optimizer_of(size, trained)
    for parameter in trained.parameters():
        parameter.grad = torch.randn_like(parameter)

    def optimise() -> None:
        nn.utils.clip_grad_norm_(trained.parameters(), 0.5)
        optimizer.step()

    return {
        "update": updates(size, "ours", [batch]),
        "word vectors": both_ways(model.embedding, text),
        "LSTM": both_ways(encoder.lstm, s, fixed=(mask,)),
        "attention and M": both_ways(Embedded(encoder), h, fixed=(mask,)),
        "penalty": both_ways(Penalty(), a),
        "MLP": both_ways(model.mlp, a @ h),
        "clipping and optimiser": optimise,
    }


def shares(turns: int) -> dict[str, object]:
    """Milliseconds of an update with a bucketed batch of middling length, and of its parts the share of that."""
    figures: dict[str, object] = {}
    for name, size in SIZES.items():
        seconds = seconds_in_turns(parts_of(size, batches_of(size, "bucketed")[0][SAMPLED // 2]), turns)
        figures[name] = {
            part: {"milliseconds": round(1000 * value, 2), "share": round(value / seconds["update"], 3)}
            for part, value in seconds.items()
        }
    return figures


def measure(turns: int) -> dict[str, object]:
    """All figures but memory."""
    few = max(1, turns // 4)  # what a packed LSTM reads at the paper's size takes seconds
    return {
        "lstm_forward_and_backward": lstm_alone(few),
        "training": training(few),
        "parts_of_an_update": shares(turns),
    }


if __name__ == "__main__":
    run("benchmarks.self_attentive", __doc__, CONTENDERS, measure)
