"""Papers with variants that are not the paper's own networks: a key of the ``model`` section names their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from shared.tasks.networks import Networks
from shared.tasks.protocol import Runner
from shared.tasks.sections import Routes, check_section, find_route
from shared.tasks.settings import RunT
from shared.training.checkpoints import TrainingRecord
from shared.training.progress import Report

Route = Callable[[RunT], tuple[Runner[RunT], RunT]]
"""Maps a variant whose section has this route's key to its runner and to the settings that the runner takes."""


@dataclass(frozen=True)
class Routed(Generic[RunT]):
    """A paper that compares its networks with variants of other kinds, such as aligners and studies.

    A ``model`` section that has a route's key goes to that route. Only a section that builds a network also reads the
    settings of the task's network below it (:class:`shared.tasks.sections.RouteSection`).

    Attributes:
        default: trains and judges all other variants, and prepares the data.
        routes: key of a ``model`` section to its route.
        sections: the same keys to the classes that check these sections: ``ROUTES`` of the paper's settings.
    """

    default: Networks[Any, RunT, Any]
    routes: Mapping[str, Route[RunT]]
    sections: Routes

    def __post_init__(self) -> None:
        if self.routes.keys() != self.sections.keys():
            raise ValueError(f"routes {sorted(self.routes)} do not fit the sections {sorted(self.sections)}")

    @property
    def kind(self) -> str:
        """That of its networks."""
        return self.default.kind

    def check(self, config: RunT) -> None:
        """Refuse a wrong ``model`` section."""
        check_section(config, self.default.model_config, self.sections, self.default.suits)

    def cannot_run(self, config: RunT) -> str | None:
        """Why this machine cannot run the variant, if so."""
        runner, config = self._runner(config)
        return runner.cannot_run(config)

    def cost(self, config: RunT, prepared: Path | None) -> tuple[int, float] | None:
        """Parameters, and processor seconds of an update."""
        runner, config = self._runner(config)
        return runner.cost(config, prepared)

    def train(
        self, config: RunT, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train one seed."""
        runner, config = self._runner(config)
        return runner.train(
            config, prepared=prepared, folder=folder, seed=seed, fingerprint=fingerprint, label=label, progress=progress
        )

    def evaluate(self, config: RunT, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Judge one trained seed or an ensemble."""
        runner, config = self._runner(config)
        return runner.evaluate(config, prepared=prepared, trained=trained, out=out)

    def descriptions(self, config: RunT, prepared: Path) -> Mapping[str, Any]:
        """Signatures and the token's name."""
        runner, config = self._runner(config)
        return runner.descriptions(config, prepared)

    def features(self, corpus: Any, dataset: Path, out: Path) -> Mapping[str, object]:
        """Encode pictures."""
        return self.default.features(corpus, dataset, out)

    def prepare(self, corpus: Any, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode."""
        return self.default.prepare(corpus, dataset, out)

    def _runner(self, config: RunT) -> tuple[Runner[RunT], RunT]:
        """The runner of a variant, and the settings that it takes."""
        section, config = find_route(config, self.default.model_config, self.sections)
        return (self.default, config) if section is None else self.routes[section[0]](config)
