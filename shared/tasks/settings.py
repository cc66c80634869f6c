"""One variant's settings as checked values, as far as those of every kind of task are alike.

Each kind has a module of its own, such as :mod:`shared.tasks.translation.settings`, which composes its sections from
what is here and in :mod:`shared.training.config`. A paper says in its ``settings.py`` what its ``model`` sections are:
``KIND`` and ``ModelConfig``; ``ROUTES`` where some are of no network; and ``suits`` where more has to fit
(:func:`check_model`). None of them imports torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, PrivateAttr, SerializerFunctionWrapHandler, model_serializer, model_validator

from shared.config import ConfigT, Strict, build, check_name
from shared.errors import ReplicationError
from shared.training.config import Batched, TrainingConfig


class CorpusConfig(Strict):
    """Which data set a task is of, and on which of its splits models are judged.

    Attributes:
        dataset: a card of data/, without .yaml
        test: splits that models are judged on
        draws: each_seed: every seed is trained and judged on another draw of a generated card
    """

    reads: ClassVar[tuple[str, ...]] = ()
    """Languages that a data set must have for tasks of the kind, whatever their settings."""
    limits: ClassVar[str] = ""
    """The key that maps splits to how many of their examples are used, the first ones, if there is one."""
    dataset: str
    test: list[str] = Field(default=["test"], min_length=1)
    draws: Literal["once", "each_seed"] = "once"

    @model_serializer(mode="wrap")
    def _draws_if_each_seed(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without ``draws: once``: records that are older than the key mean that, and stay equal to today's."""
        return {key: value for key, value in dump(self).items() if (key, value) != ("draws", "once")}

    @property
    def splits(self) -> list[str]:
        """All splits of the task."""
        return ["train", "valid", *self.test]

    @model_validator(mode="after")
    def _splits_are_known(self) -> CorpusConfig:
        if self.test[0] != "test":
            raise ValueError("the first of 'test' must be the split 'test', which the report is of")
        if len(set(self.splits)) < len(self.splits):
            raise ValueError("'test' must name every split once, and neither 'train' nor 'valid'")
        if self.limits and (wrong := sorted({*getattr(self, self.limits)} - {*self.splits})):
            raise ValueError(f"'{self.limits}' limits {', '.join(wrong)}, but the splits are {', '.join(self.splits)}")
        return self


class JudgingConfig(Strict):
    """Which weights are judged.

    Attributes:
        checkpoint: which weights are judged
    """

    checkpoint: Literal["best", "last", "average"] = "best"


class Shown(Strict):
    """How much attention is kept for the report.

    Attributes:
        heatmaps: test texts whose attention is kept for figures
    """

    heatmaps: int = Field(default=4, ge=0)


class ExampleTraining(TrainingConfig, Batched):
    """Training on separate examples."""


class RunConfig(Strict):
    """All settings of a variant's runs. Each kind of task narrows the types of corpus and evaluation."""

    kind: str
    task: str
    corpus: CorpusConfig
    model: dict[str, Any]
    training: TrainingConfig
    evaluation: JudgingConfig
    seeds: list[int] = Field(min_length=1)
    _place: str = PrivateAttr(default="")
    _inherited: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def has_ensemble(self) -> bool:
        """Whether the models of all seeds are also judged together, as one; only some kinds can."""
        return getattr(self.evaluation, "ensemble", False)

    @model_validator(mode="after")
    def _can_be_judged(self) -> RunConfig:
        if self.evaluation.checkpoint == "average" and self.training.average is None:
            raise ValueError("evaluation.checkpoint 'average' needs training.average")
        if self.has_ensemble and self.corpus.draws == "each_seed":
            raise ValueError("evaluation.ensemble needs one test set; take corpus.draws 'each_seed' out")
        return self

    def at(self, file: str, variant: str, model: Mapping[str, Any] | None = None) -> Self:
        """Return the same settings, with the file and the variant that error messages name.

        Args:
            file: the YAML file of the variant.
            variant: its name.
            model: the ``model`` section that the variant itself writes. Messages say of all other keys of
                ``self.model`` that they come from the task. By default every key is the variant's.
        """
        copy = self.model_copy()
        copy._place = f"{file}: variants.{variant}.model"
        copy._inherited = frozenset(self.model.keys() - (self.model if model is None else model))
        return copy

    @property
    def where(self) -> str:
        """The model section's file and key, for messages."""
        return self._place or f"the model section of task '{self.task}'"

    @property
    def own_model(self) -> Mapping[str, Any]:
        """What the variant itself says of its model, without the defaults of its task."""
        return {key: value for key, value in self.model.items() if key not in self._inherited}

    def with_model(self, model: Mapping[str, Any]) -> Self:
        """The same variant, in the same place, with another model section."""
        return self.model_copy(update={"model": dict(model)})

    def model_sections(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every ``model`` section that the variant builds networks of, after its place for messages."""
        yield self.where, self.model

    def checked_model(self, kind: type[ConfigT]) -> ConfigT:
        """The ``model`` section as the settings of one kind of model.

        Raises:
            ReplicationError: it does not fit.
        """
        return build(kind, self.model, where=self.where)


class HeadSizes(Strict):
    """Base of the settings of attention whose heads part its width among them.

    Attributes:
        heads, width: H and D.
    """

    pairs: ClassVar[bool] = False
    """Whether the width of each head is to be even."""
    heads: PositiveInt
    width: PositiveInt

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.width % (self.heads * (1 + self.pairs)):
            of = "twice the heads" if self.pairs else "the heads"
            raise ValueError(f"width ({self.width}) must be a multiple of {of} ({self.heads})")
        return self


class TransformerSizes(HeadSizes):
    """Base of the settings of a Transformer.

    Attributes:
        layers, hidden: layers, and the width of the feed-forward networks.
    """

    layers: PositiveInt
    hidden: PositiveInt


class RouteSection(Strict):
    """A ``model`` section that is not of a network of the paper's own; see :func:`shared.tasks.replication.runner_of`.

    Attributes:
        with_network: whether it lies over the settings of the task's network, because it builds one. Any other section
            is read without them: a setting of the same name is not picked up by accident.
    """

    with_network: ClassVar[bool] = False

    def check(self, config: RunConfig, network: type[Strict]) -> None:
        """Refuse what the section's fields alone do not show.

        Args:
            config: the variant, whose ``model`` is this section.
            network: what checks the settings of the paper's own networks.

        Raises:
            ReplicationError: names the setting.
        """


class BorrowedConfig(RouteSection):
    """The ``model`` section of a variant whose model is another paper's: a rival that a paper compares itself with.

    Corpus, training and evaluation stay those of the variant.

    Attributes:
        paper: whose model it is.
        settings: a ``model`` section as that paper's own variants have.
    """

    paper: str
    settings: dict[str, Any]

    def lender(self, config: RunConfig) -> Any:
        """The module ``settings`` of the other paper.

        Raises:
            ReplicationError: there is no such paper, or its models are of another kind of task.
        """
        papers = [path.parent.name for path in Path("replications").glob("*/settings.py")]
        check_name(self.paper, papers, f"{config.where}: there is no paper")
        lender: Any = importlib.import_module(f"replications.{self.paper}.settings")
        if config.kind != lender.KIND:
            raise ReplicationError(f"{config.where}: {self.paper} has no model for tasks of kind '{config.kind}'.")
        return lender

    def check(self, config: RunConfig, network: type[Strict]) -> None:
        """Refuse settings that are not those of a model of the other paper."""
        where = f"{config.where}.settings, for a model of {self.paper}"
        check_network(self.lender(config), self.settings, config, where)


class StudyConfig(RouteSection):
    """The ``model`` section of a variant that is a study.

    Attributes:
        measured: patterns (``fnmatch``) of the names of what the study measures, for claims that name them.
    """

    measured: ClassVar[tuple[str, ...]] = ()
    study: str

    def networks(self) -> Iterator[dict[str, Any]]:
        """The settings of each network that the study builds."""
        yield from ()

    def check(self, config: RunConfig, network: type[Strict]) -> None:
        """Refuse settings that a network of the study cannot be built with."""
        for section in self.networks():
            build(network, section, where=f"{config.where}, for a network of the study")


class NetworkStudyConfig(StudyConfig, extra="allow"):
    """The ``model`` section of a study whose settings lie over those of the task's network."""

    with_network: ClassVar[bool] = True

    @property
    def network(self) -> dict[str, Any]:
        """The settings of the network, without those of the study."""
        return dict(self.model_extra or {})

    def networks(self) -> Iterator[dict[str, Any]]:
        """The network with its settings unchanged."""
        yield self.network


Routes = Mapping[str, type[RouteSection] | Mapping[str, type[StudyConfig]]]
"""Maps the key that identifies a section to the class of the section, or to the classes of the studies by name."""


def check_model(paper: Any, config: RunConfig) -> None:
    """Check the ``model`` section of a variant, and every other section that it builds networks of, without torch.

    Args:
        paper: the module ``replications/<paper>/settings.py``, which has ``KIND``, the kind of the paper's tasks;
            and ``ModelConfig``, the class that checks the settings of a network. It may have ``ROUTES``, all other
            sections, and ``suits(network, config, where)``, which refuses a checked section of a network that does not
            suit the rest of its variant; ``where`` is the place that errors name.
        config: the variant.

    Raises:
        ReplicationError: names file, variant, key and what to do.
    """
    section, config = find_route(config, paper)
    if section is not None:
        config.checked_model(section[1]).check(config, paper.ModelConfig)
        return
    for where, settings in config.model_sections():
        check_network(paper, settings, config, where)


def routes_of(paper: Any) -> Mapping[str, Any]:
    """``ROUTES`` of a paper's module ``settings``, of type :data:`Routes`; empty where all sections are of networks."""
    return getattr(paper, "ROUTES", {})


def check_network(paper: Any, settings: Any, config: RunConfig, where: str) -> None:
    """Check the settings of a network of a paper, and that it suits the rest of a variant."""
    network = build(paper.ModelConfig, settings, where=where)
    if suits := getattr(paper, "suits", None):
        suits(network, config, where)


def trains_network(config: RunConfig, paper: Any) -> bool:
    """Whether training a variant trains a network, the paper's own or another's."""
    section, _ = find_route(config, paper)
    return section is None or section[1] is BorrowedConfig


def find_route(config: Any, paper: Any) -> tuple[tuple[str, type[RouteSection]] | None, Any]:
    """The key and class of a variant's section, None for a network's; and the variant with the settings it reads.

    Args:
        config: the variant.
        paper: its module ``settings``, as in :func:`check_model`.

    Raises:
        ReplicationError: the section has the keys of two routes, names a study that does not exist, or has a setting
            that neither the study nor its network reads.
    """
    routes = routes_of(paper)
    keys = [key for key in routes if key in config.model]
    if not keys:
        return None, config
    if len(keys) > 1:
        raise ReplicationError(f"{config.where}: it has {' and '.join(map(repr, keys))}; leave in one.")
    (key,) = keys
    section = routes[key]
    if isinstance(section, Mapping):
        name = config.model[key]
        check_name(str(name), section, f"{config.where}: there is no study")
        section = section[name]
    own = config.own_model if key in config.own_model else config.model
    if not section.with_network:
        return (key, section), config.with_model(own)
    known = section.model_fields.keys() | paper.ModelConfig.model_fields.keys()
    for name in own:
        check_name(name, known, f"{config.where}: unknown key")
    return (key, section), config
