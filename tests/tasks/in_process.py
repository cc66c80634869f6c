"""Variants trained and judged in the process of the test, without a project around them."""

import gzip
import json

import torch


def train(replication, config, prepared, folder):
    """Train every seed in ``folder/seed<k>``; returns what each run's record and number of parameters are."""
    return [
        replication.train(
            config, prepared=prepared, folder=folder / f"seed{seed}", seed=seed, fingerprint="", label=f"seed {seed}"
        )
        for seed in config.seeds
    ]  # fmt: skip


def judge(replication, config, prepared, folder):
    """Judge every trained seed; returns the metrics of each."""
    return [
        replication.evaluate(
            config, prepared=prepared, trained=[folder / f"seed{seed}"], out=folder / f"judged{seed}"
        )
        for seed in config.seeds
    ]  # fmt: skip


def run(replication, config, prepared, folder):
    """Train and judge."""
    train(replication, config, prepared, folder)
    return judge(replication, config, prepared, folder)


def examples_of(folder, seed):
    with gzip.open(folder / f"judged{seed}" / "examples.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def weights_of(folder, seed, name="last"):
    return torch.load(folder / f"seed{seed}" / "checkpoints" / f"{name}.ckpt", weights_only=True)["state_dict"]
