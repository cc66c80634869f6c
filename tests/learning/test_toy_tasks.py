"""Each model learns what it should be able to learn, from a seed that differs each time."""

import secrets
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from replications.bahdanau.model import RNNsearch
from replications.luong.replication import build_model
from replications.luong.settings import ModelConfig
from replications.self_attentive.replication import build_model as build_attentive
from replications.self_attentive.settings import ModelConfig as AttentiveConfig
from replications.transformer.model import Transformer
from shared.data.generated.cues import Tally, tally
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.layers.positions import SinusoidalPositions
from shared.tasks.classification.corpus import ClassifiedText
from shared.tasks.translation.corpus import ParallelText
from shared.training.loss import smoothed_loss

VOCABULARY, UPDATES = 14, 500


@pytest.fixture
def seed():
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")  # shown if the test fails
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    return seed


def train(model, text, size, loss_of, *, rate, last, clip):
    """Read a text once, in batches of so many; the learning rate ends as its share ``last``."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, last, total_iters=len(text) // size)
    for begin in range(0, len(text), size):
        loss = loss_of(text.batch(np.arange(begin, begin + size)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()


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


LEARNERS = {
    "rnnsearch": (rnnsearch, "reverse", 0.3),
    "global dot, fed": (partial(luong, score="dot", input_feeding=True), "reverse", 1.0),
    "local-m general": (partial(luong, score="general", alignment="local-m", window=2), "copy", 1.0),
    "local-p, fed": (partial(luong, score="general", alignment="local-p", window=3, input_feeding=True), "copy", 1.0),
    "transformer": (transformer, "reverse", 0.0),
}
"""By how much the learning rate is multiplied at the end stands last; some models need the high rate until then."""


@pytest.mark.slow
@pytest.mark.parametrize(("build", "task", "last"), LEARNERS.values(), ids=LEARNERS)
def test_attention_learns_to_copy_and_to_reverse(build, task, last, seed):
    generator = np.random.default_rng(seed)
    model = build()

    def loss(batch):
        return smoothed_loss(model(batch.source, batch.source_mask, batch.target)[0], batch.labels, 0.0)

    text = text_of(32 * UPDATES, task, generator)
    train(model, text, 32, loss, rate=0.005, last=last, clip=1.0)
    unseen = text_of(100, task, generator)
    batch = unseen.batch(np.arange(100))
    lengths = batch.source_mask.sum(1)
    limits = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=lengths // 2, maximum=2 * lengths)
    with torch.no_grad():
        found = greedy_search(model, model.start(batch.source, batch.source_mask), limits).best()
    right = np.mean([line == unseen.target[i].tolist() for i, line in enumerate(found)])
    assert right > 0.8


READ, UNSEEN = 300 * 32, 300
CUES = {
    "keys": 2, "decoys": 2, "values": 3, "key_forms": 1, "value_forms": 2, "fillers": 12, "gap": 1,
    "votes": [1, 1], "distractors": [1, 2],
}  # fmt: skip
ATTENTIVE = {
    "encoder": "attention", "d": 16, "u": 16, "attention": {"d_a": 16, "r": 3, "penalty": 0.03}, "b": 32,
    "dropout": 0.0, "word_std": 1.0,
}  # fmt: skip


def generated(seed):
    """Training and unseen texts, where in the latter the evidence is, and the number of words."""
    sizes = {"train": READ, "test": UNSEEN}
    splits = {name: {"buckets": [[12, 18]], "per_bucket": size} for name, size in sizes.items()}
    corpus = tally(Tally.model_validate(CUES | {"seed": seed, "splits": splits}))
    train, test = (list(zip(*(segment.texts for segment in corpus[split]), strict=True)) for split in sizes)
    words = sorted({word for text in train[0] for word in text.split()})
    classes = sorted(set(train[1]))
    symbols = {word: number for number, word in enumerate(words, start=4)}

    def encoded(texts, labels, _):
        lines = [[symbols[word] for word in text.split()] for text in texts]
        return ClassifiedText((RaggedArray.pack(lines),), np.array([classes.index(label) for label in labels]))

    places = [[int(position) for position in line.split()] for line in test[2]]
    return encoded(*train), encoded(*test), places, 4 + len(symbols)


def test_the_self_attentive_model_learns_what_decides_and_looks_at_it(seed):
    texts, test, places, vocabulary = generated(seed)
    model = build_attentive(AttentiveConfig.model_validate(ATTENTIVE), vocabulary, CUES["values"] ** CUES["keys"])

    def loss(batch):
        out = model(batch.texts, batch.masks)
        return functional.cross_entropy(out.logits, batch.labels) + out.auxiliary.mean()

    train(model, texts, 32, loss, rate=0.01, last=0.0, clip=0.5)
    batch = test.batch(np.arange(UNSEEN))
    with torch.no_grad():
        out = model(batch.texts, batch.masks)
    assert (out.logits.argmax(1) == batch.labels).float().mean() > 0.8  # by chance 0.11
    importance = out.attention[0].mean(1)  # (E, n)
    mass = np.mean([importance[i, where].sum() for i, where in enumerate(places)])
    by_chance = np.mean([len(where) / length for where, length in zip(places, test.lengths[0], strict=True)])
    assert mass > 2 * by_chance
