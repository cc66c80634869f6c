"""How metrics depend on one hyper-parameter: which variants show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.claims.results import RunResults


@dataclass(frozen=True)
class Sweep:
    """Variants of one task that differ in one hyper-parameter.

    Attributes:
        title: what the figure's caption begins with.
        x: what the hyper-parameter is called.
        variants: its value to the variant that has it.
        metrics: keys of metrics.json, a panel each.
        log: whether its values lie on a logarithmic scale; 0 may be among them.
    """

    title: str
    x: str
    variants: Mapping[float, str]
    metrics: Sequence[str]
    log: bool = False

    def runs(self, results: Mapping[str, RunResults], metric: str) -> dict[float, RunResults]:
        """Value to the run with it, ascending; without those that were not run or lack the metric."""
        found = {x: results[name] for x, name in sorted(self.variants.items()) if name in results}
        return {x: run for x, run in found.items() if metric in run.mean}
