"""What a variant or a paper would cost on this machine: from records of finished runs, else from small trials."""

from __future__ import annotations

import datetime
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, load_params
from shared.pipeline.files import run_folder
from shared.pipeline.past import Past, past_of
from shared.pipeline.provenance import peak_memory_mib
from shared.pipeline.trials import SLOWEST, Loading, loading, tried, try_judging, try_study, try_training
from shared.tasks.prepared import check_prepared

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

Place = tuple[str, str, str]
"""Paper, scale and variant."""
Found = TypeVar("Found")
HOUR = 3600.0
NO_LOADING = Loading(0.0, 0.0)


@dataclass(frozen=True)
class Estimate:
    """The cost of one variant with all seeds; all times are processor seconds.

    Attributes:
        parameters: of the model; 0 of a variant that trains no network.
        seconds: of an update.
        updates: of one seed.
        seeds: how many.
        measured_on: what the numbers are from.
        validations: of one seed.
        validation: of one validation.
        opening: of what a run does once; with a record of whole runs, that and all validations.
        judging: of one seed's evaluation.
        judged: how many seeds that is for; an ensemble counts as all its members.
        load: of what the stages do once.
        memory: MiB, the most that one process holds.
        missing: what could not be estimated, and why.
    """

    parameters: int
    seconds: float
    updates: int
    seeds: int
    measured_on: str
    validations: int = 0
    validation: float = 0.0
    opening: float = 0.0
    judging: float = 0.0
    judged: int = 0
    load: Loading = NO_LOADING
    memory: float = 0.0
    missing: tuple[str, ...] = ()

    @property
    def run(self) -> float:
        """Processor seconds of training one seed."""
        return self.opening + self.updates * self.seconds + self.validations * self.validation

    @property
    def hours(self) -> float:
        """Processor hours of all seeds."""
        whole = self.load.train + self.seeds * self.run + self.load.evaluate + self.judged * self.judging
        return whole / HOUR

    def elapsed(self, workers: int) -> float:
        """Hours by the clock on an idle machine: seeds are side by side, stages follow each other."""
        rounds = math.ceil(self.seeds / workers) * self.run + math.ceil(self.judged / workers) * self.judging
        return (self.load.train + self.load.evaluate + rounds) / HOUR


def estimate_stage(name: str, scale: str) -> None:
    """Print processor hours, peak memory and the time when all is done, of ``<paper>.<variant>`` or a paper."""
    paper, _, variant = name.partition(".")
    settings = ScaleFile(paper, scale)
    variants = [variant] if variant else list(settings.variants)
    load = loading(paper, scale)
    found = []
    for each in variants:
        found.append(estimate(settings, each, load))
        print(f"{paper}.{each}: {described(found[-1])}", flush=True)
    workers = load_params().workers or os.cpu_count() or 1
    print("\n".join(summed(found, workers, datetime.datetime.now().astimezone())))


def described(found: Estimate) -> str:
    """One variant's line."""
    parts = []
    if found.parameters:
        parts.append(number_of(found.parameters, "parameter"))
        training = f"{number_of(found.updates, 'update')} of {found.seconds:.3g} s"
        if found.validations:
            training += f", {number_of(found.validations, 'validation')} of {found.validation:.2g} s"
        parts.append(f"{number_of(found.seeds, 'seed')} of {training}")
        parts.append(f"{number_of(found.judged, 'time')} {found.judging:.3g} s to judge")
    else:
        parts.append(f"trains no network; {number_of(found.seeds, 'seed')} of {found.judging:.3g} s")
    parts.append(f"processor seconds are {found.measured_on}")
    parts += [f"WITHOUT {missing}" for missing in found.missing]
    return f"{'; '.join(parts)}: {found.hours:,.2f} processor hours"


def summed(found: list[Estimate], workers: int, begin: datetime.datetime) -> list[str]:
    """The lines below those of the variants.

    Args:
        found: of all variants.
        workers: runs side by side.
        begin: when work would begin.
    """
    hours, elapsed = sum(each.hours for each in found), sum(each.elapsed(workers) for each in found)
    end = begin + datetime.timedelta(hours=elapsed)
    memory = max(each.memory for each in found)
    gaps = sum(bool(each.missing) for each in found)
    lines = [
        f"together {hours:,.2f} processor hours; {workers} at once take {elapsed:,.2f} hours on an idle machine: begun "
        f"now, until about {end:%Y-%m-%d %H:%M}; {memory:,.0f} MiB of memory for each at most",
        "included: imports, training, validation and judging of all seeds; not included: to fetch and prepare data, to "
        "encode pictures, and the report",
    ]
    if gaps:
        of = number_of(len(found), "variant")
        lines.append(f"it will be more: of {gaps} of {of} a part is unknown, see WITHOUT above")
    return lines


def estimate(settings: ScaleFile, variant: str, load: Loading = NO_LOADING) -> Estimate:
    """Estimate one variant.

    Raises:
        ReplicationError: it cannot be built at this scale.
    """
    import torch

    from shared.tasks.protocol import load_replication

    torch.set_num_threads(1)
    config, replication = settings.run(variant), load_replication(settings.paper)
    replication.check(config)
    if reason := replication.cannot_run(config):
        raise ReplicationError(f"{settings.path}: '{variant}' cannot run on this machine: {reason}.")
    runs, seeds, updates = run_folder(settings.paper, settings.scale), len(config.seeds), config.training.updates
    prepared = runs / "tasks" / config.task
    if not prepared.is_dir():
        cost = replication.cost(config, None)
        if cost is None:
            return Estimate(0, 0.0, 0, seeds, "unknown", missing=("its cost: its task is not prepared",))
        return Estimate(
            *cost, updates, seeds, "of random data of the greatest length", memory=peak_memory_mib(),
            missing=("validation and judging: its task is not prepared",),
        )  # fmt: skip
    check_prepared(prepared, config.corpus)
    cost, past = replication.cost(config, prepared), past_of(runs / variant, config)
    with tempfile.TemporaryDirectory() as scratch:
        place = (settings.paper, settings.scale, variant)
        if cost is None:
            return _study(config, place, scratch, past, load)
        return _network(config, place, Path(scratch), past, load, cost)


def _study(config: RunConfig, place: Place, scratch: str, past: Past, load: Loading) -> Estimate:
    """Of a variant that trains no network: a study, or a program that aligns words."""
    found, missing, seeds = None, tuple[str, ...](), len(config.seeds)
    if past.evaluation is None:
        found, missing = _tried("its cost", try_study, *place, scratch)
    return Estimate(
        0, 0.0, 0, seeds, "measured" if past.evaluation is None else "those of finished runs",
        judging=found.seconds if found else past.evaluation or 0.0, judged=seeds, load=load,
        memory=found.memory if found else 0.0, missing=missing,
    )  # fmt: skip


def _network(
    config: RunConfig, place: Place, scratch: Path, past: Past, load: Loading, cost: tuple[int, float]
) -> Estimate:
    """Of a variant that trains a network: a trial for whatever is not on record."""
    parameters, update = cost
    trained, judged, missing = None, None, tuple[str, ...]()
    model, seeds, training = past.trained, len(config.seeds), config.training
    if past.run is None or (past.evaluation is None and model is None):
        if update > SLOWEST:
            missing = (f"validation and judging: an update takes more than {SLOWEST:g} s",)
        else:
            trained, missing = _tried("validation and judging", try_training, *place, str(scratch), update)
    if trained and model is None:
        model = scratch / "seed1"
        shutil.copyfile(model / "checkpoints" / "last.ckpt", model / "checkpoints" / "average.ckpt")
    if past.evaluation is None and model is not None:
        learned = past.trained is not None
        judged, more = _tried("judging", try_judging, *place, str(model), learned, str(scratch / "judged"))
        missing += more
    seconds = past.update or (trained.update if trained else update)
    validation, opening = (trained.validation, trained.opening) if trained else (0.0, 0.0)
    if past.run is not None:
        validation, opening = 0.0, max(0.0, past.run - training.updates * seconds)
    known = [name for name, value in (("training", past.run), ("judging", past.evaluation)) if value is not None]
    return Estimate(
        parameters, seconds, training.updates, seeds,
        f"those of finished runs, of {' and '.join(known)}" if known else "measured on its data",
        validations=training.updates // training.validate_every, validation=validation, opening=opening,
        judging=judged.seconds if judged else past.evaluation or 0.0, judged=seeds * (1 + config.has_ensemble),
        load=load, memory=max([peak_memory_mib(), *(each.memory for each in (trained, judged) if each)]),
        missing=missing,
    )  # fmt: skip


def _tried(what: str, trial: Callable[..., Found], *arguments: Any) -> tuple[Found | None, tuple[str, ...]]:
    """What a trial finds, or what is unknown and why."""
    try:
        return tried(trial, *arguments), ()
    except ReplicationError as error:
        return None, (f"{what}: {error}",)
