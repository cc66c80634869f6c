"""A made-up runs folder of classifiers, as the pipeline leaves one, with effects of known direction and size."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shared.metrics.registry import corpus_values
from tests.synthetic_runs import WORDS, write_examples, write_metrics, write_training

CLASSES = ("negative", "neutral", "positive")


@dataclass(frozen=True)
class Classifier:
    """How good a made-up classifier is: share of texts that are right, and rows of attention (0: none)."""

    right: float
    rows: int = 0
    redundancy: float = 0.1
    task: str = "opinions"


CLASSIFIERS = {
    "attention": Classifier(0.8, rows=8),
    "rows-1": Classifier(0.7, rows=1),
    "penalty-0": Classifier(0.74, rows=8, redundancy=0.9),
    "max": Classifier(0.6),
}


def build(folder: Path, variants=CLASSIFIERS, *, seeds=(1, 2, 3), texts=150) -> Path:
    """Write ``folder/<variant>/…`` for every variant; returns ``folder``."""
    for name, variant in variants.items():
        scores = {}
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            rows = [example(index, variant, rng) for index in range(texts)]
            write_examples(folder / name / f"evaluation/seed{seed}/examples.jsonl.gz", rows)
            scores[seed] = corpus_values(rows)
            write_run(folder / name / f"train/seed{seed}", variant, seed)
            if variant.rows:
                write_attention(folder / name / f"evaluation/seed{seed}/attention.npz", variant)
        write_metrics(folder / name, name, variant.task, scores, "text")
    return folder


def example(index, variant, rng):
    """Texts are the same for every variant; the classes take turns."""
    label, right = CLASSES[index % 3], rng.random() < variant.right
    row = {
        "id": f"test-{index}", "split": "test", "length": 10 + index % 20, "label": label,
        "predicted": label if right else CLASSES[(index + 1) % 3], "correct": int(right),
        "cross_entropy": rng.uniform(0.1, 0.5) if right else rng.uniform(1.0, 3.0),
    }  # fmt: skip
    if variant.rows:
        row["rows"] = {"focus": 1.0 - variant.redundancy / 2, "penalty": 1.0}
        row["evidence"] = {"mass": rng.uniform(0.3, 0.5), "found": 1, "words": 2, "length": row["length"]}
        row["deletion"] = {"top": int(right and rng.random() < 0.6), "random": int(right)}
        if variant.rows > 1:
            row["rows"]["redundancy"] = variant.redundancy + rng.gauss(0.0, 0.02)
    return row


def write_run(folder, variant, seed):
    losses = [[step, "valid", "loss", 1.0 / step + seed / 100] for step in range(25, 101, 25)]
    errors = [[step, "valid", "error", 10.0 / step] for step in range(25, 101, 25)]
    record = {"seed": seed, "updates": 100, "parameter_count": 12_345}
    write_training(folder, record, [*losses, *errors])


def write_attention(path, variant, lengths=(24, 12, 40)):
    """Texts of the same words for every variant; each row of A looks at one word most."""
    rng = np.random.default_rng(variant.rows)
    arrays = {}
    for index, length in enumerate(lengths):
        scores = rng.normal(size=(variant.rows, length))
        scores[np.arange(variant.rows), np.arange(variant.rows) % length] = 5.0
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        arrays |= {
            f"words_{index}": np.array([WORDS[(index + 7 * k) % len(WORDS)] for k in range(length)]),
            f"weights_{index}": weights.astype(np.float32), f"label_{index}": np.array("positive"),
            f"predicted_{index}": np.array("positive" if index else "negative"),
            f"evidence_{index}": np.array([0, 3]),
        }  # fmt: skip
    np.savez_compressed(path, **arrays)
