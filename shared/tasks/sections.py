"""Checks ``model`` sections without torch: which class a section belongs to, and whether its settings are valid.

A paper says in its ``settings.py``, which imports no torch either, what its sections are: ``KIND``, ``MODEL`` and
``ROUTES``, and ``SUITS`` where more has to fit (:class:`PaperSettings`). Stages check by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

from shared.config import Strict, build, near
from shared.errors import ReplicationError
from shared.tasks.settings import RunConfig, RunT


class RouteSection(Strict):
    """A ``model`` section that is not of a network of the paper's own; see :mod:`shared.tasks.routed`.

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
Suits = Callable[[Any, Any, str], None]
"""Refuses a checked section that does not suit the rest of its variant; the text is the place that errors name."""


class PaperSettings(Protocol):
    """The module ``replications/<paper>/settings.py``, which may also define ``SUITS``.

    Attributes:
        KIND: of the paper's tasks.
        MODEL: checks the settings of a network.
        ROUTES: all other sections.
    """

    KIND: str
    MODEL: type[Strict]
    ROUTES: Routes


def anything_suits(section: Any, config: Any, where: str) -> None:
    """Nothing more has to fit: a :data:`Suits`."""


def check_model(paper: PaperSettings, config: RunConfig) -> None:
    """Check the ``model`` section of a variant as far as that needs no torch.

    Raises:
        ReplicationError: names file, variant, key and what to do.
    """
    check_section(config, paper.MODEL, paper.ROUTES, getattr(paper, "SUITS", anything_suits))


def check_section(config: RunConfig, network: type[Strict], routes: Routes, suits: Suits) -> None:
    """As :func:`check_model`, with the paper's settings as separate arguments."""
    section, routed = find_route(config, network, routes)
    if section is None:
        check_networks(config, network, suits)
    else:
        routed.checked_model(section[1]).check(routed, network)


def check_networks(config: RunConfig, network: type[Strict], suits: Suits = anything_suits) -> None:
    """Check every section that the variant builds networks of."""
    for where, section in config.model_sections():
        suits(build(network, section, where=where), config, where)


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
