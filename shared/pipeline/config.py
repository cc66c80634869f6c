"""From ``params.yaml``, ``replications/<paper>/variants.yaml`` and a scale's ``params.yaml`` to one checked run.

A run is three layers of settings, each laid over the one before: the task's at this scale, what the variant is at every
scale, and what the variant changes at this scale. Nothing here imports torch: mistakes do not wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from shared.claims.rules import SCALES, Scale
from shared.config import Strict, build, check_name, load_yaml, merge, near
from shared.data.cards import leaves
from shared.errors import ReplicationError
from shared.pipeline.files import paper_folder, write_text
from shared.tasks.kinds import KINDS, papers, part_of
from shared.tasks.settings import RunConfig

Section = dict[str, Any]
EMPTY: Any = Field(default_factory=dict)
MOST = 2**31 - 1
"""The largest whole number that a setting may be: seeds and sizes beyond it suit no library that takes them."""


def each_once(values: list[Any]) -> list[Any]:
    """Refuse a list, for pydantic, that has a value twice."""
    if len({*values}) < len(values):
        raise ValueError(f"each must stand there once, not as {max(values, key=values.count)} does")
    return values


Seeds = Annotated[list[Annotated[int, Field(ge=0, le=MOST)]], Field(min_length=1), AfterValidator(each_once)]
"""One seed or more; each is a run of its own."""


class Params(Strict):
    """``params.yaml``: the knobs of this checkout.

    Attributes:
        scale: whose report ``dvc repro report@<paper>`` makes.
        workers: runs that are trained side by side; null: as many as there are processor cores.
        scheduler: address of a Dask scheduler whose workers train instead, such as tcp://10.0.0.1:8786.
        logger: what has the learning curves beside ``curve.csv``; csv: nothing, else Lightning's logger of that name.
        papers: those that have a ``report@<paper>``.
    """

    scale: Scale
    workers: int | None = Field(default=None, ge=1, le=10_000)
    scheduler: str | None = Field(default=None, pattern=r"^([a-z]+://)?\S+:\d+$")
    logger: Literal["csv", "tensorboard", "dvclive", "wandb", "mlflow"] = "csv"
    papers: Annotated[list[str], AfterValidator(each_once)]


class Corpus(Strict, extra="allow"):
    """A task's ``corpus``; the task's kind checks the rest of it."""

    dataset: str


class Task(Strict):
    """One entry of ``tasks`` in a scale's ``params.yaml``; the task's kind checks the sections.

    Attributes:
        after: the stage whose record preparation waits for.
    """

    after: Literal["fetched", "features"] = "fetched"
    corpus: Corpus
    model: Section
    training: Section
    decoding: Section | None = None
    evaluation: Section | None = None
    seeds: Seeds

    @property
    def sections(self) -> Section:
        """What is given of a variant's settings."""
        return self.model_dump(exclude_unset=True, exclude={"after"})


class Identity(Strict):
    """One entry of ``variants.yaml``: what a variant is at every scale."""

    model: Section = EMPTY
    training: Section = EMPTY
    decoding: Section = EMPTY
    evaluation: Section = EMPTY


class Variant(Identity):
    """One entry of ``variants`` in a scale's ``params.yaml``: its task, and what it changes at this scale."""

    task: str
    seeds: Seeds | None = None


class Identities(Strict):
    """``variants.yaml``.

    Attributes:
        kind: the kind of all the paper's tasks, one of :data:`shared.tasks.kinds.KINDS`.
        variants: by name.
    """

    kind: str
    variants: dict[str, Identity]


class Reason(Strict):
    """Why some variants do not run at a scale."""

    because: str
    variants: list[str] = Field(min_length=1)


class LeftOut(Strict):
    """What does not run at a scale, and why; settings of those that could be built all the same."""

    reasons: list[Reason] = Field(default_factory=list)
    tasks: dict[str, Task] = EMPTY
    variants: dict[str, Variant] = EMPTY


class Content(Strict):
    """A scale's ``params.yaml``.

    Attributes:
        others: runs of other papers at the same scale, ``<paper>/<variant>``, that claims or tables of this one name.
    """

    paper: str
    scale: Scale
    deviations: list[str]
    features: list[str]
    tasks: dict[str, Task]
    variants: dict[str, Variant]
    others: list[Annotated[str, Field(pattern="^[^/]+/[^/]+$")]]
    left_out: LeftOut


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check ``params.yaml``."""
    return build(Params, load_yaml(path), where=str(path))


def use_scale(scale: str, papers: Sequence[str] = ()) -> None:
    """Set ``scale`` in params.yaml, and let DVC see the pipelines of that scale alone (``.dvcignore``).

    Args:
        scale: the one to be used.
        papers: those that DVC is to see, with those whose runs they name; all where none is given.

    Raises:
        ReplicationError: there is no such scale or paper, or a file is not as this project has it; nothing has changed
            then.
    """
    check_name(scale, SCALES, "there is no scale")
    listed = load_params().papers
    seen = {*papers, *(other.partition("/")[0] for paper in papers for other in ScaleFile(paper, scale).others)}
    params, ignored = Path("params.yaml"), Path(".dvcignore")
    if not ignored.is_file():
        raise ReplicationError(f"{ignored} is not there; take it back with 'git checkout {ignored}'.")
    text, found = re.subn(r"(?m)^scale: .*$", f"scale: {scale}", params.read_text(encoding="utf-8"))
    if found != 1:
        raise ReplicationError(f"{params}: {found} lines begin with 'scale: ' instead of one; write 'scale: {scale}'.")
    lines = "".join(f"!/replications/{paper}/{scale}/dvc.yaml\n" for paper in sorted(seen) or "*")
    write_text(ignored, re.sub(r"(?m)(^!/replications/.*/dvc\.yaml\n?)+", lines, ignored.read_text(encoding="utf-8")))
    write_text(params, text)
    there = ", ".join(paper for paper in papers or listed if scale in scales_of(paper))
    print(f"scale: {scale}; dvc repro report@<paper> makes the report of {there or 'no paper yet'}")


def scales_of(paper: str) -> list[str]:
    """The scales that a paper has, from the smallest."""
    return [scale for scale in SCALES if (paper_folder(paper) / scale / "params.yaml").is_file()]


def load_settings(paper: str) -> Any:
    """The module ``settings`` of a paper, as :func:`shared.tasks.settings.check_model` has it.

    Raises:
        ReplicationError: it lacks what that function needs.
    """
    module = import_module(f"replications.{paper}.settings")
    for name in ("KIND", "ModelConfig"):
        if not hasattr(module, name):
            raise ReplicationError(f"replications/{paper}/settings.py has no {name}; give it one, as all do.")
    return module


class ScaleFile:
    """One paper at one scale: ``replications/<paper>/<scale>/params.yaml`` over ``replications/<paper>/variants.yaml``.

    Args:
        paper: folder below ``replications``.
        scale: one of :data:`SCALES`.

    Attributes:
        path: of the scale's file.
        kind: of the paper's tasks.
        tasks: name to settings of those that run.
        built_tasks: the same, and those that are given beside them under ``left_out``.
        variants: name to settings of those that run.
        built_variants: the same, and those that are given beside them under ``left_out``.
        identities: of all variants of the paper, whether they run at this scale or not.
        others: runs of other papers, ``<paper>/<variant>``, that claims or tables name.
        left_out: variant to the reason why it does not run; one that no claim, table or figure names needs none.
        deviations: from the paper, at this scale.

    Raises:
        ReplicationError: a file is missing or wrong, or the two do not agree.
    """

    def __init__(self, paper: str, scale: str) -> None:
        check_name(scale, SCALES, "there is no scale")
        folder = paper_folder(paper)
        self.paper, self.scale = paper, scale
        self.path, self.variants_path = folder / scale / "params.yaml", folder / "variants.yaml"
        content = build(Content, load_yaml(self.path), where=str(self.path))
        identities = build(Identities, load_yaml(self.variants_path), where=str(self.variants_path))
        self.kind, self.identities = identities.kind, identities.variants
        self.tasks, self.variants = content.tasks, content.variants
        self.deviations, self.features, self.others = content.deviations, content.features, content.others
        self.built_tasks = content.tasks | content.left_out.tasks
        self.built_variants = content.variants | content.left_out.variants
        self._runs: dict[str, RunConfig] = {}
        self.left_out = {name: reason.because for reason in content.left_out.reasons for name in reason.variants}
        check_name(self.kind, KINDS, f"{self.variants_path}: kind: there is no kind of task")
        for problem in self._contradictions(content):
            raise ReplicationError(f"{self.path}: {problem}.")

    @classmethod
    def named(cls, name: str, scale: str) -> tuple[ScaleFile, str]:
        """The settings of the paper of ``<paper>.<variant>`` or ``<paper>.<task>``, and the variant or task."""
        paper, _, rest = name.partition(".")
        if not (paper and rest):
            raise ReplicationError(f"'{name}' is not of the form <paper>.<variant>, e.g. bahdanau.rnnsearch-50.")
        return cls(paper, scale), rest

    @property
    def models(self) -> Any:
        """The module ``settings`` of the paper; see :func:`load_settings`."""
        return load_settings(self.paper)

    def dataset(self, task: str) -> str:
        """The name of the data set of a task's corpus."""
        return self._task(task).corpus.dataset

    def corpus(self, task: str) -> Any:
        """The corpus of a task, as the settings of its kind."""
        self._task(task)
        return self.run(next(name for name, each in self.built_variants.items() if each.task == task)).corpus

    def run(self, variant: str, changes: Section | None = None) -> RunConfig:
        """All settings of a variant; also of one that is left out, if it could be built at this scale.

        Args:
            variant: its name.
            changes: sections that are laid over all others.
        """
        if "/" in variant:
            other, name = self.other(variant)
            return other.run(name, changes)
        if not changes and variant in self._runs:
            return self._runs[variant]
        own = self._variant(variant)
        check_name(variant, self.identities, f"{self.variants_path} has no variant")
        layers = [each.model_dump(exclude_unset=True) for each in (self.identities[variant], own)] + [changes or {}]
        value, where = reduce(merge, [self._task(own.task).sections, *layers]), f"{self.path}: variants.{variant}"
        refuse_huge(value, where)
        run = build(part_of(self.kind, "settings").RUN, value, where=where)
        run = run.at(str(self.path), variant, reduce(merge, [layer.get("model", {}) for layer in layers]))
        return run if changes else self._runs.setdefault(variant, run)

    def other(self, name: str) -> tuple[ScaleFile, str]:
        """The settings of another paper, and its variant, that ``<paper>/<variant>`` names.

        Raises:
            ReplicationError: ``others`` has no such name, there is no such paper, or it trains no such variant.
        """
        check_name(name, self.others, f"{self.path}: others must list")
        paper, _, variant = name.partition("/")
        check_name(paper, {*papers()} - {self.paper}, f"{self.path}: others: there is no other paper")
        other = ScaleFile(paper, self.scale)
        check_name(variant, other.variants, f"{self.path}: others: {other.path} runs no")
        return other, variant

    def task_of(self, variant: str) -> str:
        """The name of a variant's task."""
        if "/" in variant:
            other, name = self.other(variant)
            return other.task_of(name)
        return self._variant(variant).task

    def judged(self) -> list[str]:
        """All variants that have results at this scale: those that run, then those of other papers."""
        return [*self.variants, *self.others]

    def running(self, names: Iterable[str]) -> list[str]:
        """Those of some variants that have results at this scale, each once; an ensemble counts as its variant."""
        plain = dict.fromkeys(name.removesuffix("-ensemble") for name in names)
        return [name for name in plain if name in self.judged()]

    def paired(self, names: Sequence[str]) -> list[int]:
        """The seeds that all of some variants have, in order."""
        return sorted(set.intersection(*({*self.run(name).seeds} for name in names))) if names else []

    def folder(self, variant: str) -> Path:
        """The folder of a variant's results, ``runs/<scale>/<paper>/<variant>``."""
        return Path("runs", self.scale, variant if "/" in variant else f"{self.paper}/{variant}")

    def _contradictions(self, content: Content) -> Iterator[str]:
        """What contradicts the folder's name, the other file or another part of this one."""
        known, variants = self.identities, self.variants_path
        if (content.paper, content.scale) != (self.paper, self.scale):
            given = f"paper '{content.paper}' and scale '{content.scale}'"
            yield f"{given} must be those of the folder, '{self.paper}' and '{self.scale}'"
        for section, names in (("variants", [*self.variants]), ("left_out", [*self.left_out])):
            for name in [each for each in names if each not in known]:
                yield f"{section}: {variants} has no variant '{name}'{near(name, known)}"
        for name in known:
            if name in self.variants and name in self.left_out:
                yield f"'{name}' is among variants and left_out; keep one of them"
        for name, task in self.tasks.items():
            if (task.after == "features") != (name in self.features):
                must = "must" if task.after == "features" else "must not"
                yield f"tasks.{name}.after is '{task.after}', so 'features' {must} list '{name}'"
            if not any(variant.task == name for variant in self.variants.values()):
                yield f"tasks.{name} has no variant that runs; remove it, or add one"

    def _task(self, name: str) -> Task:
        check_name(name, self.built_tasks, f"{self.path} has no task")
        return self.built_tasks[name]

    def _variant(self, name: str) -> Variant:
        if name in self.left_out and name not in self.built_variants:
            raise ReplicationError(f"{self.path}: '{name}' is left out: {self.left_out[name]}.")
        check_name(name, self.built_variants, f"{self.path} has no variant")
        return self.built_variants[name]


def lenders(*configs: RunConfig) -> list[str]:
    """The papers whose models variants borrow (:class:`shared.tasks.settings.BorrowedConfig`)."""
    return sorted({config.model["paper"] for config in configs if "paper" in config.model})


def refuse_huge(value: Any, where: str, most: int = MOST) -> None:
    """Refuse a whole number, at any depth, that is so large that checking it or using it takes all memory or fails.

    Raises:
        ReplicationError: names the place ``where`` and the keys that lead to the number.
    """
    for place, number in leaves(value, where):
        if isinstance(number, int) and abs(number) > most:
            shown = f"{number:.3g}" if abs(number) < 1e300 else "a number of over 300 digits"  # no float is that large
            raise ReplicationError(f"{place}: {shown} is too large; give at most {most:,}.")
