"""Refuses claims that cannot be decided as they are written, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from shared.claims import schema
from shared.claims.comparisons import Comparison, Correlation, Exact, Floor, Row, Sides
from shared.claims.rules import DOUBLED_SEEDS, FEWEST_SEEDS
from shared.claims.scales import TESTS
from shared.claims.words import number_of
from shared.config import near
from shared.errors import ReplicationError
from shared.metrics.registry import known, measure, split_of
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import REPLICATIONS
from shared.pipeline.names import check_measures, check_variants


def check_claims(settings: ScaleFile, tasks: Collection[str], measured: Sequence[str]) -> None:
    """Check every claim of a paper at a scale.

    Args:
        settings: of the scale.
        tasks: those of the paper at any scale.
        measured: patterns of what the paper's studies measure.

    Raises:
        ReplicationError: names file, claim and key of the first mistake, and what to do.
    """
    path = REPLICATIONS / settings.paper / "claims.yaml"
    claims = schema.load_claims(path, settings.scale)
    for task, floor in claims.floors.items():
        _check_floor(settings, tasks, task, floor, measured, f"{path}: floors.{task}")
    for claim in claims.claims:
        for row in claim.rows():
            where = f"{path}: {claim.id}: '{row.name}'"
            _check_names(settings, row, measured, where)
            if not isinstance(row, Exact):
                _check_bounds(row, where)
                if claim.undecided_at(settings.scale) is None:
                    _check_data(settings, row, where)
        if claim.primary is not None and claim.undecided_at(settings.scale) is None and settings.scale != TESTS:
            _check_seeds(settings, claim.primary, f"{path}: {claim.id}")


def _check_names(settings: ScaleFile, row: Row, measured: Iterable[str], where: str) -> None:
    doubled = () if isinstance(row, Exact) else row.doubled
    check_variants(settings, (*row.compared(), *doubled), where)
    check_measures(row.metrics(), measured, where)
    for metric in () if isinstance(row, Exact) else row.metrics():
        split, plain = split_of(metric)
        if split and known(plain) is not None:
            raise ReplicationError(
                f"{where}: metric '{metric}' names a split; give 'metric: {plain}' and 'where: {{split: {split}}}'."
            )


def _check_bounds(row: Comparison, where: str) -> None:
    """Refuse effects that no runs could show, and perplexities on the plain scale."""
    if "perplexity" in row.metric and row.scale == "plain" and not isinstance(row, Correlation):
        raise ReplicationError(
            f"{where}: metric '{row.metric}' is compared as it is; compare nats or bits, or give 'scale: log'."
        )
    most = measure(row.metric).most
    if not isinstance(row, Sides) or row.scale == "log" or row.over is not None:
        return
    if row.than is None:
        if row.relevant >= most:
            raise ReplicationError(f"{where}: relevant: no two values of {row.metric} differ by {row.relevant:g}.")
        return
    if row.kind == "greater" and (wanted := row.than + row.relevant) > most:
        raise ReplicationError(
            f"{where}: relevant: {row.metric} is at most {most:g}, never {wanted:g}; lower it or 'than'."
        )


def _check_data(settings: ScaleFile, row: Comparison, where: str) -> None:
    """Refuse a comparison of running variants whose data differ."""
    tasks = {settings.task_of(name): name for name in _running(settings, row.compared())}
    first = next(iter(tasks), "")
    for other in tasks:
        if settings.corpus(other) != settings.corpus(first):
            raise ReplicationError(
                f"{where}: {tasks[first]} and {tasks[other]} are of different data, the tasks '{first}' and '{other}'; "
                "compare variants of one task."
            )


def _check_seeds(settings: ScaleFile, primary: Comparison, where: str) -> None:
    """Refuse a primary comparison with too few paired seeds, or with doubled variants whose updates are not doubled."""
    running = _running(settings, primary.compared())
    shared = (
        set.intersection(*(set(settings.run(name).seeds) for name in running)) if running else {*range(FEWEST_SEEDS)}
    )
    if len(shared) < FEWEST_SEEDS:
        raise ReplicationError(
            f"{where}: {' and '.join(running)} share {number_of(len(shared), 'seed')} in {settings.path}, "
            f"and fewer than {FEWEST_SEEDS} decide nothing; give more, or say why under not_decided.{settings.scale}."
        )
    for name, twice in zip(primary.compared(), primary.doubled, strict=bool(primary.doubled)):
        if {name, twice} <= {*settings.judged()}:
            _check_doubled(settings, name, twice, where)


def _check_doubled(settings: ScaleFile, name: str, twice: str, where: str) -> None:
    updates, doubled = (getattr(settings.run(each).training, "updates", math.nan) for each in (name, twice))
    if doubled != 2 * updates:
        raise ReplicationError(f"{where}: doubled: {twice} makes {doubled} updates, not twice the {updates} of {name}.")
    if len(settings.run(twice).seeds) < DOUBLED_SEEDS:
        raise ReplicationError(f"{where}: doubled: {twice} needs at least {DOUBLED_SEEDS} seeds in {settings.path}.")


def _check_floor(
    settings: ScaleFile, tasks: Collection[str], task: str, floor: Floor, measured: Iterable[str], where: str
) -> None:
    if task not in tasks:
        raise ReplicationError(f"{where}: no scale of {settings.paper} has the task '{task}'{near(task, tasks)}.")
    check_variants(settings, floor.exempt, where)
    check_measures((floor.metric,), measured, where)
    if floor.at_least is not None and floor.at_least > measure(split_of(floor.metric)[1]).most:
        raise ReplicationError(f"{where}: at_least: {floor.metric} is never {floor.at_least:g}.")


def _running(settings: ScaleFile, variants: Iterable[str]) -> list[str]:
    plain = dict.fromkeys(name.removesuffix("-ensemble") for name in variants)
    return [name for name in plain if name in settings.judged()]
