"""Trained models by name: those of this machine, else the one of each paper whose weights come with the project."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import REPLICATIONS, made_anew, paper_folder, split_name, write_json
from shared.pipeline.runs import chosen_seeds, runnable
from shared.pipeline.stages import prepared_for
from shared.pipeline.weights import check_weights, refusing_other_weights
from shared.records import read_record
from shared.tasks.kinds import large_imports, load_replication, open_data, part_of
from shared.tasks.settings import trains_network

PUBLISHED = "pretrained"
"""``replications/<paper>/pretrained/<scale>/`` has a model as ``runs`` has it, and of its data what ``try`` reads."""
ABOUT = {"seed": int, "git_commit": str, "finished": str, "fingerprint": str}
"""What is kept of the record of a published run, beside the hash of its weights before they were rounded."""


class TrainedModel(NamedTuple):
    """A trained network, ready to be given input.

    Attributes:
        network: in evaluation mode.
        data: the prepared task, of which a published model has the test splits alone.
        config: the variant's settings.
        seed: of the run.
        origin: a sentence that says whose weights these are.
    """

    network: Any
    data: Any
    config: Any
    seed: int
    origin: str


def load_model(name: str, scale: str = "quick", seed: int | None = None) -> TrainedModel:
    """The trained model of ``<paper>.<variant>``: one of this machine's, else the one that comes with the project.

    Args:
        name: the paper and the variant.
        scale: of its runs.
        seed: of the run; the first that has a checkpoint unless given.

    Raises:
        ReplicationError: there is none, the variant trains no network, or its weights are not those of its settings.
    """
    settings, variant, config = _network(name, scale)
    if run := _own_run(settings, variant, config, seed):
        prepared, origin = prepared_for(settings, config, _seed_of(run)), f"The weights are this machine's, of {run}."
    else:
        run = _published_run(settings, variant, seed)
        prepared = run.parents[2] / "tasks" / config.task
        about = read_record(run / "about.json", "take it from git again", ABOUT)
        origin = (
            f"The weights come with the project, which trained them at commit {about['git_commit'][:8]} "
            f"({about['finished'][:10]}) and rounded them to half precision; those that you train go first."
        )
    with large_imports():
        from shared.tasks.replication import runner_of
    runner: Any
    runner, config = runner_of(load_replication(settings.paper), config)
    data = runner.open(config, prepared)
    check_weights(_weights(run, config))
    with refusing_other_weights(variant, [run]):
        (network,) = runner.trained_models(config, data, [run])
    return TrainedModel(network, data, config, _seed_of(run), origin)


def at_root() -> None:
    """Make the project's folder the current one, as a notebook begins in the folder that it lies in."""
    here = Path.cwd()
    os.chdir(next((folder for folder in (here, *here.parents) if (folder / REPLICATIONS).is_dir()), here))


def publish_stage(name: str, scale: str, *, seed: int | None = None) -> None:
    """Let the weights of one run come with the project, in half precision, in place of what the paper had.

    Raises:
        ReplicationError: the run is not on this machine, or is damaged.
    """
    from shared.training.checkpoints import load_checkpoint, save_checkpoint

    settings, variant, config = _network(name, scale)
    run = _own_run(settings, variant, config, seed)
    if run is None:
        raise ReplicationError(f"{name} has no such run here; run '{_training(settings.paper, scale, variant)}' first.")
    prepared, weights = prepared_for(settings, config, _seed_of(run)), _weights(run, config)
    check_weights(weights)
    record = read_record(run / "run.json", "train it again", ABOUT)
    about = {key: record[key] for key in ABOUT} | {"weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}
    state = load_checkpoint(weights)["state_dict"]
    halves = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
    with made_anew(folder := paper_folder(settings.paper) / PUBLISHED / scale) as out:
        of = out / variant / "train" / run.name
        (of / "checkpoints").mkdir(parents=True)
        save_checkpoint({"state_dict": halves}, of / "checkpoints" / weights.name)
        write_json(of / "about.json", about)
        tasks = out / "tasks" / config.task
        shutil.copytree(prepared, tasks, ignore=shutil.ignore_patterns("train", "valid"))
        trial = part_of(settings.kind, "trial")
        if hasattr(trial, "publish"):
            trial.publish(open_data(config, prepared), config, tasks)
    print(f"{folder}: the weights of {name}, seed {record['seed']}.")


def _network(name: str, scale: str) -> tuple[ScaleFile, str, Any]:
    """The settings of the paper of ``<paper>.<variant>``, the variant, and its own settings if it trains a network."""
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    if variant in settings.left_out:
        scales = sorted(scales_of(paper), key=lambda each: each not in ("quick", "bench"))
        if others := [each for each in scales if variant in ScaleFile(paper, each).variants]:
            raise ReplicationError(
                f"{name} does not run at the scale {scale}; give --scale {others[0]}, after 'python -m "
                f"shared.pipeline use {others[0]} && {_training(paper, others[0], variant)}'."
            )
    config = runnable(settings, variant)
    if not trains_network(config, settings.models):
        raise ReplicationError(
            f"{name} is a study, which trains no network that could be tried; choose another variant."
        )
    return settings, variant, config


def _training(paper: str, scale: str, variant: str) -> str:
    return f"dvc repro replications/{paper}/{scale}/dvc.yaml:train@{variant}"


def _seed_of(run: Path) -> int:
    return int(run.name.removeprefix("seed"))


def _weights(run: Path, config: Any) -> Path:
    return run / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt"


def _own_run(settings: ScaleFile, variant: str, config: Any, seed: int | None) -> Path | None:
    """The folder of the first run, or of the seed given, whose checkpoint is on this machine."""
    seeds = chosen_seeds(config.seeds, seed if seed is None else [seed], f"{settings.path}: '{variant}'")
    runs = (settings.folder(variant) / "train" / f"seed{each}" for each in seeds)
    return next((run for run in runs if _weights(run, config).is_file()), None)


def _published_run(settings: ScaleFile, variant: str, seed: int | None) -> Path:
    """The folder of the run of this variant, and seed if one is given, that comes with the project."""
    runs = sorted((paper_folder(settings.paper) / PUBLISHED / settings.scale).glob("*/train/seed*"))
    for run in runs:
        if run.parents[1].name == variant and seed in (None, _seed_of(run)):
            return run
    name, of = f"{settings.paper}.{variant}", "" if seed is None else f" of seed {seed}"
    there = "".join(f", or try {settings.paper}.{run.parents[1].name}, whose weights are there" for run in runs)
    raise ReplicationError(
        f"{name} has no trained model{of} at the scale {settings.scale}; run "
        f"'{_training(settings.paper, settings.scale, variant)}' first{there}."
    )
