"""A made-up runs folder, as the pipeline leaves one, with effects of known direction and size."""

import csv
import gzip
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sacrebleu.metrics import BLEU

SCORER = BLEU(tokenize="none")
SWING = 0.002  # of a seed's chances
WORDS = [a + b for a in "bdfgklmnprst" for b in ("alo", "emi", "ira", "onu", "uke")]


@dataclass(frozen=True)
class Variant:
    """How good a made-up model is: chance that a word is right, at length 1 and its fall per further word."""

    task: str
    right: float
    fall: float = 0.0
    attention: float | None = None
    parameters: int = 500_000
    updates: int = 400
    operations: float | None = None


TRANSLATORS = {
    "rnnsearch-50": Variant("generated", 0.995, 0.0003, attention=0.92),
    "rnnencdec-50": Variant("generated", 0.95, 0.035, parameters=300_000),
    "rnnencdec-30": Variant("generated", 0.94, 0.04, parameters=300_000),
}


def build(folder: Path, variants=TRANSLATORS, *, seeds=(1, 2, 3), examples=120) -> Path:
    """Write ``folder/<variant>/…`` for every variant; returns ``folder``."""
    for name, variant in variants.items():
        sources = sentences(variant.task, examples)
        scores = {}
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            shift = rng.gauss(0.0, SWING)
            rows = [example(index, *pair, variant, shift, rng) for index, pair in enumerate(sources)]
            write_examples(folder / name / "evaluation" / f"seed{seed}" / "examples.jsonl.gz", rows)
            scores[seed] = summary(rows)
            if variant.operations is not None:
                scores[seed]["training_operations"] = variant.operations
            write_run(folder / name / "train" / f"seed{seed}", name, variant, seed, rng)
            if name in ("rnnsearch-50", "corpus-rnnsearch"):
                write_attention(folder / name / "evaluation" / f"seed{seed}" / "attention.npz", sources, rng)
        write_metrics(folder / name, name, variant.task, scores)
    return folder


def study(folder: Path, name: str, task: str, scores) -> None:
    """A variant that trains nothing: its metrics, and no examples."""
    (folder / name).mkdir(parents=True)
    write_metrics(folder / name, name, task, {1: scores})


def skip(folder: Path, name: str, task: str, reason: str) -> None:
    (folder / name).mkdir(parents=True)
    content = {"variant": name, "task": task, "not_run": reason}
    (folder / name / "metrics.json").write_text(json.dumps(content), encoding="utf-8")


def sentences(task: str, examples: int) -> list[tuple[str, list[str], list[str]]]:
    rng = random.Random(task)
    longest, splits = (15, ["test"] * 5 + ["test_long"]) if task == "generated" else (38, ["test"])
    found = []
    for index in range(examples):
        split = splits[index % len(splits)]
        length = rng.randint(16, 20) if split == "test_long" else rng.randint(3, longest)
        source = [rng.choice(WORDS) for _ in range(length)]
        found.append((split, source, [word[::-1] for word in source]))
    return found


def example(index, split, source, target, variant, shift, rng):
    length = len(source)
    chance = variant.right - variant.fall * length + shift
    chance = min(1.0, max(0.02, chance))
    output = [word if rng.random() < chance else rng.choice(WORDS) for word in target]
    nll = sum(-math.log(chance) * rng.uniform(0.5, 1.5) for _ in range(length + 1)) + 0.01
    (statistics,) = SCORER._extract_corpus_statistics([" ".join(output)], [[" ".join(target)]])
    row = {
        "id": f"test-{index}", "split": split, "source": " ".join(source), "reference": " ".join(target),
        "hypothesis": " ".join(output), "source_length": length, "reference_length": length, "nll": nll,
        "tokens": length + 1, "bleu": statistics, "exact": int(output == target), "unknown": index % 3 == 0,
    }  # fmt: skip
    if variant.attention is not None:
        offsets = [0 if rng.random() < variant.attention else rng.choice((-2, -1, -1, 1, 1, 3)) for _ in target]
        hits = offsets.count(0)
        counts = {str(offset): offsets.count(offset) for offset in sorted(set(offsets))}
        row["alignment"] = {"hits": hits, "words": length, "offsets": counts, "aer": [hits, hits, length, length]}
    return row


def summary(rows):
    """Corpus metrics by other means than the project's: sacreBLEU itself, and plain sums."""
    rows = [row for row in rows if row["split"] == "test"]
    bleu = SCORER._compute_score_from_stats([sum(c) for c in zip(*(row["bleu"] for row in rows), strict=True)])
    mean = sum(row["nll"] for row in rows) / sum(row["tokens"] for row in rows)
    found = {
        "bleu": bleu.score, "chrf": min(100.0, 20.0 + 0.8 * bleu.score), "nll_per_token": mean,
        "perplexity": math.exp(mean), "exact_match": sum(row["exact"] for row in rows) / len(rows),
    }  # fmt: skip
    if "alignment" in rows[0]:
        hits, words = (sum(row["alignment"][key] for row in rows) for key in ("hits", "words"))
        found |= {"alignment_accuracy": hits / words, "aer": 1.0 - hits / words}
    return found


def write_metrics(folder, name, task, scores, token=None, **more):
    mean = {key: float(np.mean([score[key] for score in scores.values()])) for key in next(iter(scores.values()))}
    content = {
        "variant": name, "task": task, "seeds": {str(k): score for k, score in scores.items()}, "mean": mean,
        "token": token or ("word" if task == "generated" else "BPE piece"),
        "signatures": {"bleu": "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"},
    } | more  # fmt: skip
    (folder / "metrics.json").write_text(json.dumps(content), encoding="utf-8")


def write_training(folder, record, curve):
    """The record of a run, and its curve: rows of step, split, metric and value, if it has one."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"updates": 400, "wall_seconds": 6.0, "parameters": {}, "stopped_because": "all updates made"} | record
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    if curve:
        with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines).writerows([["step", "split", "metric", "value"], *curve])


def write_examples(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def rewrite_examples(path, change):
    """Replace the list of examples of a file by what ``change`` makes of it."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    write_examples(path, change(rows))


def change_json(path, change):
    """Read, change in place, write."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_run(folder, name, variant, seed, rng):
    record = {
        "git_commit": "3f2c9d1e5b7a", "git_dirty": False, "dvc_lock_sha256": "ab" * 32, "parameters": {},
        "data_sha256": {f"{variant.task}/train.source": "0f" * 32}, "seed": seed,
        "versions": {"python": "3.11.9", "torch": "2.13.0"}, "device": "cpu",
        "cpu": "made-up processor", "threads": 1, "wall_seconds": 61.5, "updates": variant.updates,
        "tokens_per_second": 9_800.0 + seed, "peak_memory_mib": 611.0,
        "parameter_count": variant.parameters, "finished": f"2026-11-21T10:0{seed}:00Z",
        "stopped_because": "reached the updates asked for",
    }  # fmt: skip
    floor, curve = 4.0 * (1.0 - variant.right + 8 * variant.fall), []
    for step in range(25, variant.updates + 1, 25):
        curve.append([step, "train", "loss", 3.6 * math.exp(-step / 150) + floor])
        curve.append([step, "train", "learning_rate", min(step**-0.5, step * 100**-1.5) / 16])
        loss = 3.6 * math.exp(-step / 150) * (1 + rng.gauss(0, 0.05)) + floor * (1 + rng.gauss(0, 0.02))
        curve.append([step, "valid", "loss", loss])
    write_training(folder, record, curve)


def write_attention(path, sources, rng):
    arrays = {}
    for index, (_, source, target) in enumerate([row for row in sources if 8 <= len(row[1]) <= 16][:4]):
        length = len(source)
        order = list(range(length))
        for j in range(0, length - 1, 3):
            order[j], order[j + 1] = order[j + 1], order[j]
        scores = np.array([[-abs(j - order[i]) * rng.uniform(1.0, 2.5) for j in range(length)] for i in range(length)])
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        arrays |= {
            f"weights_{index}": weights.astype(np.float32), f"source_{index}": np.array(source),
            f"target_{index}": np.array([target[k] for k in order]),
            f"gold_{index}": np.array([(order[i], i) for i in range(length)]),
        }  # fmt: skip
    np.savez_compressed(path, **arrays)


def write_heads(path, sources, layers, heads):
    """Each head looks a little further back than the one before, each layer more sharply."""
    arrays = {}
    for index, (_, source, target) in enumerate([row for row in sources if 6 <= len(row[1]) <= 12][:2]):
        source, target = [*source, "</s>"], [*target, "</s>"]
        sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        for kind, (rows, columns) in sides.items():
            steps = np.arange(len(rows))[:, None] - np.arange(len(columns))
            scores = np.array(
                [[-(layer + 1) * abs(steps - head) / 2.0 for head in range(heads)] for layer in range(layers)]
            )
            if kind == "decoder":
                scores[..., steps < 0] = -np.inf
            weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
            arrays[f"{kind}_{index}"] = weights.astype(np.float16)
        arrays |= {f"source_{index}": np.array(source), f"target_{index}": np.array(target)}
    np.savez_compressed(path, **arrays)
