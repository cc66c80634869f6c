"""The stages of a variant's runs: its seeds are trained side by side, each from where it was killed, then evaluated."""

from __future__ import annotations

import csv
import os
import shutil
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from shared.claims.results import COSTS, REPORTED, read_costs, read_curve
from shared.errors import ReplicationError
from shared.metrics.registry import MEASURES
from shared.pipeline.code import code_of
from shared.pipeline.config import ScaleFile, lenders, load_params
from shared.pipeline.files import alone, run_folder, write_json
from shared.pipeline.provenance import environment, fingerprint, machine, now, peak_memory_mib
from shared.pipeline.stages import prepared_folder, prepared_for
from shared.records import read_if_whole, read_record
from shared.tasks.kinds import large_imports, load_measures, load_replication
from shared.tasks.settings import RunConfig, check_model, trains_network
from shared.training.pool import PRELOAD, Job, limit_threads, run_jobs
from shared.training.processes import Group
from shared.training.progress import LISTENER, Board, logging_to

TRAINED = REPORTED | {"fingerprint": str, "checkpoints": list, "processor_seconds": int | float}
"""What the stages need of the record of a run; one that lacks it is trained again."""
JUDGED = {"parameters": dict, "processor_seconds": dict}
"""What they need of the record of an evaluation."""
JUDGED_BY = ("corpus", "evaluation", "decoding")
"""Sections of a variant's settings that its scores depend on, beside those of its weights."""
TRAIN_AGAIN, EVALUATE_AGAIN = "run its train stage again", "run its evaluate stage again"
FEW = 4
"""Number of scores of a variant that ``dvc metrics`` shows."""


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
    settings, variant, config, chosen = _opened(name, scale, seeds)
    folder, group = settings.folder(variant) / "train", Group.here()
    trainings = training_jobs(settings, variant, chosen, lambda seed, mark: folder / f"seed{seed}", name)
    if jobs := [job for _, job in trainings.values() if job is not None]:
        _fetched_hashes(settings, config.task)
    group.meet()
    if group.first:
        _keep(folder, {f"seed{seed}" for seed in config.seeds})
    trains = trains_network(config, settings.models)
    if group.size == 1:
        reasons = set(run_side_by_side(jobs, settings.paper, trains, name)) - {None}
    elif trains:
        reasons = set(_run_together(jobs, group)) - {None}
    else:
        raise ReplicationError(f"{name} trains no network that processes could share; start it without torchrun.")
    if not group.first:
        return
    if reasons:
        _keep(folder, ())
        write_json(folder / "not_run.json", {"not_run": reasons.pop()})
    _write_curve(folder)


def _opened(name: str, scale: str, seeds: Sequence[int] | None) -> tuple[ScaleFile, str, Any, tuple[int, ...]]:
    """Settings of the paper of ``<paper>.<variant>``, the variant, its checked settings, and those of its seeds."""
    settings, variant = ScaleFile.named(name, scale)
    config = runnable(settings, variant)
    check_model(settings.models, config)
    return settings, variant, config, chosen_seeds(config.seeds, seeds, f"{settings.path}: '{variant}'")


def training_jobs(
    settings: ScaleFile, variant: str, seeds: Iterable[int], place: Callable[[int, str], Path], label: str,
    trial: dict[str, Any] | None = None,
) -> dict[int, tuple[Path, Job | None]]:  # fmt: skip
    """Seed to the folder of its training, and the job that trains it; none where it is finished, which is printed.

    Args:
        settings, variant, seeds: of the runs.
        place: from a seed and the fingerprint of its run to the folder.
        label: with the seed, names a run in what is printed.
        trial: as of :func:`train_seed`.
    """
    found: dict[int, tuple[Path, Job | None]] = {}
    for seed, mark in marks_of(settings, settings.run(variant, trial), seeds).items():
        folder, named = place(seed, mark), f"{label} seed {seed}"
        run = settings.paper, settings.scale, variant, seed, mark, named, folder, trial
        found[seed] = folder, None if is_finished(folder, mark) else Job(named, train_seed, run)
        if found[seed][1] is None and Group.here().first:
            print(f"{named}: finished before, kept.")
    return found


def train_seed(
    paper: str, scale: str, variant: str, seed: int, mark: str, label: str, folder: Path,
    trial: dict[str, Any] | None = None,
) -> str | None:  # fmt: skip
    """Train one seed and record what it was made of; runs in a process of its own.

    Args:
        paper, scale, variant, seed: of the run.
        mark: its fingerprint.
        label: names it in what is printed.
        folder: gets ``run.json`` beside what training writes.
        trial: settings that are laid over the variant's, for a run of which no checkpoint is kept.

    Returns:
        why this machine cannot run the variant, if it cannot.
    """
    settings, group, begin = ScaleFile(paper, scale), Group.here(), time.process_time()
    config = settings.run(variant, trial)
    if marks_of(settings, config, [seed])[seed] != mark:
        raise ReplicationError(f"{label}: settings, data or code have changed since the stage began; start it again.")
    made_by = environment(settings.path.with_name("dvc.lock"))
    hashes = _fetched_hashes(settings, config.task)
    runner, own = load_runner(paper, config)
    if reason := runner.cannot_run(own):
        return reason
    if (last := folder / "checkpoints" / "last.ckpt").exists():  # from which training goes on
        check_weights(last)
    logger = load_params().logger if trial is None else "csv"  # the trials of a search have one variant and seed
    with logging_to(logger, f"{scale}/{paper}.{variant}/seed{seed}"):
        record, count = runner.train(
            own, prepared=prepared_for(settings, config, seed), folder=folder, seed=seed, fingerprint=mark, label=label
        )
    if not group.first:
        return None
    if trial is not None:
        shutil.rmtree(folder / "checkpoints")
    write_json(folder / "run.json", made_by | {
        "parameters": config.model_dump(mode="json"), "seed": seed, "fingerprint": mark, "data_sha256": hashes,
        "peak_memory_mib": peak_memory_mib(), "parameter_count": count, "processes": group.size, **vars(record),
        "process_seconds": time.process_time() - begin,
        "checkpoints": sorted(path.name for path in (folder / "checkpoints").glob("*.ckpt")), "finished": now(),
    })  # fmt: skip
    return None


def load_runner(paper: str, config: RunConfig) -> tuple[Any, Any]:
    """What trains and judges a variant, and the settings that it takes; this imports torch and Lightning."""
    with large_imports():
        from shared.tasks.replication import runner_of

    return runner_of(load_replication(paper), config)


def marks_of(settings: ScaleFile, config: RunConfig, seeds: Iterable[int]) -> dict[int, str]:
    """The fingerprint of each seed's run.

    Raises:
        ReplicationError: the task is not prepared with these settings.
    """
    code = code_of(settings.kind, settings.paper, *lenders(config))["train"]
    parameters = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"})
    return {seed: fingerprint([parameters, seed], prepared_for(settings, config, seed), code) for seed in seeds}


def check_weights(path: Path) -> None:
    """Refuse a checkpoint whose content has changed since it was written; one that is no archive fails when it is read.

    Torch checks no checksum, and would load changed weights. This reads the file once: 0.02 processor seconds for
    30 MB, less than loading it takes.

    Raises:
        ReplicationError: a checksum is wrong.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            whole = archive.testzip() is None
    except zipfile.BadZipFile:
        return
    except (RuntimeError, EOFError, ValueError, zlib.error):  # a header was overwritten
        whole = False
    if not whole:
        raise ReplicationError(f"{path} is damaged; delete it and train again.")


@contextmanager
def refusing_other_weights(variant: str, trained: Sequence[Path]) -> Iterator[None]:
    """Say in one sentence that weights do not fit the model that they are loaded into.

    Args:
        variant: that is to be trained again.
        trained: folders of its runs.

    Raises:
        ReplicationError: they have other names or sizes, or are none; other errors stay what they are.
    """
    try:
        yield
    except (RuntimeError, LookupError, TypeError, AttributeError) as error:
        if not any(frame.name == "load_weights" for frame in traceback.extract_tb(error.__traceback__)):
            raise
        places = " or ".join(map(str, trained))
        raise ReplicationError(f"the weights in {places} are not of today's settings; train {variant} again.") from None


def _fetched_hashes(settings: ScaleFile, task: str) -> dict[str, str]:
    """The sha256 of each file of a task's data, which a run's record has; read before training, not hours later."""
    path = run_folder(settings.paper, settings.scale) / "fetched" / f"{task}.json"
    again = f"run 'python -m shared.pipeline fetch {settings.paper}.{task} --scale {settings.scale}'"
    return {name: record["sha256"] for name, record in read_record(path, again, {"files": dict})["files"].items()}


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


def run_side_by_side(jobs: Sequence[Job], paper: str, trains: bool, title: str = "") -> list[Any]:
    """Return the results of the jobs; ``params.yaml`` has the number of workers.

    Args:
        jobs: of one paper.
        paper: its name. What a job imports of it and of this module is imported once for all workers.
        trains: whether networks are trained; the import of Lightning takes a second.
        title: what the jobs are a part of.
    """
    if not jobs:
        return []
    params, first = load_params(), PRELOAD if trains else ("torch",)
    preload = (*first, __name__, f"replications.{paper}.replication")
    workers = params.workers or os.cpu_count() or 1
    return run_jobs(jobs, workers=workers, scheduler=params.scheduler, preload=preload, title=title)


def _run_together(jobs: Sequence[Job], group: Group) -> list[Any]:
    """Return the results of the jobs, which all processes of the group do together, one after the other."""
    limit_threads()
    results = []
    with Board(len(jobs)) if group.first else nullcontext() as board:
        for job in jobs:
            if board:
                LISTENER.set(partial(board.show, job.label))
            results.append(job.function(*job.arguments))
            if board:
                board.end(job.label)
    return results


def _write_curve(folder: Path) -> None:
    """Write ``curve.csv`` beside the seeds: update and mean validation loss over them, for ``dvc plots``."""
    curves = [read_curve(path, metric="loss", split="valid") for path in sorted(folder.glob("seed*/curve.csv"))]
    rows = []
    for step in sorted({step for curve in curves for step in curve}):
        values = [curve[step] for curve in curves if step in curve]
        rows.append((step, f"{sum(values) / len(values):.6g}"))
    with (folder.parent / "curve.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("update", "valid_loss"), *rows])


def is_finished(seed_folder: Path, mark: str) -> bool:
    """Whether the seed was trained to its end with this fingerprint, and nobody has deleted a checkpoint since."""
    record = read_if_whole(seed_folder / "run.json", TRAINED)
    if record is None or record["fingerprint"] != mark:
        return False
    return all((seed_folder / "checkpoints" / name).exists() for name in record["checkpoints"])


def _keep(folder: Path, names: Collection[str]) -> None:
    """Make a folder, or delete everything in it but some names, as it persists between runs of a stage."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@alone("runs")
def evaluate_stage(name: str, scale: str, seeds: Sequence[int] | None = None) -> None:
    """Evaluate every trained seed of ``<paper>.<variant>``, and their ensemble if asked; write its ``metrics.json``.

    Seeds whose weights are not on this machine keep what :func:`shared.pipeline.pack.unpack_stage` has brought.

    Args:
        name, scale: of the variant.
        seeds: those that are to be evaluated, and are then all that a report sees; by default all. A part of them has
            no ensemble.

    Raises:
        ReplicationError: the settings are wrong, or a seed is not trained to its end; or an ensemble lacks weights.
            What was evaluated before is then still there.
    """
    settings, variant, config, chosen = _opened(name, scale, seeds)
    prepared_folder(settings, config)  # refuses other data than those of the settings
    content: dict[str, Any] = {"variant": variant, "task": config.task}
    folder = settings.folder(variant)
    out, not_run = folder / "evaluation", folder / "train" / "not_run.json"
    if not_run.exists():
        reason = read_record(not_run, TRAIN_AGAIN, {"not_run": str})
        _keep(out, ())
        write_metrics(folder, content | reason)
        return
    kept = _without_weights(folder, chosen)
    own = [seed for seed in chosen if seed not in kept]
    with_ensemble = config.has_ensemble and chosen == tuple(config.seeds)
    if kept and (changed := judged_otherwise(folder, config)):
        since = f"was judged on another machine, which has its weights, before {' and '.join(changed)} changed"
        raise ReplicationError(f"{name}: seed {min(kept)} {since}; train it here, or take the change back.")
    if kept and own and with_ensemble:
        raise ReplicationError(f"{name}: the ensemble needs the weights of seed {min(kept)}; train it here.")
    marks = {seed: mark for seed, mark in read_costs(folder).get("fingerprints", {}).items() if int(seed) in kept}
    marks |= {str(seed): trained_mark(folder / "train" / f"seed{seed}", config) for seed in own}
    groups = {f"seed {seed}": (seed,) for seed in own} | ({"ensemble": chosen} if own and with_ensemble else {})
    if kept:
        content = read_record(folder / "metrics.json", EVALUATE_AGAIN, {"seeds": dict})
        if content["seeds"].keys() != {*map(str, chosen)}:
            content.pop("ensemble", None)
    elif (out / COSTS).exists():  # all that metrics.json summarises is made anew
        (folder / "metrics.json").unlink(missing_ok=True)
    if own:
        _keep(out, {COSTS, *(f"seed{seed}" for seed in kept)} if kept else ())
    else:
        print(f"{name}: judged where it was trained, kept.")
    results = _judge(settings, variant, config, groups, marks) if groups else {}
    scores = {str(seed): kept[seed] if seed in kept else results[f"seed {seed}"]["metrics"] for seed in chosen}
    content |= {"seeds": scores, "mean": means(scores.values())}
    if "ensemble" in results:
        content["ensemble"] = results["ensemble"]["metrics"]
    write_metrics(folder, content | next((result["descriptions"] for result in results.values()), {}))


def _judge(
    settings: ScaleFile, variant: str, config: Any, groups: Mapping[str, tuple[int, ...]], marks: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Evaluate each group of seeds, and record what that has cost and which runs were judged; what comes of each."""
    name = f"{settings.paper}.{variant}"
    jobs = [
        Job(f"{name} {label}: evaluation", evaluate_seeds, (settings.paper, settings.scale, variant, label, members))
        for label, members in groups.items()
    ]
    found = run_side_by_side(jobs, settings.paper, False, f"{name}: evaluation")
    write_json(settings.folder(variant) / "evaluation" / COSTS, found[0]["machine"] | {
        "parameters": config.model_dump(mode="json", exclude={"seeds"}),
        "processor_seconds": {label: result["seconds"] for label, result in zip(groups, found, strict=True)},
        "fingerprints": marks,
    })  # fmt: skip
    return dict(zip(groups, found, strict=True))


def evaluate_seeds(paper: str, scale: str, variant: str, label: str, members: tuple[int, ...]) -> dict[str, Any]:
    """Evaluate one trained seed, or several together as an ensemble; runs in a process of its own.

    Args:
        paper, scale, variant: of the run.
        label: names the folder of what is written.
        members: seeds.

    Returns:
        ``metrics`` by name, rounded; ``descriptions``, what a reader of them must know: signatures, and what one token
        is; processor ``seconds``; and the ``machine``, with its threads: the process that leads workers may have more.
    """
    begin = time.process_time()
    settings = ScaleFile(paper, scale)
    config = settings.run(variant)
    load_measures(settings.kind)
    runner, own = load_runner(paper, config)
    folder, prepared = settings.folder(variant), prepared_for(settings, config, members[0])
    trained = [folder / "train" / f"seed{seed}" for seed in members]
    for weights in [path for run in trained for path in sorted(run.glob("checkpoints/*.ckpt"))]:
        check_weights(weights)
    out = folder / "evaluation" / label.replace(" ", "")
    with refusing_other_weights(variant, trained):
        metrics = runner.evaluate(own, prepared=prepared, trained=trained, out=out)
    return {
        "metrics": {key: _rounded(value) for key, value in metrics.items()},
        "descriptions": dict(runner.descriptions(own)), "seconds": time.process_time() - begin, "machine": machine(),
    }  # fmt: skip


def write_metrics(folder: Path, content: Mapping[str, Any]) -> None:
    """Write a variant's ``metrics.json``, and ``scores.json`` with the few numbers that ``dvc metrics`` shows.

    Args:
        folder: of the variant.
        content: all metrics of every seed, their means, and what describes them; or why it was not run.
    """
    load_measures()
    write_json(folder / "metrics.json", content)
    mean = content.get("mean", {})
    plain = [name for name in mean if "." not in name and "@" not in name]  # neither of one split nor of one size
    main = [name for name in plain if name in MEASURES] or plain
    write_json(folder / "scores.json", {name: float(f"{mean[name]:.5g}") for name in main[:FEW]})


def _without_weights(folder: Path, seeds: Sequence[int]) -> dict[int, dict[str, float]]:
    """The metrics of the seeds that were evaluated on another machine, whose weights have stayed there."""
    known = (read_if_whole(folder / "metrics.json", {"seeds": dict}) or {"seeds": {}})["seeds"]
    found = {}
    for seed in [each for each in seeds if str(each) in known]:
        judged, trained = folder / "evaluation" / f"seed{seed}", folder / "train" / f"seed{seed}"
        if judged.is_dir() and (trained / "run.json").is_file() and not (trained / "checkpoints").exists():
            found[seed] = known[str(seed)]
    return found


def judged_otherwise(folder: Path, config: Any) -> list[str]:
    """The sections of the settings with which a variant was evaluated that are no longer those of its scale.

    Args:
        folder: of the variant.
        config: its settings today.

    Raises:
        ReplicationError: the record of the evaluation is damaged.
    """
    judged, here = read_costs(folder).get("parameters", {}), config.model_dump(mode="json")
    return [section for section in JUDGED_BY if section in judged and judged[section] != here[section]]


def trained_mark(seed: Path, config: Any) -> str:
    """The fingerprint of a run that can be evaluated.

    Args:
        seed: folder of the run.
        config: settings of the variant.

    Raises:
        ReplicationError: its training has not ended, or a checkpoint is not there.
    """
    if not (path := seed / "run.json").exists():
        raise ReplicationError(f"{path} does not exist: training has not ended; run the train stage first.")
    record = read_record(path, TRAIN_AGAIN, TRAINED)
    judged = {f"{config.evaluation.checkpoint}.ckpt"} if record["updates"] else set()
    for name in sorted(judged.union(record["checkpoints"])):
        if not (seed / "checkpoints" / name).is_file():
            raise ReplicationError(f"{seed / 'checkpoints' / name} does not exist; run the train stage first.")
    return str(record["fingerprint"])


def means(runs: Collection[Mapping[str, float]]) -> dict[str, float]:
    """Means of the metrics that all runs have in common; a study may lack a metric in some seeds."""
    common = [key for key in next(iter(runs)) if all(key in run for run in runs)]
    return {key: _rounded(sum(run[key] for run in runs) / len(runs)) for key in common}


def _rounded(value: float) -> float:
    """Round to nine significant digits, not to decimals, so that an error of 1e-9 does not become 0."""
    return float(f"{value:.9g}")
