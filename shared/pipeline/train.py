"""The train stage: every seed of a variant, side by side, each continued where it was killed."""

from __future__ import annotations

import csv
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.code import code_of
from shared.pipeline.config import ScaleFile, load_params
from shared.pipeline.files import prepared_folder, run_folder, split_name, write_json
from shared.pipeline.past import TRAINED
from shared.pipeline.provenance import environment, fingerprint, now, peak_memory_mib
from shared.pipeline.weights import check_weights
from shared.records import read_if_whole, read_record
from shared.tasks.prepared import check_prepared
from shared.tasks.sections import check_model, find_route
from shared.training.pool import PRELOAD, Job, limit_threads, run_jobs
from shared.training.processes import Group
from shared.training.progress import Board, Progress, Report

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

WITHOUT_LIGHTNING = ("torch",)
"""Modules that workers import at their start if no network is trained; the import of Lightning takes seconds."""


@alone("runs", shared=True)
def train_stage(name: str, scale: str, seeds: Sequence[int] | None = None) -> None:
    """Train every seed of ``<paper>.<variant>``; a killed run is continued, a finished one is left alone.

    Under torchrun, its processes share each seed's run, one seed after the other.

    Args:
        name: of the variant.
        scale: of its settings.
        seeds: those of the scale that are to be trained now; by default all.

    Raises:
        ReplicationError: the settings are wrong, the task is not fetched, or not prepared with them, or seeds failed;
            the others have been trained to their end by then, but not under torchrun, where a failure ends all
            processes.
    """
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    config = runnable(settings, variant)
    models = import_module(f"replications.{paper}.settings")
    check_model(models, config)
    marks = marks_of(settings, variant, config, chosen_seeds(config.seeds, seeds, f"{settings.path}: '{variant}'"))
    folder = run_folder(paper, scale) / variant / "train"
    group = Group.here()
    jobs = []
    for seed, mark in marks.items():
        label = f"{name} seed {seed}"
        if not is_finished(folder / f"seed{seed}", mark):
            jobs.append(Job(label, train_seed, (str(Path.cwd()), paper, scale, variant, seed, mark)))
        elif group.first:
            print(f"{label}: finished before, kept.")
    if jobs:
        _fetched_hashes(paper, scale, config.task)
    group.meet()
    if group.first:
        _keep_seeds(folder, config.seeds)
    section, _ = find_route(config, models.MODEL, models.ROUTES)
    trains_network = section is None or section[1].trains_network
    if group.size > 1:
        if not trains_network:
            raise ReplicationError(f"{name} trains no network that processes could share; start it without torchrun.")
        reasons = set(run_together(jobs, group)) - {None}
    else:
        reasons = set(run_side_by_side(jobs, PRELOAD if trains_network else WITHOUT_LIGHTNING)) - {None}
    if not group.first:
        return
    if reasons:
        _keep_seeds(folder, ())
        write_json(folder / "not_run.json", {"not_run": reasons.pop()})
    write_curve(folder)


def train_seed(
    root: str, paper: str, scale: str, variant: str, seed: int, mark: str, *, report: Report | None = None
) -> str | None:
    """Train one seed and record what it was made of; runs in a process of its own.

    Args:
        root: the project's folder, which may have another place on another machine's worker.
        paper, scale, variant, seed: of the run.
        mark: its fingerprint.
        report: is told how far training is.

    Returns:
        why this machine cannot run the variant, if it cannot.
    """
    os.chdir(root)
    settings = ScaleFile(paper, scale)
    folder, label = run_folder(paper, scale) / variant / "train" / f"seed{seed}", f"{paper}.{variant} seed {seed}"
    config = settings.run(variant)
    if marks_of(settings, variant, config, [seed])[seed] != mark:
        raise ReplicationError(
            f"{label}: its settings, its data or its code have changed since the training of this variant began; "
            "start it again."
        )
    return train_into(folder, settings, config, seed=seed, mark=mark, label=label, report=report)


def marks_of(settings: ScaleFile, variant: str, config: RunConfig, seeds: Iterable[int]) -> dict[int, str]:
    """The fingerprint of each seed's run.

    Raises:
        ReplicationError: the task is not prepared with these settings.
    """
    prepared = prepared_folder(settings.paper, settings.scale, config.task)
    check_prepared(prepared, config.corpus)
    code = code_of(settings.kind, settings.paper, *settings.lenders([variant]))["train"]
    parameters = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"})
    return {seed: fingerprint([parameters, seed], prepared, code) for seed in seeds}


def train_into(
    folder: Path, settings: ScaleFile, config: RunConfig, *, seed: int, mark: str, label: str, report: Report | None,
    keep_checkpoints: bool = True,
) -> str | None:  # fmt: skip
    """Train one seed of any settings into a folder and record what it was made of.

    Args:
        folder: gets ``run.json`` beside what training writes.
        settings: of the paper at a scale.
        config: of the variant.
        seed: of the run.
        mark: its fingerprint.
        label: names it in what is printed.
        report: is told how far training is.
        keep_checkpoints: whether they stay when training has ended.

    Returns:
        why this machine cannot run the variant, if it cannot.
    """
    from shared.tasks.kinds import load_replication
    from shared.tasks.replication import runner_of

    group, begin, made_by = Group.here(), time.process_time(), environment(settings.path.with_name("dvc.lock"))
    hashes, replication = _fetched_hashes(settings.paper, settings.scale, config.task), load_replication(settings.paper)
    replication.check(config)
    runner, own = runner_of(replication, config)
    if reason := runner.cannot_run(own):
        return reason
    if (last := folder / "checkpoints" / "last.ckpt").exists():  # from which training goes on
        check_weights(last)
    record, count = runner.train(
        own, prepared=prepared_folder(settings.paper, settings.scale, config.task), folder=folder, seed=seed,
        fingerprint=mark, label=label, progress=report,
    )  # fmt: skip
    if not group.first:
        return None
    if not keep_checkpoints:
        shutil.rmtree(folder / "checkpoints")
    write_json(folder / "run.json", {
        **made_by, "parameters": config.model_dump(mode="json"),
        "seed": seed, "fingerprint": mark,
        "data_sha256": hashes,
        "peak_memory_mib": peak_memory_mib(), "parameter_count": count, "processes": group.size, **vars(record),
        "process_seconds": time.process_time() - begin,
        "checkpoints": sorted(path.name for path in (folder / "checkpoints").glob("*.ckpt")),
        "finished": now(),
    })  # fmt: skip
    return None


def _fetched_hashes(paper: str, scale: str, task: str) -> dict[str, str]:
    """The sha256 of each file of a task's data, which a run's record has; read before training, not hours later.

    Raises:
        ReplicationError: the record of the fetch stage cannot be read.
    """
    path = run_folder(paper, scale) / "fetched" / f"{task}.json"
    again = f"run 'python -m shared.pipeline fetch {paper}.{task} --scale {scale}'"
    files = read_record(path, again, {"files": dict})["files"]
    if wrong := [name for name, record in files.items() if not isinstance(record, dict) or "sha256" not in record]:
        raise ReplicationError(f"{path} has no sha256 of {wrong[0]}; {again}.")
    return {name: record["sha256"] for name, record in files.items()}


def runnable(settings: ScaleFile, variant: str) -> Any:
    """The settings of a variant that runs at this scale.

    Raises:
        ReplicationError: it is left out; gives the reason.
    """
    if variant in settings.left_out:
        raise ReplicationError(f"{settings.path}: '{variant}' is left out: {settings.left_out[variant]}.")
    return settings.run(variant)


def chosen_seeds(planned: Sequence[int], seeds: Sequence[int] | None, where: str) -> tuple[int, ...]:
    """The seeds that are asked for, in the order in which they are planned; all of them if none is named.

    Raises:
        ReplicationError: a seed is not planned; ``where``, the file and the variant, stands before the message.
    """
    for seed in seeds or ():
        if seed not in planned:
            raise ReplicationError(f"{where} has no seed {seed}; choose from {', '.join(map(str, planned))}.")
    return tuple(seed for seed in planned if seeds is None or seed in seeds)


def run_side_by_side(jobs: Sequence[Job], preload: Sequence[str]) -> list[Any]:
    """Return the results of the jobs; ``params.yaml`` has the number of workers, which import ``preload`` first."""
    if not jobs:
        return []
    params = load_params()
    workers = params.workers or os.cpu_count() or 1
    return run_jobs(jobs, workers=workers, scheduler=params.scheduler, preload=preload)


def run_together(jobs: Sequence[Job], group: Group) -> list[Any]:
    """Return the results of the jobs, which all processes of the group do together, one after the other."""
    limit_threads(1)
    results = []
    with Board(len(jobs)) if group.first else nullcontext() as board:
        for job in jobs:
            show = partial(_show, board, job.label) if board else None
            results.append(job.function(*job.arguments, report=show))
            if board:
                board.end(job.label)
    return results


def _show(board: Board, label: str, progress: Progress) -> None:
    board.update(label, progress)
    board.tick()


def write_curve(folder: Path) -> None:
    """Write ``curve.csv`` beside the seeds: update and mean validation loss over them, for ``dvc plots``."""
    losses: dict[int, list[float]] = {}
    for path in sorted(folder.glob("seed*/curve.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["split"] == "valid" and row["metric"] == "loss":
                    losses.setdefault(int(row["step"]), []).append(float(row["value"]))
    rows = [(step, f"{sum(values) / len(values):.6g}") for step, values in sorted(losses.items())]
    with (folder.parent / "curve.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("update", "valid_loss"), *rows])


def is_finished(seed_folder: Path, mark: str) -> bool:
    """Whether the seed was trained to its end with this fingerprint, and nobody has deleted a checkpoint since."""
    record = read_if_whole(seed_folder / "run.json", TRAINED)
    if record is None or record["fingerprint"] != mark:
        return False
    return all((seed_folder / "checkpoints" / name).exists() for name in record["checkpoints"])


def _keep_seeds(folder: Path, seeds: Sequence[int]) -> None:
    """Delete everything but the folders of ``seeds``, because ``folder`` persists between runs of the stage."""
    keep = {f"seed{seed}" for seed in seeds}
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
