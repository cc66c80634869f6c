"""Gives a paper the results of another paper's runs, so that equal models on equal data are trained once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.alone import alone
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import made_anew, run_folder, split_name, write_json

RECORDS = ("run.json", "curve.csv")
"""Files of a seed's training that are copied; checkpoints stay with the lender."""


@alone("runs")
def lend_stage(name: str, scale: str) -> None:
    """Copy the results that stand for ``<paper>.<variant>``, as ``lent`` of the scale's params.yaml says.

    Raises:
        ReplicationError: nothing is lent under that name, or the lender's runs are not evaluated yet.
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
    for needed in (source / "metrics.json", source / "evaluation"):
        if not needed.exists():
            command = f"python -m shared.pipeline evaluate {lent.paper}.{lent.variant} --scale {scale}"
            raise ReplicationError(f"{needed} does not exist; run '{command}'.")
    metrics = json.loads((source / "metrics.json").read_text(encoding="utf-8"))
    with made_anew(target / "train") as partial:
        for seed in metrics.get("seeds", ()):  # others may be half-trained
            copy_records(source / "train" / f"seed{seed}", partial / f"seed{seed}")
    with made_anew(target / "evaluation") as partial:
        shutil.copytree(source / "evaluation", partial, dirs_exist_ok=True)
    shutil.copyfile(source / "curve.csv", target / "curve.csv")
    write_json(target / "metrics.json", metrics | {"variant": variant, "task": lent.task})
    print(f"{name}: the results of {lent.paper}.{lent.variant}.")


def copy_records(source: Path, target: Path) -> None:
    """Copy the records of one seed's training."""
    target.mkdir()
    for name in RECORDS:
        shutil.copyfile(source / name, target / name)
