"""What finished runs of a variant have cost on this machine, from the records that its stages leave."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.claims.results import COSTS, REPORTED
from shared.errors import ReplicationError
from shared.pipeline.provenance import machine
from shared.records import read_record

JUDGED_BY = ("corpus", "evaluation", "decoding")
"""Sections of a variant's settings that its scores depend on, beside those of its weights."""
TRAINED = REPORTED | {"fingerprint": str, "checkpoints": list, "processor_seconds": int | float}
"""What the stages need of the record of a run; one that lacks it is trained again."""
JUDGED = {"parameters": dict, "processor_seconds": dict}
"""Likewise of the record of judging."""


@dataclass(frozen=True)
class Past:
    """Processor seconds of finished runs with the same settings on the same machine; None where nothing is known.

    Attributes:
        update: of one update.
        run: of all that the train stage does for one seed.
        evaluation: of all that the evaluate stage does for one seed.
        trained: folder of a trained model.
    """

    update: float | None = None
    run: float | None = None
    evaluation: float | None = None
    trained: Path | None = None


def past_of(folder: Path, config: Any) -> Past:
    """What is known of a variant.

    Args:
        folder: ``runs/<scale>/<paper>/<variant>``.
        config: its settings.
    """
    records = [record for _, record in _records(folder, config)]
    updates = [record["processor_seconds"] / record["updates"] for record in records if record["updates"]]
    # A run that was killed and continued knows only what its last process has taken.
    whole = [seconds for record in records if (seconds := record.get("process_seconds", 0)) > _made(record)]
    trained = [seed for seed, record in _records(folder, config) if _is_there(seed, record, config)]
    return Past(
        update=statistics.fmean(updates) if updates else None,
        run=statistics.fmean(whole) if whole else None,
        evaluation=_judging(folder, config) if records else None,
        trained=trained[0] if trained else None,
    )


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


def _records(folder: Path, config: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("train/seed*/run.json")):
        record = _run(path)
        if record is not None and _is_alike(record, config):
            yield path.parent, record


def _judging(folder: Path, config: Any) -> float | None:
    record = _judged(folder)
    if record is None or not _is_alike(record, config):
        return None
    return statistics.fmean(seconds for label, seconds in record["processor_seconds"].items() if label != "ensemble")


def _is_alike(record: dict[str, Any], config: Any) -> bool:
    here = machine() | {"parameters": _settings(config)}
    return all(here[key] == _without_seeds(record, key) for key in here)


def _without_seeds(record: dict[str, Any], key: str) -> Any:
    value = record.get(key)
    return {name: each for name, each in value.items() if name != "seeds"} if key == "parameters" and value else value


def _settings(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = config.model_dump(mode="json", exclude={"seeds"})
    return found


def _made(record: dict[str, Any]) -> float:
    return float(record["processor_seconds"])


def _is_there(seed: Path, record: dict[str, Any], config: Any) -> bool:
    return bool(record["updates"]) and (seed / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt").is_file()


def _run(path: Path) -> dict[str, Any] | None:
    return read_record(path, "run its train stage again", TRAINED) if path.exists() else None


def _judged(folder: Path) -> dict[str, Any] | None:
    path = folder / "evaluation" / COSTS
    return read_record(path, "run its evaluate stage again", JUDGED) if path.exists() else None
