"""A made-up runs folder of language models, as the pipeline leaves one, with effects of known direction and size."""

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

from shared.metrics.registry import corpus_values
from tests.synthetic_runs import write_examples, write_metrics, write_training

MEMORIES = (0, 16, 64, 128)


@dataclass(frozen=True)
class LanguageModel:
    """How good a made-up model is: bits per unit with no context, and what it gains by context up to its reach."""

    bits: float
    reach: int
    memory: int = 32
    task: str = "bible"
    unit: str = "character"
    samples: bool = False
    recalls: bool = False


MODELS = {
    "xl": LanguageModel(2.2, 160, samples=True),
    "shaw": LanguageModel(2.3, 80, samples=True),
    "lstm": LanguageModel(2.5, 60),
    "no-memory": LanguageModel(2.6, 32, memory=0),
    "recall-xl": LanguageModel(5.0, 160, task="recall", unit="word", recalls=True),
    "recall-no-memory": LanguageModel(6.0, 32, memory=0, task="recall", unit="word", recalls=True),
}


def build(folder: Path, variants=MODELS, *, seeds=(1, 2, 3), examples=40) -> Path:
    """Write ``folder/<variant>/…`` for every variant; returns ``folder``."""
    for name, model in variants.items():
        scores = {}
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            rows = [example(index, model, rng) for index in range(examples)]
            place = folder / name / f"evaluation/seed{seed}"
            write_examples(place / "examples.jsonl.gz", rows)
            write_run(folder / name / f"train/seed{seed}", model, seed)
            if model.samples:
                write_samples(place / "samples.json", name)
            scores[seed] = corpus_values(rows)
        write_metrics(folder / name, name, model.task, scores, model.unit)
    return folder


def gained(model, context):
    """Bits that a context of so many symbols saves; without memory the segment is a context of its own."""
    return 0.5 * math.log2(1 + min(context, model.reach) / 8) / math.log2(1 + 160 / 8)


def example(index, model, rng, symbols=160):
    """Every second symbol is a unit of its own, as if the others were parts of words, unless they are characters."""
    units = symbols if model.unit == "character" else symbols / 2

    def nats(context):
        return units * math.log(2) * (model.bits - gained(model, context) + rng.gauss(0.0, 0.02))

    row = {
        "id": f"test-{index}", "split": "test", "tokens": symbols, "unit": model.unit, "units": units,
        "nll": nats(model.memory + 32),
        "positions": [[nats(model.memory + 4 * part) / 8, symbols // 8] for part in range(8)],
    }  # fmt: skip
    if model.memory:
        row["memories"] = {str(memory): nats(memory + 32) for memory in MEMORIES}
    if model.recalls:
        row["recalls"] = {
            str(far): [2.0, 4, sum(rng.random() < (0.95 if far <= model.reach else 0.05) for _ in range(4))]
            for far in (8, 16, 32, 64, 128, 256)
        }
    return row


def write_run(folder, model, seed):
    evaluation = {
        "length": 32, "reach": {"memory": model.memory, "same_length": False, "clamp": None},
        "samples": {"temperature": 0.8, "top_k": 40, "top_p": None} if model.samples else None,
    }  # fmt: skip
    record = {"seed": seed, "updates": 100, "parameter_count": 54_321, "parameters": {"evaluation": evaluation}}
    curve = [[step, "valid", "loss", model.bits + 10.0 / step + seed / 100] for step in range(25, 101, 25)]
    write_training(folder, record, curve)


def write_samples(path, name):
    samples = [
        {"prompt": f"In chapter {part}\nwas | the", "text": f" word of {name}.\nAnd so", "true": f" Word {part}."}
        for part in (1, 2)
    ]
    path.write_text(json.dumps(samples), encoding="utf-8")
