"""Gives a paper the results of another paper's runs, so that equal models on equal data are trained once."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from shared.claims.results import COSTS
from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import made_anew, run_folder, split_name, write_json
from shared.pipeline.past import TRAINED
from shared.records import read_record

RECORDS = ("run.json", "curve.csv")
"""Files of a seed's training that are copied; checkpoints stay with the lender."""


@alone("runs")
def lend_stage(name: str, scale: str) -> None:
    """Copy the results that stand for ``<paper>.<variant>``, as ``lent`` of the scale's params.yaml says.

    Raises:
        ReplicationError: nothing is lent under that name, or the lender's runs are not evaluated yet, or a record of
            them is missing or damaged.
    """
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    if not settings.lent:
        raise ReplicationError(
            f"{settings.path}: lent has no '{variant}', for it is empty: all variants have runs of their own; train "
            "them, or list there what another paper trains."
        )
    if variant not in settings.lent:
        raise ReplicationError(f"{settings.path}: lent has no '{variant}'{near(variant, settings.lent)}.")
    lent = settings.lent[variant]
    source, target = run_folder(lent.paper, scale) / lent.variant, run_folder(paper, scale) / variant
    again = {
        stage: f"run 'python -m shared.pipeline {stage} {lent.paper}.{lent.variant} --scale {scale}'"
        for stage in ("train", "evaluate")
    }
    metrics = read_record(source / "metrics.json", again["evaluate"], {"seeds": dict | None})
    seeds = metrics.get("seeds", {})  # others may be half-trained
    records = [source / "train" / f"seed{seed}" for seed in seeds]
    _need([source / "evaluation" / (COSTS if seeds else "")], again["evaluate"])
    for folder in records:
        read_record(folder / "run.json", again["train"], TRAINED)
    _need([source / "curve.csv", *(folder / name for folder in records for name in RECORDS)], again["train"])
    with made_anew(target / "train") as partial:
        for seed in seeds:
            copy_records(source / "train" / f"seed{seed}", partial / f"seed{seed}")
    with made_anew(target / "evaluation") as partial:
        shutil.copytree(source / "evaluation", partial, dirs_exist_ok=True)
    shutil.copyfile(source / "curve.csv", target / "curve.csv")
    write_json(target / "metrics.json", metrics | {"variant": variant, "task": lent.task})
    print(f"{name}: the results of {lent.paper}.{lent.variant}.")


def _need(paths: Iterable[Path], again: str) -> None:
    for path in paths:
        if not path.exists():
            raise ReplicationError(f"{path} does not exist; {again}.")


def copy_records(source: Path, target: Path) -> None:
    """Copy the records of one seed's training."""
    target.mkdir()
    for name in RECORDS:
        shutil.copyfile(source / name, target / name)
