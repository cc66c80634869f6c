"""Settings tried with pilot seeds on validation data, before the plan of a paper at a scale is frozen.

``search.yaml`` says what is tried (:mod:`shared.pipeline.search_file`); what came of it goes into ``search.json``
beside it. No test split is looked at.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.code import code_of
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import run_folder, write_json
from shared.pipeline.past import TRAINED
from shared.pipeline.plan import found_path
from shared.pipeline.provenance import hash_of, now, revision, sha256_of
from shared.pipeline.search_file import Search, Value, load_search
from shared.pipeline.search_result import asked, kept_outcomes, settings_digest, show, unfollowed
from shared.pipeline.stages import features_stage, fetch_stage, prepare_stage
from shared.pipeline.train import is_finished, marks_of, run_side_by_side, train_into
from shared.records import read_if_whole, read_record
from shared.reports.curves import DIVERGED
from shared.training.pool import PRELOAD, Job
from shared.training.progress import Report

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig


class Trial(NamedTuple):
    """One run of a search.

    Attributes:
        paper, scale, variant: of the run.
        key: of the setting that is tried.
        value: of that setting.
        seed: of a pilot.
        config: the settings with that value.
        folder: of its record and curve.
        mark: its fingerprint.
    """

    paper: str
    scale: str
    variant: str
    key: str
    value: Value
    seed: int
    config: RunConfig
    folder: Path
    mark: str

    @property
    def label(self) -> str:
        """What it is called in progress and errors."""
        return f"{self.paper}.{self.variant} {self.key} {self.value} seed {self.seed}"


@alone("trials")
def search_stage(paper: str, scale: str, only: Sequence[str] | None = None) -> None:
    """Train every variant with every value and pilot seed, and say which value is best; a killed search is continued.

    Args:
        only: these variants alone; of the others ``search.json`` is kept. None: all.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, ``search.json`` cannot be kept of a variant that is not tried, or
            trials failed; the others have been trained to their end by then.
    """
    search = load_search(paper, scale)
    variants = [variant for group in search.tried for variant in group.variants]
    kept = {} if only is None else kept_outcomes(search, only)
    for task in dict.fromkeys(search.settings.task_of(variant) for variant in only or variants):
        _prepare(search.settings, task)
    trials = list(_trials(search, only or variants))
    jobs: dict[Path, Job] = {}
    for trial in trials:
        if is_finished(trial.folder, trial.mark):
            print(f"{trial.label}: finished before, kept.")
        else:
            jobs.setdefault(trial.folder, Job(trial.label, train_trial, (str(Path.cwd()), trial)))
    if reasons := set(run_side_by_side([*jobs.values()], PRELOAD)) - {None}:
        raise ReplicationError(f"{search.path}: a variant cannot be trained on this machine: {reasons.pop()}.")
    record = _record(search, trials, kept)
    write_json(found_path(search.settings), record)
    show(record)
    for line in unfollowed(paper, scale):
        print(line)


def train_trial(root: str, trial: Trial, *, report: Report | None = None) -> str | None:
    """Run a trial in its own process; return the reason if this machine cannot run it, otherwise None."""
    os.chdir(root)
    return train_into(
        trial.folder, ScaleFile(trial.paper, trial.scale), trial.config, seed=trial.seed, mark=trial.mark,
        label=trial.label, report=report, keep_checkpoints=False,
    )  # fmt: skip


def _prepare(settings: ScaleFile, task: str) -> None:
    """Prepare a task's data, unless they exist and its settings, its card and the code have not changed since."""
    paper, scale = settings.paper, settings.scale
    name, runs = f"{paper}.{task}", run_folder(paper, scale)
    fetch_stage(name, scale)
    known = runs / "search" / f"{task}.json"

    def made() -> dict[str, Any]:
        return {
            "fetched": sha256_of([runs / "fetched" / f"{task}.json"]),
            "corpus": settings.corpus(task).model_dump(mode="json"),
            "code": code_of(settings.kind, paper)["prepare"],
            "data": sha256_of([runs / "tasks" / task]),
        }

    before = read_if_whole(known)
    if before is not None and before == made():
        return
    if task in settings.features:
        features_stage(name, scale)
    prepare_stage(name, scale)
    write_json(known, made())


def _trials(search: Search, variants: Sequence[str]) -> Iterator[Trial]:
    settings = search.settings
    for group in search.tried:
        for variant in [variant for variant in group.variants if variant in variants]:
            for value in group.values:
                config = search.config(group, variant, value)
                for seed, mark in marks_of(settings, variant, config, search.seeds).items():
                    folder = run_folder(settings.paper, settings.scale) / "search" / variant / mark[:16]
                    yield Trial(settings.paper, settings.scale, variant, group.key, value, seed, config, folder, mark)


def _record(search: Search, trials: Sequence[Trial], kept: Mapping[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The content of ``search.json``: the loss of each trial and its provenance, and outcomes kept of variants."""
    settings, groups, made = search.settings, list[dict[str, Any]](), revision() | {"date": now()}
    for group in search.tried:
        outcomes = {}
        for variant in group.variants:
            if (known := kept.get((group.key, variant))) is not None:
                outcomes[variant] = known | {"in_params": search.value(variant, group.key)}
                continue
            own = [trial for trial in trials if (trial.key, trial.variant) == (group.key, variant)]
            values = [_outcome(value, [trial for trial in own if trial.value == value]) for value in group.values]
            learnt = [value for value in values if value["loss"] is not None]
            outcomes[variant] = {
                "trials": values,
                "best": min(learnt, key=lambda value: value["loss"])["value"] if learnt else None,
                "in_params": search.value(variant, group.key),
                "settings": settings_digest(search, group, variant),
                "code": hash_of(code_of(settings.kind, settings.paper, *settings.lenders([variant]))["train"]),
                **made,
            }
        groups.append(asked(group) | {"variants": outcomes})
    return {
        "paper": settings.paper, "scale": settings.scale, **made, "seeds": search.seeds,
        "processor_seconds": round(sum(
            trial["processor_seconds"]
            for group in groups for outcome in group["variants"].values() for trial in outcome["trials"]
        ), 1),
        "groups": groups,
    }  # fmt: skip


def _outcome(value: Value, trials: Sequence[Trial]) -> dict[str, Any]:
    """Outcome of one value: means over the pilots of the final and lowest validation loss, null if any diverged."""
    ends, lowest, seconds = dict[str, float | None](), list[float | None](), 0.0
    for trial in trials:
        run = _run(trial)
        with (trial.folder / "curve.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if (row["split"], row["metric"]) == ("valid", "loss")]
        losses = [float(row["value"]) for row in rows]
        diverged = run["stopped_because"].startswith(DIVERGED) or not math.isfinite(losses[-1])
        ends[str(trial.seed)] = None if diverged else losses[-1]
        lowest.append(None if diverged else min(losses))
        seconds += run["processor_seconds"]
    return {
        "value": value, "loss": _mean([*ends.values()]), "lowest": _mean(lowest), "seeds": ends,
        "processor_seconds": round(seconds, 1),
    }  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(f"{sum(known) / len(known):.6g}") if len(known) == len(values) else None


def _run(trial: Trial) -> dict[str, Any]:
    again = f"run 'python -m shared.pipeline search {trial.paper} --scale {trial.scale}' again"
    return read_record(trial.folder / "run.json", again, TRAINED)
