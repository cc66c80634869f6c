"""Variants trained and judged in the process of the test, without a project around them."""

import gzip
import json
from types import SimpleNamespace

import torch

from shared.tasks.replication import Replication, runner_of


class Trained:
    """Stands for a replication whose models are trained already."""

    def __init__(self, *models):
        self.models = [model.eval() for model in models]

    def trained_models(self, *_):
        return self.models


def paper(kind, model, build_model, routes=(), runners=(), **settings):
    """A replication of toys: ``model`` checks the settings of networks."""
    module = SimpleNamespace(KIND=kind, MODEL=model, ROUTES=dict(routes), **settings)
    return Replication(module, build_model, dict(runners))


def train(replication, config, prepared, folder):
    """Train every seed in ``folder/seed<k>``; returns what each run's record and number of parameters are."""
    runner, config = runner_of(replication, config)
    return [
        runner.train(
            config, prepared=prepared, folder=folder / f"seed{seed}", seed=seed, fingerprint="", label=f"seed {seed}"
        )
        for seed in config.seeds
    ]  # fmt: skip


def judge(replication, config, prepared, folder):
    """Judge every trained seed; returns the metrics of each."""
    runner, config = runner_of(replication, config)
    return [
        runner.evaluate(config, prepared=prepared, trained=[folder / f"seed{seed}"], out=folder / f"judged{seed}")
        for seed in config.seeds
    ]


def run(replication, config, prepared, folder):
    """Train and judge."""
    train(replication, config, prepared, folder)
    return judge(replication, config, prepared, folder)


def examples_of(folder, seed):
    with gzip.open(folder / f"judged{seed}" / "examples.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def weights_of(folder, seed, name="last"):
    return torch.load(folder / f"seed{seed}" / "checkpoints" / f"{name}.ckpt", weights_only=True)["state_dict"]


def draw_kept(exhibit, folder, **sources):
    """What an exhibit draws into ``folder``, of variants by name and the path of what their first seed has kept."""
    results = {
        name: SimpleNamespace(variant=name, seeds=(1,), attention=lambda seed, path=path: path)
        for name, path in sources.items()
    }
    return list(exhibit.draw(results, folder))
