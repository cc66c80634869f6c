"""A made-up runs folder of models of sequences, as the pipeline leaves one, with studies beside them."""

import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.synthetic_runs import skip, study, write_examples, write_metrics, write_training

UPDATES = 400


@dataclass(frozen=True)
class SequenceModel:
    """How good a made-up model is: nats per symbol at the end, and how soon it gets there."""

    task: str
    nats: float
    soon: float = 60.0
    unit: str = "symbol"
    ends: tuple[int, ...] = ()
    pictures: tuple[int, int, int] | None = None
    patience: int | None = None


MODELS = {
    "copy-softmax": SequenceModel("copy", 0.002, 40.0),
    "copy-linear": SequenceModel("copy", 0.01, 70.0),
    "copy-lsh-1": SequenceModel("copy", 1.2, 90.0),
    "mnist-softmax": SequenceModel("mnist", 0.62, unit="pixel", pictures=(28, 28, 1)),
    "mnist-linear": SequenceModel("mnist", 0.64, unit="pixel", pictures=(28, 28, 1)),
    "cifar10-linear": SequenceModel("cifar10", 2.4, unit="pixel", pictures=(32, 32, 3), patience=3, ends=(200, 300)),
    "transformer": SequenceModel("proteins", 2.5, unit="residue"),
    "trigonometric": SequenceModel("proteins", 2.6, unit="residue", ends=(125, 300)),
}
LENGTHS = {"softmax": range(9, 13), "linear": range(9, 17), "identity": range(9, 17)}
FEATURES = (16, 32, 64, 128, 256)


def build(folder: Path, variants=MODELS, *, seeds=(1, 2, 3)) -> Path:
    """Write ``folder/<variant>/…`` for every variant, two studies and one that was not run; returns ``folder``."""
    for name, model in variants.items():
        for place, seed in enumerate(seeds):
            rng = random.Random(f"{name} {seed}")
            rows = [example(index, model, rng) for index in range(20)]
            evaluation = folder / name / f"evaluation/seed{seed}"
            write_examples(evaluation / "examples.jsonl.gz", rows)
            if model.pictures:
                write_pictures(evaluation / "pictures.npz", model.pictures, seed)
            ends = model.ends[place] if place < len(model.ends) else UPDATES
            write_run(folder / name / f"train/seed{seed}", model, ends, rng)
        metric = "bits" if model.unit == "pixel" else "perplexity"
        scores = {seed: {metric: model.nats} for seed in seeds}
        write_metrics(folder / name, name, model.task, scores, model.unit)
    study(folder, "scaling", "copy", scaling())
    study(folder, "kernels", "proteins", kernels())
    skip(folder, "never-run", "mnist", "for no reason")
    return folder


def scaling():
    found = {}
    for subject, powers in LENGTHS.items():
        for length in (2**power for power in powers):
            quadratic = length**2 * 2e-8 if subject == "softmax" else 0.0
            found[f"{subject}.seconds_n{length}"] = length * 1e-5 + quadratic
            found[f"{subject}.mebibytes_n{length}"] = length / 512 + 50 * quadratic
        found[f"{subject}.time_slope"] = 1.9 if subject == "softmax" else 1.0
        found[f"{subject}.memory_slope"] = 2.0 if subject == "softmax" else 1.0
    return found | {"crossover_linear": 700.0}


def kernels():
    found = {}
    for subject, worse in {"positive_orthogonal": 1.0, "positive_iid": 1.3, "trigonometric_iid": 4e5}.items():
        for features in FEATURES:
            error = worse * 1e-3 / features
            found |= {
                f"{subject}.error_m{features}": error, f"{subject}.error_low_m{features}": error / 1.5,
                f"{subject}.error_high_m{features}": error * 1.5,
            }  # fmt: skip
        found |= {f"{subject}.ratio_a{angle}": math.exp(angle / 30) * worse for angle in range(0, 181, 10)}
    return found


def example(index, model, rng):
    row = {
        "id": f"test-{index}", "split": "test", "nll": 20 * model.nats * rng.uniform(0.9, 1.1), "tokens": 20,
        "unit": model.unit, "units": 20, "length": 20,
    }  # fmt: skip
    return row if model.unit == "pixel" else row | {"hits": round(20 * math.exp(-model.nats))}


def write_run(folder, model, ends, rng):
    """What ends early without patience diverges: its loss rises, and the last is no number."""
    training = {"updates": UPDATES, "patience": model.patience, "may_diverge": True}
    diverges = ends < UPDATES and model.patience is None
    record = {
        "updates": ends, "parameter_count": 1_000, "parameters": {"training": training}, "wall_seconds": 3.0,
        "stopped_because": "the gradient was not finite" if diverges else "made up", "device": "cpu",
    }  # fmt: skip
    rows = []
    for step in range(25, ends + 1, 25):
        loss = model.nats + 2.4 * math.exp(-step / model.soon) * rng.uniform(0.95, 1.05)
        loss *= 60 ** (diverges * step / ends)
        rows.append([step, "valid", "loss", loss])
        if model.unit != "pixel":
            rows.append([step, "valid", "error", 0.9 * (1 - math.exp(-loss))])
    if diverges:
        rows.append([ends + 5, "valid", "loss", math.nan])
    write_training(folder, record, rows)


def write_pictures(path, shape, seed):
    """Discs that the model of every seed draws a little differently."""
    rng = np.random.default_rng(seed)
    true = np.stack([disc(shape, place, 0.0) for place in range(4)])
    drawn = np.stack([disc(shape, place, 0.8) for place in range(4)])
    given = true[0].size // 2
    unseen = np.arange(true[0].size).reshape(shape) >= given
    samples = np.stack([disc(shape, place, rng.uniform(-1, 1)) for place in range(16)])
    np.savez_compressed(
        path, samples=samples, true=true, occluded=np.where(unseen, 0, true).astype(np.uint8),
        completed=np.where(unseen, drawn, true), given=given,
    )  # fmt: skip


def disc(shape, place, shift):
    height, width, channels = shape
    y, x = np.mgrid[:height, :width]
    distance = np.hypot(y - height / 2 - shift, x - width / 2 - shift)
    light = np.clip(255 - 60 * abs(distance - 4 - place % 5), 0, 255)
    return (light[..., None] * np.linspace(1.0, 0.4, channels)).astype(np.uint8)
