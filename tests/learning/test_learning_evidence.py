"""The self-attentive model learns which values count, and looks at them, from a seed that differs each time."""

import secrets

import numpy as np
import torch
from torch.nn import functional

from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.data.generated.cues import Evidence, evidence
from shared.data.ragged import RaggedArray
from shared.tasks.classification.corpus import ClassifiedText

UPDATES, BATCH, UNSEEN = 300, 32, 300
TASK = {
    "keys": 2, "decoys": 2, "values": 3, "key_forms": 1, "value_forms": 2, "fillers": 12, "gap": 1,
    "distractors": [1, 2], "bare": [0, 1],
}  # fmt: skip
MODEL = {
    "encoder": "attention", "d": 16, "u": 16, "attention": {"d_a": 16, "r": 3, "penalty": 0.03}, "b": 32,
    "dropout": 0.0, "word_std": 1.0,
}  # fmt: skip


def generated(seed):
    """Training and unseen texts, where in the latter the evidence is, and the number of words."""
    sizes = {"train": UPDATES * BATCH, "test": UNSEEN}
    splits = {name: {"buckets": [[12, 18]], "per_bucket": size} for name, size in sizes.items()}
    corpus = evidence(Evidence.model_validate(TASK | {"seed": seed, "splits": splits}))
    train, test = (list(zip(*(segment.texts for segment in corpus[split]), strict=True)) for split in sizes)
    words = sorted({word for text in train[0] for word in text.split()})
    classes = sorted(set(train[1]))
    symbols = {word: number for number, word in enumerate(words, start=4)}

    def encoded(texts, labels, _):
        lines = [[symbols[word] for word in text.split()] for text in texts]
        return ClassifiedText((RaggedArray.pack(lines),), np.array([classes.index(label) for label in labels]))

    places = [[int(position) for position in line.split()] for line in test[2]]
    return encoded(*train), encoded(*test), places, 4 + len(symbols)


def test_the_self_attentive_model_learns_what_decides_and_looks_at_it():
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")  # shown if the test fails
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    train, test, places, vocabulary = generated(seed)
    model = build_model(ModelConfig.model_validate(MODEL), vocabulary, TASK["values"] ** TASK["keys"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=UPDATES)
    for begin in range(0, len(train), BATCH):
        batch = train.batch(np.arange(begin, begin + BATCH))
        out = model(batch.texts, batch.masks)
        loss = functional.cross_entropy(out.logits, batch.labels) + out.auxiliary.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    batch = test.batch(np.arange(UNSEEN))
    with torch.no_grad():
        out = model(batch.texts, batch.masks)
    assert (out.logits.argmax(1) == batch.labels).float().mean() > 0.8  # by chance 0.11
    importance = out.attention[0].mean(1)  # (E, n)
    mass = np.mean([importance[i, where].sum() for i, where in enumerate(places)])
    by_chance = np.mean([len(where) / length for where, length in zip(places, test.lengths[0], strict=True)])
    assert mass > 2 * by_chance
