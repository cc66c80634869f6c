"""Relative effective context lengths as metrics of variants: each depends on the losses of a whole group of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.metrics.context_length import Losses, relative_effective_context_length
from shared.tasks.language.measures import RATIOS


class ContextLosses(NamedTuple):
    """Losses of the models of a group, of one seed: (C, P) each, of P symbols with C lengths of the context."""

    losses: Losses
    contexts: NDArray[np.int64]  # (C,)


def with_context_lengths(
    results: Mapping[str, RunResults], groups: Mapping[str, Sequence[str]]
) -> Mapping[str, RunResults]:
    """The results with the metrics ``recl_<group>_<100 r>`` of every seed and their mean, for r = 0.1, 0.5 and 1.

    A seed's length is found among the group's models of this seed. It is one of the lengths of context that were
    measured; ``recl_<group>_step`` is the widest step between two of them.

    Args:
        results: of all variants of a paper, by name.
        groups: name to the variants that are compared.

    Raises:
        ReplicationError: see :func:`context_losses`.
    """
    completed = dict(results)
    for group, variants in groups.items():
        lengths: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for seed, (losses, contexts) in context_losses(results, variants).items():
            for percent, r in RATIOS.items():
                for variant, length in relative_effective_context_length(losses, contexts, r).items():
                    lengths[variant][seed][f"recl_{group}_{percent}"] = length
                    lengths[variant][seed][f"recl_{group}_step"] = float(np.diff(np.sort(contexts)).max())
        completed |= {variant: _with(completed[variant], found) for variant, found in lengths.items()}
    return completed


def context_losses(results: Mapping[str, RunResults], variants: Sequence[str]) -> dict[int, ContextLosses]:
    """Seed to the losses by length of the context, of those ``variants`` that measured them; none of a single one.

    Raises:
        ReplicationError: they have not the same seeds, positions or lengths, or a file is broken.
    """
    runs = [results[name] for name in variants if name in results]
    measured = [run for run in runs if run.seeds and all(run.contexts(seed).exists() for seed in run.seeds)]
    if len(measured) < 2:
        return {}
    if len({run.seeds for run in measured}) > 1:
        raise ReplicationError(
            f"the context lengths of {', '.join(run.variant for run in measured)} are compared seed by seed; give the "
            "variants the same seeds."
        )
    found = {}
    for seed in measured[0].seeds:
        arrays = {run.variant: _read(run.contexts(seed)) for run in measured}
        first = arrays[measured[0].variant]
        for variant, other in arrays.items():
            if not all(np.array_equal(first[name], other[name]) for name in ("context", "places")):
                raise ReplicationError(
                    f"the context lengths of {variant} cannot be compared with those of {measured[0].variant}: their "
                    "losses are of other symbols or lengths; give both the same evaluation.contexts."
                )
        losses = {variant: array["nats"] for variant, array in arrays.items()}
        found[seed] = ContextLosses(losses, first["context"])
    return found


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            return {name: arrays[name] for name in ("context", "nats", "places")}
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its evaluate stage again.") from None


def _with(run: RunResults, numbers: Mapping[int, Mapping[str, float]]) -> RunResults:
    """The run with further metrics of every seed, and their means."""
    names = numbers[run.seeds[0]]
    mean = {name: fmean(of[name] for of in numbers.values()) for name in names}
    metrics = {seed: {**run.metrics[seed], **numbers[seed]} for seed in run.seeds}
    return replace(run, metrics=metrics, mean={**run.mean, **mean})
