"""From ``params.yaml`` and ``replications/<paper>/<scale>.yaml`` to one checked run.

What needs torch is imported where it is used: fetching, summarizing and mistakes do not wait for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, create_model

from shared.config import Strict, build, load_yaml, merge, near
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

Scale = Literal["smoke", "quick", "bench", "paper_scale"]
SCALES: tuple[str, ...] = get_args(Scale)
KINDS = {
    "translation": "shared.tasks.translation.settings.TranslationRun",
    "classification": "shared.tasks.classification.settings.ClassificationRun",
    "captioning": "shared.tasks.captioning.settings.CaptioningRun",
    "language": "shared.tasks.language.settings.LanguageRun",
    "sequences": "shared.tasks.sequences.settings.SequenceRun",
}
"""The kinds of task, with what checks the settings of their variants; by name, for a paper needs that of its own."""


class Params(Strict):
    """``params.yaml``: what is run."""

    class Task(Strict):
        """A paper's task."""

        paper: str
        task: str

    class Prepared(Task):
        """A paper's task, and which of the stages before preparation it waits for."""

        after: Literal["fetched", "features"]

    class Run(Task):
        """A paper's variant on one of its tasks."""

        variant: str

    scale: Scale
    threads: int = Field(ge=1)
    papers: list[str]
    tasks: dict[str, Prepared]
    pictures: dict[str, Task]
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
        self.paper = paper
        self.path = Path("replications") / paper / f"{scale}.yaml"
        if scale not in SCALES:
            raise ReplicationError(f"there is no scale '{scale}'; choose {', '.join(SCALES)}.")
        if not self.path.parent.is_dir():
            raise ReplicationError(f"there is no paper '{paper}'{near(paper, papers())}.")
        content = load_yaml(self.path)
        if not isinstance(content, dict) or {"tasks", "variants"} - content.keys():
            raise ReplicationError(f"{self.path} must be a mapping with the keys 'tasks' and 'variants'.")
        self.tasks: dict[str, Any] = content["tasks"]
        self.variants: dict[str, Any] = content["variants"]
        self.deviations: list[str] = content.get("deviations", [])

    def dataset(self, task: str) -> str:
        """The name of the data set of a task's corpus."""
        name = self._corpus(task).get("dataset")
        if not isinstance(name, str):
            raise ReplicationError(f"{self.path}: tasks.{task}.corpus must name its 'dataset'.")
        return name

    def left_out(self, task: str) -> str | None:
        """The reason why a task is left out at this scale, if it is: ``corpus: {left_out: reason}``.

        Such a task need not say more of its corpus. It is neither fetched nor prepared.
        """
        reason = self._corpus(task).get("left_out")
        return None if reason is None else str(reason)

    def kind(self, task: str) -> str:
        """What the models of a task do, one of :data:`KINDS`; they translate unless it says otherwise.

        Raises:
            ReplicationError: there is no such kind.
        """
        kind = str(self._task(task).get("kind", "translation"))
        if kind not in KINDS:
            raise ReplicationError(f"{self.path}: tasks.{task}: there is no kind '{kind}'{near(kind, KINDS)}.")
        return kind

    def corpus(self, task: str) -> Any:
        """The corpus of a task, as the configuration of its kind."""
        field = self._settings(task).model_fields["corpus"]
        kind: Any = field.annotation  # one class or several, which the field tells apart
        section = create_model("Section", __base__=Strict, corpus=(kind, field))
        built: Any = build(section, {"corpus": self._task(task).get("corpus")}, where=f"{self.path}: tasks.{task}")
        return built.corpus

    def not_run(self, variant: str) -> str | None:
        """The reason why a variant is left out at this scale, if it is: its own, or that of its task."""
        own = self._variant(variant)
        reason = own.get("not_run")
        return self.left_out(own.get("task", "")) if reason is None else str(reason)

    def run(self, variant: str) -> RunConfig:
        """A variant: its task's defaults with its own settings laid over them."""
        own = self._variant(variant)
        task = own.get("task", "")
        value = merge(self._task(task), own)
        run = build(self._settings(task), value, where=f"{self.path}: variants.{variant}")
        return run.at(str(self.path), variant, own.get("model") or {})

    def lenders(self, variants: Iterable[str]) -> set[str]:
        """The papers whose models variants borrow (``shared.tasks.translation.borrowed``), of those that run."""
        run = [self._variant(variant) for variant in variants if self.not_run(variant) is None]
        sections = [merge(self._task(own.get("task", "")).get("model"), own.get("model", {})) for own in run]
        return {section["paper"] for section in sections if isinstance(section, dict) and "paper" in section}

    def task_of(self, variant: str) -> str:
        """The name of a variant's task."""
        return str(self._variant(variant).get("task"))

    def _settings(self, task: str) -> type[RunConfig]:
        module, _, name = KINDS[self.kind(task)].rpartition(".")
        settings: type[RunConfig] = getattr(importlib.import_module(module), name)
        return settings

    def _corpus(self, task: str) -> dict[str, Any]:
        corpus = self._task(task).get("corpus")
        return corpus if isinstance(corpus, dict) else {}

    def _task(self, name: str) -> dict[str, Any]:
        if name not in self.tasks:
            raise ReplicationError(f"{self.path} has no task '{name}'{near(name, self.tasks)}.")
        return dict(self.tasks[name])

    def _variant(self, name: str) -> dict[str, Any]:
        if name not in self.variants:
            raise ReplicationError(f"{self.path} has no variant '{name}'{near(name, self.variants)}.")
        return dict(self.variants[name])


def papers() -> list[str]:
    """All papers of the project."""
    return sorted(file.parent.name for file in Path("replications").glob("*/paper.yaml"))
