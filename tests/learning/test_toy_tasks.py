"""Each model learns what it should be able to learn, from a seed that differs each time."""

import secrets

import numpy as np
import pytest
import torch

from replications.bahdanau.model import RNNsearch
from replications.luong.replication import build_model
from replications.luong.settings import ModelConfig
from replications.transformer.model import Transformer
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.layers.positions import SinusoidalPositions
from shared.tasks.translation.corpus import ParallelText
from shared.training.loss import smoothed_loss

VOCABULARY, UPDATES = 14, 500
LAST_RATE = {"rnnsearch": 0.3, "transformer": 0.0}
"""By how much the learning rate is multiplied at the end; other models need the high rate until then."""


def text_of(pairs, task, generator):
    lines = [generator.integers(4, VOCABULARY, generator.integers(2, 8)).tolist() for _ in range(pairs)]
    targets = [line if task == "copy" else line[::-1] for line in lines]
    lengths = np.array([len(line) for line in lines])
    return ParallelText(RaggedArray.pack(lines), RaggedArray.pack(targets), lengths)


def rnnsearch():
    return RNNsearch(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, embedding_size=24, hidden_size=48,
        alignment_size=48, maxout_size=24, init_std=0.1,
    )  # fmt: skip


def luong(*, input_feeding=False, **attention):
    sizes = {"embedding_size": 48, "hidden_size": 48, "layers": 1, "reverse": True}
    settings = ModelConfig.model_validate(sizes | {"attention": attention, "input_feeding": input_feeding})
    return build_model(settings, VOCABULARY, VOCABULARY)


def transformer():
    return Transformer(
        vocabulary=VOCABULARY, width=48, layers=1, heads=4, key_size=12, value_size=12, hidden_size=96, dropout=0.0,
        positions=SinusoidalPositions(width=48),
    )  # fmt: skip


MODELS = {
    "rnnsearch": rnnsearch,
    "global dot, fed": lambda: luong(score="dot", input_feeding=True),
    "local-m general": lambda: luong(score="general", alignment="local-m", window=2),
    "local-p general, fed": lambda: luong(score="general", alignment="local-p", window=3, input_feeding=True),
    "transformer": transformer,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("rnnsearch", "copy"),
        ("rnnsearch", "reverse"),
        ("global dot, fed", "reverse"),
        ("local-m general", "copy"),
        ("local-p general, fed", "copy"),
        ("transformer", "copy"),
        ("transformer", "reverse"),
    ],
)
def test_attention_learns_to_copy_and_to_reverse(kind, task):
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")  # shown if the test fails
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    generator = np.random.default_rng(seed)
    text = text_of(32 * UPDATES, task, generator)
    model = MODELS[kind]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE.get(kind, 1.0), total_iters=UPDATES)
    for begin in range(0, len(text), 32):
        batch = text.batch(np.arange(begin, begin + 32))
        loss = smoothed_loss(model(batch.source, batch.source_mask, batch.target)[0], batch.labels, 0.0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    unseen = text_of(100, task, generator)
    batch = unseen.batch(np.arange(100))
    lengths = batch.source_mask.sum(1)
    limits = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=lengths // 2, maximum=2 * lengths)
    with torch.no_grad():
        found = greedy_search(model, model.start(batch.source, batch.source_mask), limits).best()
    right = np.mean([line == unseen.target[i].tolist() for i, line in enumerate(found)])
    assert right > 0.8
