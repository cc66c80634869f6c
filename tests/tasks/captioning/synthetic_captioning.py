"""A made-up runs folder of captioners, as the pipeline leaves one, with effects of known direction and size."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shared.metrics.captioning import bleu_statistics
from shared.metrics.registry import corpus_values
from tests.synthetic_runs import write_examples, write_metrics, write_training

SPLITS = ("test", "test_combinations", "test_pictures")
THINGS = ("banana", "lion", "teapot", "owl", "drum")
SIDE, GRID = 48, 4  # pixels, places in a row


@dataclass(frozen=True)
class Captioner:
    """How good a made-up captioner is: chance that an object is named rightly, on other splits than test 0.3 less.

    Attributes:
        right: that chance.
        mass: attention inside of the boxes, whose share of the image is 0.1; None without attention.
        gate: β at words that name objects, and 0.3 less at others; None without gates.
        task: name; captions of photos have no boxes and no known truth.
        bleu_falls: whether BLEU falls in the last third of the training while likelihood still rises.
    """

    right: float
    mass: float | None = None
    gate: float | None = None
    task: str = "scenes"
    bleu_falls: bool = False


CAPTIONERS = {
    "soft": Captioner(0.9, mass=0.5, gate=0.8, bleu_falls=True),
    "hard": Captioner(0.85, mass=0.7),  # at the quick scale hard attention has no gate
    "mean": Captioner(0.5, gate=0.6),
    "initial": Captioner(0.4),
    "photos-soft": Captioner(0.6, mass=0.3, task="photos"),
}


def build(folder: Path, variants=CAPTIONERS, *, seeds=(1, 2, 3), images=150) -> Path:
    """Write ``folder/<variant>/…`` for every variant; returns ``folder``."""
    for name, variant in variants.items():
        scores = {}
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            rows = [example(index, variant, rng) for index in range(images)]
            write_examples(folder / name / f"evaluation/seed{seed}/examples.jsonl.gz", rows)
            write_attention(folder / name / f"evaluation/seed{seed}/attention.npz", variant)
            scores[seed] = corpus_values([row for row in rows if row["split"] == "test"])
            write_run(folder / name / f"train/seed{seed}", variant, seed)
        write_metrics(folder / name, name, variant.task, scores, "word", signatures={"bleu4": "pycocoevalcap"})
    return folder


def scene(index):
    """Its split and its objects, the same for every variant; 1 to 3 objects take turns."""
    split = SPLITS[index % 3] if index % 2 else "test"
    return split, [THINGS[(index + 2 * k) % len(THINGS)] for k in range(1 + index % 3)]


def example(index, variant, rng):
    photos = variant.task == "photos"
    split, things = ("test", scene(index)[1]) if photos else scene(index)
    chance = variant.right - 0.3 * (split != "test")
    named = [thing if rng.random() < chance else "thing" for thing in things]
    reference, hypothesis = (" and ".join(f"a {word}" for word in words) for words in (things, named))
    references = [reference, f"here is {reference}"]
    tokens, right = 1 + len(reference.split()), sum(a == b for a, b in zip(things, named, strict=True))
    bleu = bleu_statistics([hypothesis], [references])[0].tolist()
    row = {
        "id": f"{split}-{index}", "split": split, "hypothesis": hypothesis,
        "references": references,
        "nll": sum(rng.uniform(0.5, 1.5) for _ in range(tokens)) * (1.2 - variant.right), "tokens": tokens,
        "exact": int(named == things),
        "caption": {"bleu": bleu, "rouge_l": right / len(things)},
    }  # fmt: skip
    if photos:
        return row
    row["objects"] = len(things)
    row["truth"] = {
        "objects": len(things), "named": right, "mentioned": len(things), "right": right, "relations": 1,
        "true": int(named == things), "grammatical": 1, "all_true": int(named == things),
    }  # fmt: skip
    if variant.mass is not None:
        mass, words = variant.mass + rng.gauss(0.0, 0.05), len(things)
        row["regions"] = {"mass": mass * words, "area": 0.1 * words, "hits": float(rng.random() < variant.mass),
                          "centres": 0.1 * words, "words": words, "compared": words if words > 1 else 0,
                          "named": mass * words * (words > 1), "others": 0.1 * words * (words > 1)}  # fmt: skip
        row["generated_regions"] = row["regions"]
    if variant.gate is not None:
        gate = variant.gate + rng.gauss(0.0, 0.05)
        row["gate"] = {"content": [gate, 1], "function": [2 * gate - 0.6, 2], "end": [0.2, 1]}
    return row


def write_run(folder, variant, seed):
    """Forty validations; likelihood rises to the end, and so does BLEU, or it falls in the last third."""
    rng, curve = random.Random(seed), []
    for step in range(10, 401, 10):
        bleu = 40 * variant.right * (1 - 2 ** (-step / 60))
        if variant.bleu_falls and step > 260:
            bleu -= (step - 260) / 20
        curve.append([step, "valid", "loss", 0.5 + 3 * 2 ** (-step / 80)])
        curve.append([step, "valid", "bleu", bleu + rng.gauss(0.0, 0.1)])
    write_training(folder, {"seed": seed, "parameter_count": 35_333_450}, curve)


def write_attention(path, variant, images=6):
    """The same images for every variant, two of each split, every second caption of the scenes wrong."""
    arrays = {"rows": np.array(GRID), "columns": np.array(GRID)}
    for k in range(images):
        words = np.array([*f"a {THINGS[k % len(THINGS)]} above a drum".split()[: 2 + k], "</s>"])
        arrays |= {
            f"id_{k}": np.array(f"{SPLITS[k // 2]}-{k}"), f"words_{k}": words,
            f"image_{k}": np.full((SIDE, SIDE, 3), 40 * k, dtype=np.uint8),
            f"references_{k}": np.array(["a banana above a drum", "there is a drum"]),
        }  # fmt: skip
        if variant.mass is not None:
            weights = np.full((len(words), GRID * GRID), (1 - variant.mass) / (GRID * GRID - 1))
            weights[np.arange(len(words)), np.arange(len(words)) * 3 % (GRID * GRID)] = variant.mass
            arrays[f"weights_{k}"] = weights.astype(np.float32)
        if variant.gate is not None:
            arrays[f"gates_{k}"] = np.linspace(0, variant.gate, len(words)).astype(np.float32)
        if variant.task == "scenes":
            arrays |= {f"boxes_{k}": np.array([[2, 4, 20, 30]]), f"correct_{k}": np.array(k % 2)}
    np.savez_compressed(path, **arrays)
