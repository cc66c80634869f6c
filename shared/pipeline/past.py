"""What the records of a variant say that its stages leave: by which settings it was judged, and of which run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.claims.results import COSTS, REPORTED
from shared.errors import ReplicationError
from shared.records import read_record

JUDGED_BY = ("corpus", "evaluation", "decoding")
"""Sections of a variant's settings that its scores depend on, beside those of its weights."""
TRAINED = REPORTED | {"fingerprint": str, "checkpoints": list, "processor_seconds": int | float}
"""What the stages need of the record of a run; one that lacks it is trained again."""
JUDGED = {"parameters": dict, "processor_seconds": dict}
"""Likewise of the record of judging."""


def judging_record(
    config: Any, where: dict[str, Any], seconds: dict[str, float], marks: dict[str, str]
) -> dict[str, Any]:
    """What the evaluate stage writes into :data:`COSTS`.

    Args:
        config: settings of the variant.
        where: the machine as the workers saw it; the process that leads them may have more threads.
        seconds: of the processor, by label, such as ``seed 1``.
        marks: seed to the fingerprint of the run that was judged.
    """
    return where | {"parameters": _settings(config), "processor_seconds": seconds, "fingerprints": marks}


def judged_otherwise(folder: Path, config: Any) -> list[str]:
    """The sections of the settings with which a variant was judged that are no longer those of its scale.

    Args:
        folder: of the variant.
        config: its settings today.

    Raises:
        ReplicationError: the record of the judging is damaged.
    """
    record, here = _judged(folder), _settings(config)
    judged = {} if record is None else record["parameters"]
    return [section for section in JUDGED_BY if section in judged and judged[section] != here[section]]


def trained_mark(seed: Path, config: Any) -> str:
    """The fingerprint of a run that can be judged.

    Args:
        seed: folder of the run.
        config: settings of the variant.

    Raises:
        ReplicationError: its training has not ended, or a checkpoint is not there.
    """
    record = _run(seed / "run.json")
    if record is None:
        raise ReplicationError(
            f"{seed / 'run.json'} does not exist: training has not ended; run the train stage first."
        )
    judged = {f"{config.evaluation.checkpoint}.ckpt"} if record["updates"] else set()
    for name in sorted(judged.union(record["checkpoints"])):
        if not (seed / "checkpoints" / name).is_file():
            raise ReplicationError(f"{seed / 'checkpoints' / name} does not exist; run the train stage first.")
    return str(record["fingerprint"])


def _settings(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = config.model_dump(mode="json", exclude={"seeds"})
    return found


def _run(path: Path) -> dict[str, Any] | None:
    return read_record(path, "run its train stage again", TRAINED) if path.exists() else None


def _judged(folder: Path) -> dict[str, Any] | None:
    path = folder / "evaluation" / COSTS
    return read_record(path, "run its evaluate stage again", JUDGED) if path.exists() else None
