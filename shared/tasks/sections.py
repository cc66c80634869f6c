"""Checks ``model`` sections without torch: which class a section belongs to, and whether its settings are valid.

A paper says in its ``settings.py``, which imports no torch either, what its sections are: ``KIND``, ``MODEL`` and
``ROUTES``, and ``SUITS`` where more has to fit (:class:`PaperSettings`). Stages check by the same functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from shared.config import Strict, build, near
from shared.errors import ReplicationError
from shared.tasks.settings import RunConfig, RunT


class RouteSection(Strict):
    """A ``model`` section that is not of a network of the paper's own; see :func:`shared.tasks.replication.runner_of`.

    Attributes:
        with_network: whether it lies over the settings of the task's network, because it builds one. Any other section
            is read without them: a setting of the same name is not picked up by accident.
        trains_network: whether training such a variant trains a network, which is not one of the paper's own.
    """

    with_network: ClassVar[bool] = False
    trains_network: ClassVar[bool] = False

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

    trains_network: ClassVar[bool] = True
    paper: str
    settings: dict[str, Any]

    def lender(self, config: RunConfig) -> PaperSettings:
        """The settings of the other paper.

        Raises:
            ReplicationError: there is no such paper, or its models are of another kind of task.
        """
        papers = [path.parent.name for path in Path("replications").glob("*/settings.py")]
        if self.paper not in papers:
            raise ReplicationError(f"{config.where}: there is no paper '{self.paper}'{near(self.paper, papers)}.")
        lender: Any = importlib.import_module(f"replications.{self.paper}.settings")
        if config.kind != lender.KIND:
            raise ReplicationError(f"{config.where}: {self.paper} has no model for tasks of kind '{config.kind}'.")
        settings: PaperSettings = lender
        return settings

    def check(self, config: RunConfig, network: type[Strict]) -> None:
        """Refuse settings that are not those of a model of the other paper."""
        where = f"{config.where}.settings, for a model of {self.paper}"
        build(self.lender(config).MODEL, self.settings, where=where)


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


class PaperSettings(Protocol):
    """The module ``replications/<paper>/settings.py``.

    It may also define ``SUITS(network, config, where)``, which refuses a checked section of a network that does not
    suit the rest of its variant; ``where`` is the place that errors name.

    Attributes:
        KIND: of the paper's tasks.
        MODEL: checks the settings of a network.
        ROUTES: all other sections.
    """

    @property
    def KIND(self) -> str: ...  # noqa: D102
    @property
    def MODEL(self) -> type[Strict]: ...  # noqa: D102
    @property
    def ROUTES(self) -> Routes: ...  # noqa: D102


def check_model(paper: PaperSettings, config: RunConfig) -> None:
    """Check the ``model`` section of a variant, and every other section that it builds networks of, without torch.

    Raises:
        ReplicationError: names file, variant, key and what to do.
    """
    section, config = find_route(config, paper.MODEL, paper.ROUTES)
    if section is not None:
        config.checked_model(section[1]).check(config, paper.MODEL)
        return
    for where, settings in config.model_sections():
        network = build(paper.MODEL, settings, where=where)
        if suits := getattr(paper, "SUITS", None):
            suits(network, config, where)


def find_route(
    config: RunT, network: type[Strict], routes: Routes
) -> tuple[tuple[str, type[RouteSection]] | None, RunT]:
    """The key and class of a variant's section, None for a network's; and the variant with the settings it reads.

    Raises:
        ReplicationError: the section has the keys of two routes, names a study that does not exist, or has a setting
            that neither the study nor its network reads.
    """
    keys = [key for key in routes if key in config.model]
    if not keys:
        return None, config
    if len(keys) > 1:
        raise ReplicationError(f"{config.where}: it has {' and '.join(map(repr, keys))}; leave in one.")
    (key,) = keys
    section = _section(config, key, routes[key])
    own = config.own_model if key in config.own_model else config.model
    if not section.with_network:
        return (key, section), config.with_model(own)
    known = section.model_fields.keys() | network.model_fields.keys()
    for name in own:
        if name not in known:
            raise ReplicationError(f"{config.where}: unknown key '{name}'{near(name, known)}.")
    return (key, section), config


def _section(config: RunConfig, key: str, kinds: type[RouteSection] | Mapping[str, type[StudyConfig]]) -> Any:
    if not isinstance(kinds, Mapping):
        return kinds
    name = config.model[key]
    if not isinstance(name, str) or name not in kinds:
        raise ReplicationError(f"{config.where}: there is no study '{name}'{near(str(name), kinds)}.")
    return kinds[name]
