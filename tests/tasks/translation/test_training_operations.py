"""Operations of a training run: those of the very batches that it saw, whatever was sampled of them."""

from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn

from replications.bahdanau.replication import REPLICATION
from shared.data.batching import endless_batches
from shared.data.ragged import RaggedArray
from shared.metrics.operations import count_operations
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.evaluation import SAMPLED, training_operations
from tests.tasks.in_process import judge, prepared, run_config, train, write_columns


class Bigrams(nn.Module):
    """B·T·D·V multiply-adds."""

    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(50, 8), nn.Linear(8, 50)

    def forward(self, source, source_mask, target):
        return self.output(self.embedding(target)), None


def text(lengths):
    lines = RaggedArray.pack([[4] * length for length in lengths])
    return ParallelText(lines, lines, lines.lengths)


def order(of):
    return endless_batches((of.target.lengths + 1, of.source.lengths + 1), pool=4, seed=1, sentences=5)


def test_an_ensemble_has_cost_what_its_members_have():
    of = text(range(1, 31))
    one, two = (training_operations(Bigrams(), of, order(of), updates=each, accumulate=1) for each in ([4], [4, 2]))
    assert two["training_operations"] == pytest.approx(1.5 * one["training_operations"], rel=1e-12)


def test_of_many_some_are_counted_from_the_shortest_to_the_longest():
    seen = []

    class Spy(Bigrams):
        def forward(self, source, source_mask, target):
            seen.append(target.size(1) - 1)
            return super().forward(source, source_mask, target)

    of = text(range(200))
    each = (np.array([i]) for i in np.random.default_rng(1).permutation(200))
    found = training_operations(Spy(), of, each, updates=[200], accumulate=1)
    assert len(seen) == SAMPLED
    assert 0 < seen[0] < 200 / SAMPLED
    assert max(np.diff(seen)) - min(np.diff(seen)) <= 1
    assert 200 - 200 / SAMPLED < seen[-1] < 199
    assert found["training_operations"] == pytest.approx(6 * 200 * 100.5 * 8 * 50)
    assert found["forward_multiply_adds_per_label"] == pytest.approx(8 * 50)


@pytest.mark.parametrize("updates", [90, 97, 104])
def test_few_of_many_are_enough_though_their_lengths_vary(updates):
    """Costs that grow faster than the length, and pools whose batches are of like sentences each."""

    class Pairs(nn.Module):
        def forward(self, source, source_mask, target):
            x, y = (torch.ones(1, symbols.size(1), 4) for symbols in (source, target))
            return y @ torch.ones(4, 6), y @ x.mT

    of = text([4 + i * i % 23 for i in range(400)])
    batches = [of.batch(indices) for indices in islice(order(of), updates)]
    shapes = [(len(batch.target), batch.source.size(1), batch.target.size(1)) for batch in batches]
    forward = sum(rows * (4 * 6 * t + 4 * s * t) for rows, s, t in shapes)
    found = training_operations(Pairs(), of, order(of), updates=[updates], accumulate=1)
    assert found["training_operations"] == pytest.approx(6 * forward, rel=0.02)


def test_evaluation_counts_the_batches_of_training(tmp_path):
    corpus = {"source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 20}}
    config = run_config(
        "translation", corpus, seeds=[7], evaluation={"operations": True},
        model={"kind": "rnnsearch", "embedding_size": 4, "hidden_size": 6, "alignment_size": 5, "maxout_size": 4},
        training={"updates": 3, "batch": {"tokens": 12}, "accumulate": 2, "max_words": 6},
    )  # fmt: skip
    for split in ("train", "valid", "test"):
        for side, length in (("a", 2), ("b", 3)):
            lines = (" ".join(f"w{i + j}" for j in range(1 + (i * length) % 7)) for i in range(12))
            write_columns(tmp_path, split, **{side: lines})
    _, text = prepared("translation", corpus, tmp_path, tmp_path / "out")
    train(REPLICATION, config, text.folder, tmp_path)
    (metrics,) = judge(REPLICATION, config, text.folder, tmp_path)
    model, pairs = REPLICATION.model(config, text.sizes), text.split("train").up_to(6)
    lengths, forward = (pairs.target.lengths + 1, pairs.source.lengths + 1), 0
    for batch in map(pairs.batch, islice(endless_batches(lengths, pool=400, seed=7, tokens=12), 3 * 2)):
        forward += count_operations(model, batch.source, batch.source_mask, batch.target)
    assert metrics["training_operations"] == pytest.approx(6 * forward, rel=1e-12)
