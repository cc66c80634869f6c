"""From ``params.yaml`` and ``replications/<paper>/<scale>.yaml`` to one checked run.

What needs torch is imported where it is used: fetching, summarizing and mistakes do not wait for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field

from shared.config import Strict, build, load_yaml, merge
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.data.parallel import CorpusConfig
    from shared.pipeline.run_config import RunConfig

Scale = Literal["smoke", "quick", "bench", "paper_scale"]
SCALES: tuple[str, ...] = get_args(Scale)


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

    def dataset(self, task: str) -> str:
        """The name of the data set of a task's corpus."""
        corpus = self._task(task).get("corpus")
        if not isinstance(corpus, dict) or not isinstance(corpus.get("dataset"), str):
            raise ReplicationError(f"{self.path}: tasks.{task}.corpus must name its 'dataset'.")
        return str(corpus["dataset"])

    def corpus(self, task: str) -> CorpusConfig:
        """The corpus of a task."""
        from shared.data.parallel import CorpusConfig

        return build(CorpusConfig, self._task(task).get("corpus"), where=f"{self.path}: tasks.{task}.corpus")

    def not_run(self, variant: str) -> str | None:
        """The reason why a variant is left out at this scale, if it is."""
        reason = self._variant(variant).get("not_run")
        return None if reason is None else str(reason)

    def run(self, variant: str) -> RunConfig:
        """A variant: its task's defaults with its own settings laid over them."""
        from shared.pipeline.run_config import RunConfig

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
