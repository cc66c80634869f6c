"""What training a variant would cost on this machine, from a few real updates on its own data."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass

from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, load_params
from shared.pipeline.files import run_folder
from shared.pipeline.provenance import peak_memory_mib

HOUR = 3600.0


@dataclass(frozen=True)
class Estimate:
    """The cost of training one variant with all seeds.

    Attributes:
        parameters: of the model.
        seconds: processor seconds of an update.
        updates: of one seed.
        seeds: how many.
        measured_on: "its data" or "random data of the greatest length", for a task that is not prepared.
    """

    parameters: int
    seconds: float
    updates: int
    seeds: int
    measured_on: str

    @property
    def hours(self) -> float:
        """Processor hours of all seeds, without validation and evaluation."""
        return self.seconds * self.updates * self.seeds / HOUR


def estimate_stage(name: str, scale: str) -> None:
    """Print processor hours, peak memory and the time when training would end, of ``<paper>.<variant>`` or a paper."""
    paper, _, variant = name.partition(".")
    settings = ScaleFile(paper, scale)
    variants = [variant] if variant else list(settings.variants)
    total, longest = 0.0, 0.0
    for each in variants:
        found = estimate(settings, each)
        if found is None:
            print(f"{paper}.{each}: trains no network")
            continue
        total, longest = total + found.hours, max(longest, found.hours / found.seeds)
        print(
            f"{paper}.{each}: {found.parameters:,} parameters; {found.updates:,} updates of {found.seconds:.3f} "
            f"processor seconds on {found.measured_on}, {found.seeds} seeds: {found.hours:,.2f} processor hours"
        )
    workers = load_params().workers or os.cpu_count() or 1
    hours = max(total / workers, longest)
    end = datetime.datetime.now().astimezone() + datetime.timedelta(hours=hours)
    print(
        f"together {total:,.2f} processor hours, {peak_memory_mib():,.0f} MiB at most; begun now with {workers} "
        f"at once on an idle machine, training ends about {end:%Y-%m-%d %H:%M}"
    )


def estimate(settings: ScaleFile, variant: str) -> Estimate | None:
    """Make a few updates of one variant; None if it trains no network.

    Raises:
        ReplicationError: it cannot be built at this scale.
    """
    import torch

    from shared.tasks.protocol import load_replication

    torch.set_num_threads(1)
    config, replication = settings.run(variant), load_replication(settings.paper)
    replication.check(config)
    if reason := replication.cannot_run(config):
        raise ReplicationError(f"{settings.path}: '{variant}' cannot run on this machine: {reason}.")
    prepared = run_folder(settings.paper, settings.scale) / "tasks" / config.task
    cost = replication.cost(config, prepared if prepared.is_dir() else None)
    if cost is None:
        return None
    parameters, seconds = cost
    return Estimate(
        parameters, seconds, config.training.updates, len(config.seeds),
        "its data" if prepared.is_dir() else "random data of the greatest length",
    )  # fmt: skip
