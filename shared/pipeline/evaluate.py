"""The evaluate stage: every trained seed of a variant, side by side, and their ensemble if it is asked for."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.claims.results import COSTS, judged_fingerprints
from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import prepared_folder, run_folder, split_name, write_json
from shared.pipeline.past import judged_otherwise, judging_record, trained_mark
from shared.pipeline.provenance import machine
from shared.pipeline.train import WITHOUT_LIGHTNING, chosen_seeds, run_side_by_side, runnable
from shared.pipeline.weights import check_weights
from shared.records import read_if_whole, read_record
from shared.tasks.prepared import check_prepared
from shared.training.pool import Job
from shared.training.progress import Report


@dataclass(frozen=True)
class Judged:
    """What the evaluation of one seed, or of an ensemble, gives.

    Attributes:
        metrics: by name, rounded.
        descriptions: what a reader of them must know: signatures, and what one token is.
        seconds: of the processor.
        machine: on which it ran, with how many threads.
    """

    metrics: dict[str, float]
    descriptions: dict[str, Any]
    seconds: float
    machine: dict[str, Any]


@alone("runs")
def evaluate_stage(name: str, scale: str, seeds: Sequence[int] | None = None) -> None:
    """Judge every trained seed of ``<paper>.<variant>``, and their ensemble if asked; write its ``metrics.json``.

    Seeds whose weights are not on this machine keep what :func:`shared.pipeline.packed.unpack_stage` has brought.

    Args:
        name: of the variant.
        scale: of its settings.
        seeds: those of the scale that are to be judged, and are then all that a report sees; by default all. Some
            seeds are no ensemble.

    Raises:
        ReplicationError: the settings are wrong, or a seed is not trained to its end; or an ensemble lacks weights.
            What was judged before is then still there.
    """
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    config = runnable(settings, variant)
    chosen = chosen_seeds(config.seeds, seeds, f"{settings.path}: '{variant}'")
    check_prepared(prepared_folder(paper, scale, config.task), config.corpus)
    folder = run_folder(paper, scale) / variant
    head = {"variant": variant, "task": config.task}
    out = folder / "evaluation"
    kept = _without_weights(folder, chosen)
    if kept and (changed := judged_otherwise(folder, config)):
        raise ReplicationError(
            f"{name}: seed {min(kept)} was judged on another machine, which has its weights, and the settings of "
            f"{' and '.join(changed)} have changed since; train it here, or take the change back."
        )
    if len(kept) == len(chosen):
        _write_kept(folder / "metrics.json", kept)
        print(f"{name}: judged where it was trained, kept.")
        return
    has_ensemble = config.has_ensemble and chosen == tuple(config.seeds)
    if has_ensemble and kept:
        raise ReplicationError(f"{name}: the ensemble needs the weights of seed {min(kept)}; train it here.")
    not_run = folder / "train" / "not_run.json"
    marks = {seed: mark for seed, mark in judged_fingerprints(folder).items() if int(seed) in kept}
    reason = read_record(not_run, "run its train stage again", {"not_run": str}) if not_run.exists() else None
    if reason is None:
        own = [seed for seed in chosen if seed not in kept]
        marks |= {str(seed): trained_mark(folder / "train" / f"seed{seed}", config) for seed in own}
    if (out / COSTS).exists() and not kept:  # all that metrics.json summarises is made anew
        (folder / "metrics.json").unlink(missing_ok=True)
    _empty(out, kept)
    if reason is not None:
        write_json(folder / "metrics.json", head | reason)
        return
    groups = {f"seed {seed}": (seed,) for seed in chosen if seed not in kept}
    if has_ensemble:
        groups["ensemble"] = tuple(config.seeds)
    results = _side_by_side(name, scale, groups)
    scores = {str(seed): kept[seed] if seed in kept else results[f"seed {seed}"].metrics for seed in chosen}
    together = {"ensemble": results["ensemble"].metrics} if "ensemble" in results else {}
    first = next(iter(results.values()))
    seconds = {label: judged.seconds for label, judged in results.items()}
    write_json(out / COSTS, judging_record(config, first.machine, seconds, marks))
    numbers = {"seeds": scores, "mean": _means(scores.values())}
    write_json(folder / "metrics.json", head | numbers | together | first.descriptions)


def _side_by_side(name: str, scale: str, groups: Mapping[str, tuple[int, ...]]) -> dict[str, Judged]:
    """Judge each group of seeds, in processes of their own; returns what comes of them by their labels."""
    paper, variant = split_name(name)
    jobs = [
        Job(f"{name} {label}: evaluation", evaluate_seeds, (str(Path.cwd()), paper, scale, variant, label, members))
        for label, members in groups.items()
    ]
    return dict(zip(groups, run_side_by_side(jobs, WITHOUT_LIGHTNING), strict=True))


def _without_weights(folder: Path, seeds: Sequence[int]) -> dict[int, dict[str, float]]:
    """The metrics of the seeds that were judged on another machine, whose weights have stayed there."""
    known = (read_if_whole(folder / "metrics.json", {"seeds": dict}) or {"seeds": {}})["seeds"]
    return {
        seed: known[str(seed)]
        for seed in seeds
        if str(seed) in known
        and (folder / "evaluation" / f"seed{seed}").is_dir()
        and (folder / "train" / f"seed{seed}" / "run.json").is_file()
        and not (folder / "train" / f"seed{seed}" / "checkpoints").exists()
    }


def _write_kept(path: Path, kept: Mapping[int, dict[str, float]]) -> None:
    """Take all other seeds, and their ensemble, out of a metrics.json."""
    known = read_record(path, "run its evaluate stage again", {"seeds": dict})
    if known["seeds"].keys() != {str(seed) for seed in kept}:
        known.pop("ensemble", None)
        scores = {str(seed): metrics for seed, metrics in kept.items()}
        write_json(path, known | {"seeds": scores, "mean": _means(scores.values())})


def _empty(out: Path, kept: Collection[int]) -> None:
    """Make the folder empty, but for what is kept."""
    out.mkdir(parents=True, exist_ok=True)
    staying = {COSTS, *(f"seed{seed}" for seed in kept)} if kept else set()
    for path in out.iterdir():
        if path.name in staying:
            continue
        if path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path)


def evaluate_seeds(
    root: str,
    paper: str,
    scale: str,
    variant: str,
    label: str,
    members: tuple[int, ...],
    *,
    report: Report | None = None,
) -> Judged:
    """Judge one trained seed, or several together as an ensemble; runs in a process of its own.

    Args:
        root: the project's folder.
        paper, scale, variant: of the run.
        label: names the folder of what is written.
        members: seeds.
        report: takes progress, as all jobs must; evaluation reports none.
    """
    begin = time.process_time()
    os.chdir(root)
    from shared.tasks.kinds import load_replication
    from shared.tasks.replication import runner_of

    config, replication = ScaleFile(paper, scale).run(variant), load_replication(paper)
    replication.check(config)
    runner, own = runner_of(replication, config)
    folder, prepared = run_folder(paper, scale) / variant, prepared_folder(paper, scale, config.task)
    trained = [folder / "train" / f"seed{seed}" for seed in members]
    for weights in [path for run in trained for path in sorted(run.glob("checkpoints/*.ckpt"))]:
        check_weights(weights)
    with refusing_other_weights(variant, trained):
        metrics = runner.evaluate(
            own, prepared=prepared, trained=trained, out=folder / "evaluation" / label.replace(" ", "")
        )
    return Judged(
        metrics={key: rounded(value) for key, value in metrics.items()},
        descriptions=dict(runner.descriptions(own)),
        seconds=time.process_time() - begin, machine=machine(),
    )  # fmt: skip


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
        raise ReplicationError(
            f"the weights in {' or '.join(map(str, trained))} are of another model than its settings are; train "
            f"{variant} again."
        ) from None


def by_metric(runs: Collection[Mapping[str, float]]) -> dict[str, list[float]]:
    """Values of the metrics that all runs have in common; a study may lack a metric in some seeds."""
    common = [key for key in next(iter(runs)) if all(key in run for run in runs)]
    return {key: [run[key] for run in runs] for key in common}


def _means(runs: Collection[Mapping[str, float]]) -> dict[str, float]:
    return {key: rounded(sum(values) / len(values)) for key, values in by_metric(runs).items()}


def rounded(value: float) -> float:
    """Round to nine significant digits, not to decimals, so that an error of 1e-9 does not become 0."""
    return float(f"{value:.9g}")
