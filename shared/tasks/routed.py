"""Papers not all of whose variants are the paper's own networks: a key of the ``model`` section names another kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from shared.errors import ReplicationError
from shared.tasks.networks import Networks
from shared.tasks.protocol import Runner
from shared.tasks.settings import RunT
from shared.training.checkpoints import TrainingRecord
from shared.training.progress import Report

Route = Callable[[RunT], tuple[Runner[RunT], RunT]]
"""From a variant's settings to what trains and judges it, and to the settings for that; refuses wrong ones."""


@dataclass(frozen=True)
class Routed(Generic[RunT]):
    """A paper whose networks, of whatever kind, are compared with what is trained otherwise.

    A ``model`` section that has a route's key goes to that route. It may lie over the settings of the task's
    networks; these are passed over, so that the route sees its own keys alone, unless it is in ``whole``.

    Attributes:
        default: trains and judges all other variants, and prepares the data.
        routes: by the key of the ``model`` sections that go there.
        whole: keys of the routes that see the settings of the networks as well, since they build one.
    """

    default: Networks[Any, RunT, Any]
    routes: Mapping[str, Route[RunT]]
    whole: Collection[str] = ()

    @property
    def kind(self) -> str:
        """That of its networks."""
        return self.default.kind

    def check(self, config: RunT) -> None:
        """Refuse a wrong ``model`` section."""
        runner, config = self._runner(config)
        runner.check(config)

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
        """What a variant goes to, and with which settings.

        Raises:
            ReplicationError: it has the keys of two routes.
        """
        keys = [key for key in self.routes if key in config.model]
        if not keys:
            return self.default, config
        if len(keys) > 1:
            raise ReplicationError(
                f"the model section of task '{config.task}' has {' and '.join(map(repr, keys))}; leave in one."
            )
        passed_over = () if keys[0] in self.whole else self.default.model_config.model_fields
        own = {key: value for key, value in config.model.items() if key not in passed_over}
        return self.routes[keys[0]](config.model_copy(update={"model": own}))
