"""What the runs of one variant left on disk, read back for claims and reports."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.metrics.quantities import Example
from shared.records import read_record

COSTS = "costs.json"
"""What judging has cost, and which runs were judged, in the folder of a variant's evaluation."""
REPORTED = {"parameters": dict, "updates": int, "stopped_because": str}
"""What a report needs of every run record; those of older runs may lack other keys."""
_DESCRIBED = {"mean": dict | None, "signatures": dict | None, "ensemble": dict | None}


@dataclass(frozen=True)
class RunResults:
    """One variant at one scale, all seeds; or its ensemble, judged once, as a variant with the one seed 0.

    Attributes:
        folder: ``runs/<scale>/<paper>/<variant>``.
        variant, task: names.
        metrics: seed to metric to value.
        mean: metric to mean over the seeds.
        signatures: metric to the signature of its scorer.
        token: what one token is ("word", "BPE piece", …).
        not_run: why this variant was not run at this scale; then there is nothing else.
        together: metrics of all seeds' models judged together as one; empty if they were not.
        members: of an ensemble, the seeds of its models; it has no run records and no curves.
    """

    folder: Path
    variant: str
    task: str
    metrics: Mapping[int, Mapping[str, float]]
    mean: Mapping[str, float]
    signatures: Mapping[str, str]
    token: str
    not_run: str | None = None
    together: Mapping[str, float] = field(default_factory=dict)
    members: tuple[int, ...] = ()

    @classmethod
    def load(cls, folder: Path) -> RunResults:
        """Read metrics.json; examples and run records are read when first asked for.

        Raises:
            ReplicationError: metrics.json is missing or unreadable.
        """
        parts = {"variant": str, "task": str, "seeds": dict | None, **_DESCRIBED}
        values = read_record(folder / "metrics.json", "run its evaluate stage again", parts)
        metrics = {int(seed): of_seed for seed, of_seed in sorted(values.get("seeds", {}).items())}
        mean, signatures, token = values.get("mean", {}), values.get("signatures", {}), values.get("token", "token")
        own = cls(folder, values["variant"], values["task"], metrics, mean, signatures, token)
        return replace(own, not_run=values.get("not_run"), together=values.get("ensemble", {}))

    def as_ensemble(self) -> RunResults:
        """The ensemble of all seeds as a variant of its own, ``<variant>-ensemble``."""
        name, together = f"{self.variant}-ensemble", self.together
        return replace(self, variant=name, metrics={0: together}, mean=together, together={}, members=self.seeds)

    def with_seeds(self, keep: Callable[[int], bool]) -> RunResults:
        """The same run with some of its seeds; itself where these are all."""
        metrics = {seed: of_seed for seed, of_seed in self.metrics.items() if keep(seed)}
        return self if len(metrics) == len(self.metrics) else replace(self, metrics=metrics)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds run, ascending."""
        return tuple(sorted(self.metrics))

    @property
    def is_here(self) -> bool:
        """Whether every seed's run record is on this machine; git keeps the numbers of other machines' runs, too."""
        return self.seeds == tuple(self.runs)

    @property
    def is_judged_here(self) -> bool:
        """Whether the record of judging is on this machine, or nothing was to be judged.

        Without it metrics.json is what git keeps of another machine, whatever has been trained here since.
        """
        return not self.seeds or (self.folder / "evaluation" / COSTS).is_file()

    @property
    def is_trained_again(self) -> bool:
        """Whether a seed has been trained otherwise since it was judged; older records do not say what was judged."""
        judged = read_costs(self.folder).get("fingerprints", {})
        today = {str(seed): run.get("fingerprint") for seed, run in self.runs.items()}
        return any(judged.get(seed, mark) != mark for seed, mark in today.items())

    @cached_property
    def drawn_anew(self) -> bool:
        """Whether every seed was trained and judged on a draw of its own of generated data."""
        return bool(read_costs(self.folder).get("parameters", {}).get("corpus", {}).get("draws") == "each_seed")

    @cached_property
    def examples(self) -> dict[int, list[Example]]:
        """Seed to its test examples, in the same order for every seed; no entries where none were written.

        Where data are drawn anew for each seed, its examples are other ones.

        Raises:
            ReplicationError: a file is broken, or the seeds' examples are not the same ones.
        """
        found = {}
        for seed in self.seeds:
            if (path := self.judged(seed, "examples.jsonl.gz")).exists():
                found[seed] = _read_examples(path)
        for seed, rows in () if self.drawn_anew else found.items():
            check_paired(next(iter(found.values())), rows, f"{self.variant}, seed {seed}")
        return found

    @cached_property
    def runs(self) -> dict[int, dict[str, Any]]:
        """Seed to the run record (run.json) of its training; seeds without one are left out."""
        paths = {seed: self._place("train", seed) / "run.json" for seed in self.seeds}
        again = "run its train stage again"
        return {seed: read_record(path, again, REPORTED) for seed, path in paths.items() if path.exists()}

    def curve(self, seed: int) -> Path:
        """Path of the training curve of one seed (it may not exist)."""
        return self._place("train", seed) / "curve.csv"

    def judged(self, seed: int, name: str) -> Path:
        """Path of a file that judging one seed has left, such as ``attention.npz`` (it may not exist)."""
        return self._place("evaluation", seed) / name

    def attention(self, seed: int) -> Path:
        """Path of the attention weights kept for figures of one seed (it may not exist)."""
        return self.judged(seed, "attention.npz")

    def _place(self, stage: str, seed: int) -> Path:
        return self.folder / stage / ("ensemble" if self.members else f"seed{seed}")


def load_results(
    folder: Path, left_out: Mapping[str, str] | None = None, judged: Collection[str] | None = None
) -> dict[str, RunResults]:
    """Read all variants of one paper at one scale (``runs/<scale>/<paper>``) and their ensembles, by name.

    Args:
        folder: of the paper at the scale.
        left_out: variant to the reason why it does not run at this scale; files of an earlier run are passed over.
        judged: the variants that have results at this scale, by default all; what others have left is passed over.
            A name such as ``bahdanau/rnnsearch`` is another paper's variant at the same scale, read from its runs.

    Raises:
        ReplicationError: there is none, or one cannot be read.
    """
    left_out = left_out or {}
    found = [path.parent for path in sorted(folder.glob("*/metrics.json")) if path.parent.name not in left_out]
    results = [RunResults.load(variant) for variant in found if judged is None or variant.name in judged]
    others = [name for name in judged or () if "/" in name and name not in left_out]
    results += [replace(RunResults.load(folder.parent / name), variant=name) for name in others]
    if not results:
        raise ReplicationError(f"{folder} holds no evaluated variant; run its evaluate stages first.")
    ensembles = [result.as_ensemble() for result in results if result.together]
    reasons = [RunResults(folder / name, name, "", {}, {}, {}, "token", why) for name, why in left_out.items()]
    return {result.variant: result for result in (*ensembles, *results, *reasons)}


def check_paired(first: list[Example], other: list[Example], who: str) -> None:
    """Refuse examples that are not the same ones in the same order.

    Raises:
        ReplicationError: names the first difference.
    """
    for index, (left, right) in enumerate(zip(first, other, strict=False)):
        if left["id"] != right["id"]:
            raise ReplicationError(
                f"the test examples of {who} cannot be paired: example {index} is '{right['id']}', not "
                f"'{left['id']}'; evaluate all variants of the task again on the same test set."
            )
    if len(first) != len(other):
        raise ReplicationError(
            f"the test examples of {who} cannot be paired: there are {len(other)}, not {len(first)}; evaluate "
            "all variants of the task again on the same test set."
        )


def read_recorded(path: Path) -> dict[tuple[str, str], dict[int, float]]:
    """Map metric and split to what training recorded of one seed, update to value; empty if there is no such file.

    Values that are not finite, such as those of a diverged training, are left out.

    Raises:
        ReplicationError: it has other columns than step, split, metric, value.
    """
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in _read_rows(path, "a training curve", ["step", "split", "metric", "value"]):
        if math.isfinite(value := float(row["value"])):
            found[row["metric"], row["split"]][int(row["step"])] = value
    return found


def read_mean(path: Path) -> dict[float, list[float]]:
    """Update to one value, the mean over seeds of the loss on validation, which git keeps where it keeps no seed's.

    Raises:
        ReplicationError: it has other columns than update and valid_loss.
    """
    rows = _read_rows(path, "a mean curve", ["update", "valid_loss"])
    return {float(row["update"]): [float(row["valid_loss"])] for row in rows}


def _read_rows(path: Path, what: str, columns: list[str]) -> list[dict[str, str]]:
    """The rows of a table with these columns; none where there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames != columns:
            raise ReplicationError(f"{path} is not {what} ({','.join(columns)}); train again.")
        return [*rows]


def read_curve(path: Path, *, metric: str, split: str) -> dict[int, float]:
    """One of those that :func:`read_recorded` reads."""
    return read_recorded(path).get((metric, split), {})


def read_costs(folder: Path) -> dict[str, Any]:
    """The record of judging in a variant's folder; empty where there is none. An older one has no ``fingerprints``.

    Raises:
        ReplicationError: it cannot be read.
    """
    path = folder / "evaluation" / COSTS
    return read_record(path, "run its evaluate stage again", {"fingerprints": dict | None}) if path.exists() else {}


def _read_examples(path: Path) -> list[Example]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except (OSError, EOFError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its evaluate stage again.") from None
