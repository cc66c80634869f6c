"""What a variant or a paper costs: from runs on record, else from a few updates that are timed here."""

from __future__ import annotations

import json
import math
import os
import tarfile
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.claims.results import COSTS
from shared.claims.words import number_of
from shared.data.storage import check_prepared
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, load_params
from shared.pipeline.files import run_folder
from shared.pipeline.pack import archive_of
from shared.pipeline.provenance import machine, peak_memory_mib
from shared.pipeline.runs import EVALUATE_AGAIN, JUDGED, TRAIN_AGAIN, TRAINED, runnable
from shared.records import read_record

UNPREPARED = "its cost: no runs are on record, and its task is not prepared"


class Cost(NamedTuple):
    """The cost of one variant.

    Attributes:
        seeds, judged: how many seeds are trained, and judged; an ensemble counts as all its members.
        source: what the numbers are from.
        missing: what is unknown, and why.
        parameters: of the model; 0 where there is none, or where it is unknown.
        training, judging: processor seconds of one seed.
        memory: MiB, the most that one process holds.
    """

    seeds: int
    judged: int
    source: str = "unknown"
    missing: str = ""
    parameters: int = 0
    training: float = 0.0
    judging: float = 0.0
    memory: float = 0.0

    def hours(self, workers: int = 1) -> float:
        """Processor hours of all seeds; hours by the clock if so many are side by side: stages follow each other."""
        rounds = math.ceil(self.seeds / workers) * self.training + math.ceil(self.judged / workers) * self.judging
        return rounds / 3600


def estimate_stage(name: str, scale: str) -> None:
    """Print processor hours, peak memory and the time when all is done, of ``<paper>.<variant>`` or a paper."""
    paper, _, variant = name.partition(".")
    settings = ScaleFile(paper, scale)
    found: dict[str, Cost] = {}
    for each in [variant] if variant else list(settings.variants):
        found[each] = estimate(settings, each)
        print(f"{paper}.{each}: {described(found[each])}", flush=True)
    workers = load_params().workers or os.cpu_count() or 1
    print("\n".join(summed([*found.values()], workers, datetime.now().astimezone())))
    for task in dict.fromkeys(settings.task_of(each) for each, cost in found.items() if cost.missing == UNPREPARED):
        steps = ["fetch", *(["features"] if task in settings.features else []), "prepare"]
        commands = " && ".join(f"python -m shared.pipeline {step} {paper}.{task} --scale {scale}" for step in steps)
        print(f"to have updates on the task {task} timed, run: {commands}")


def estimate(settings: ScaleFile, variant: str) -> Cost:
    """The cost of a variant: of its runs on record with the same settings, else of updates that are timed.

    Raises:
        ReplicationError: it does not run at this scale, or cannot run on this machine.
    """
    config = runnable(settings, variant)
    unknown = Cost(len(config.seeds), len(config.seeds) * (1 + config.has_ensemble))
    runs, judgements = _recorded(settings, variant, config)
    if not runs or not judgements:
        return _timed(settings, variant, config, unknown)
    judged = [record["processor_seconds"] for record in judgements]
    places = dict.fromkeys(str(run["cpu"] if run["device"] == "cpu" else run["device"]) for run in runs)
    here = all(run[part] == machine()[part] for run in runs for part in ("cpu", "device"))
    return unknown._replace(
        parameters=runs[0]["parameter_count"] if runs[0]["updates"] else 0,
        # A run that was killed and continued knows only what its last process has taken.
        training=fmean(max(run.get("process_seconds", 0.0), run["processor_seconds"]) for run in runs),
        judging=fmean(took for each in judged for of, took in each.items() if of != "ensemble" or len(each) == 1),
        memory=max(run["peak_memory_mib"] for run in runs),
        source=f"those of {number_of(len(runs), 'finished run')}" + ("" if here else f" on {' and '.join(places)}"),
    )


def _timed(settings: ScaleFile, variant: str, config: Any, unknown: Cost) -> Cost:
    """Of a variant without runs on record: some updates on its prepared data."""
    import torch

    from shared.tasks.kinds import load_replication
    from shared.tasks.replication import runner_of

    runner, config = runner_of(load_replication(settings.paper), config)
    if reason := runner.cannot_run(config):
        raise ReplicationError(f"{settings.path}: '{variant}' cannot run on this machine: {reason}.")
    prepared = run_folder(settings.paper, settings.scale) / "tasks" / config.task
    if not prepared.is_dir():
        return unknown._replace(missing=UNPREPARED)
    check_prepared(prepared, config.corpus)
    torch.set_num_threads(1)
    if (cost := runner.cost(config, prepared)) is None:
        return unknown._replace(missing="its cost: it trains no network, and no runs are on record")
    return unknown._replace(
        parameters=cost[0], training=config.training.updates * cost[1], memory=peak_memory_mib(),
        source=f"of {number_of(config.training.updates, 'update')}, a few of which were timed here",
        missing="validation and judging: no runs are on record",
    )  # fmt: skip


def _recorded(settings: ScaleFile, variant: str, config: Any) -> tuple[list[Any], list[Any]]:
    """Records of training and of judging with these settings: of this folder, else of the file that git keeps."""
    folder = run_folder(settings.paper, settings.scale) / variant
    own = [read_record(path, TRAIN_AGAIN, TRAINED) for path in sorted(folder.glob("train/seed*/run.json"))]
    judged = [read_record(path, EVALUATE_AGAIN, JUDGED) for path in folder.glob(f"evaluation/{COSTS}")]
    packed = _packed(archive_of(settings.paper, settings.scale))
    for places in ((own, judged), (packed.get((variant, name), []) for name in ("run.json", COSTS))):
        runs, judgements = (
            [each for each in records if _is_alike(each.get("parameters"), config)] for records in places
        )
        if runs and judgements:
            return runs, judgements
    return [], []


def _is_alike(parameters: Any, config: Any) -> bool:
    """Whether a record is of the settings of today, whichever seeds these name; it may lack keys that are new."""
    try:
        return bool(
            type(config).model_validate(parameters | {"seeds": config.seeds}).model_dump() == config.model_dump()
        )
    except (ValidationError, TypeError):
        return False


@cache
def _packed(archive: Path) -> dict[tuple[str, str], list[Any]]:
    """Variant and name of a record to those that an archive of runs has."""
    found: dict[tuple[str, str], list[Any]] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = Path(member.name)
                if path.name in ("run.json", COSTS) and (file := tar.extractfile(member)) is not None:
                    found.setdefault((path.parts[0], path.name), []).append(json.load(file))
    except FileNotFoundError:
        pass
    except (tarfile.TarError, EOFError, OSError, ValueError):
        raise ReplicationError(f"{archive} is damaged; take it from git again.") from None
    return found


def described(found: Cost) -> str:
    """One variant's line."""
    parts = [number_of(found.parameters, "parameter")] if found.parameters else []
    if found.training or found.judging:
        parts.append(f"{number_of(found.seeds, 'seed')} of {found.training:,.3g} s")
        parts += [f"{number_of(found.judged, 'time')} {found.judging:,.3g} s to judge"] if found.judging else []
        parts.append(f"processor seconds are {found.source}")
    parts += [f"WITHOUT {found.missing}"] if found.missing else []
    return "; ".join(parts) + (f": {hours:,.2f} processor hours" if (hours := found.hours()) else "")


def summed(found: list[Cost], workers: int, begin: datetime) -> list[str]:
    """The lines below those of the variants.

    Args:
        found: of all variants.
        workers: runs side by side.
        begin: when work would begin.
    """
    hours, elapsed = (sum(each.hours(side_by_side) for each in found) for side_by_side in (1, workers))
    if not hours:
        return ["nothing can be said of their cost yet"]
    lines = [
        f"together {hours:,.2f} processor hours; {workers} at once take {elapsed:,.2f} hours on an idle machine: begun "
        f"now, until about {begin + timedelta(hours=elapsed):%Y-%m-%d %H:%M}; "
        f"{max(each.memory for each in found):,.0f} MiB of memory for each at most",
        "included: training, validation and judging of all seeds; not included: to fetch and prepare data, to encode "
        "pictures, and the report",
    ]
    if gaps := sum(bool(each.missing) for each in found):
        lines.append(
            f"it will be more: of {gaps} of {number_of(len(found), 'variant')} a part is unknown, see WITHOUT above"
        )
    return lines
