"""From ``params.yaml`` and ``replications/<paper>/<scale>.yaml`` to one checked run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from shared.config import Strict, build, load_yaml, merge
from shared.data.parallel import CorpusConfig
from shared.decoding.constraints import Normalisation
from shared.errors import ReplicationError
from shared.training.config import TrainingConfig

Scale = Literal["smoke", "quick", "bench", "paper_scale"]
SCALES: tuple[str, ...] = get_args(Scale)


class DecodingConfig(Strict):
    """How translations are searched for."""

    beam: int = Field(ge=1)
    normalisation: Normalisation = "none"
    alpha: float = Field(default=0.6, ge=0)
    minimum_ratio: float = Field(
        default=0.5, ge=0, description="least symbols per source symbol, rounded down"
    )
    maximum_ratio: float = Field(default=3.0, gt=0, description="most symbols per source symbol")
    batch: int = Field(default=64, ge=1, description="sources searched together")
    no_unknown: bool = Field(
        default=False, description="also translate with UNK forbidden, for the no-UNK column"
    )


class EvaluationConfig(Strict):
    """How a trained model is judged."""

    checkpoint: Literal["best", "last"] = "best"
    bleu: Literal["13a", "none"] = Field(default="13a", description="sacreBLEU's tokenisation")
    heatmaps: int = Field(default=4, ge=0, description="test sentences whose attention is kept for figures")


class RunConfig(Strict):
    """Everything that one variant's runs depend on, all seeds."""

    task: str
    corpus: CorpusConfig
    model: dict[str, Any]
    training: TrainingConfig
    decoding: DecodingConfig
    evaluation: EvaluationConfig = EvaluationConfig()
    seeds: list[int] = Field(min_length=1)


class Params(Strict):
    """``params.yaml``: what is run."""

    class Task(Strict):
        """A paper's task."""

        paper: str
        task: str

    class Run(Task):
        """A paper's variant on one of its tasks."""

        variant: str

    scale: Scale
    threads: int = Field(ge=1)
    papers: list[str]
    tasks: dict[str, Task]
    runs: dict[str, Run]


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check ``params.yaml``."""
    return build(Params, load_yaml(path), where=str(path))


class ScaleFile:
    """One ``replications/<paper>/<scale>.yaml``: tasks with their defaults, and variants that override them.

    Args:
        paper: folder below ``replications``.
        scale: one of :data:`SCALES`.

    Raises:
        ReplicationError: there is no such file, or it does not hold ``tasks`` and ``variants``.
    """

    def __init__(self, paper: str, scale: str) -> None:
        self.path = Path("replications") / paper / f"{scale}.yaml"
        if scale not in SCALES:
            raise ReplicationError(f"there is no scale '{scale}'; choose {', '.join(SCALES)}.")
        if not self.path.parent.is_dir():
            known = (folder.parent.name for folder in Path("replications").glob("*/paper.yaml"))
            raise ReplicationError(f"there is no paper '{paper}'{_near(paper, known)}.")
        content = load_yaml(self.path)
        if not isinstance(content, dict) or {"tasks", "variants"} - content.keys():
            raise ReplicationError(f"{self.path} must be a mapping with the keys 'tasks' and 'variants'.")
        self.tasks: dict[str, Any] = content["tasks"]
        self.variants: dict[str, Any] = content["variants"]
        self.deviations: list[str] = content.get("deviations", [])

    def corpus(self, task: str) -> CorpusConfig:
        """The corpus of a task."""
        return build(CorpusConfig, self._task(task).get("corpus"), where=f"{self.path}: tasks.{task}.corpus")

    def not_run(self, variant: str) -> str | None:
        """The reason why a variant is left out at this scale, if it is."""
        reason = self._variant(variant).get("not_run")
        return None if reason is None else str(reason)

    def run(self, variant: str) -> RunConfig:
        """A variant: its task's defaults with its own settings laid over them."""
        own = self._variant(variant)
        value = merge(self._task(own.get("task", "")), own)
        return build(RunConfig, value, where=f"{self.path}: variants.{variant}")

    def task_of(self, variant: str) -> str:
        """The name of a variant's task."""
        return str(self._variant(variant).get("task"))

    def _task(self, name: str) -> dict[str, Any]:
        if name not in self.tasks:
            raise ReplicationError(f"{self.path} has no task '{name}'{_near(name, self.tasks)}.")
        return dict(self.tasks[name])

    def _variant(self, name: str) -> dict[str, Any]:
        if name not in self.variants:
            raise ReplicationError(f"{self.path} has no variant '{name}'{_near(name, self.variants)}.")
        return dict(self.variants[name])


def _near(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean '{near[0]}'?)" if near else f"; there are {', '.join(known)}"
