"""Refuses claims that cannot be decided as they are written, and figures of what is not there, before any training."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatch

from shared.claims.comparisons import Comparison, Exact
from shared.claims.rules import DOUBLED_SEEDS, FEWEST_SEEDS
from shared.claims.scales import TESTS
from shared.claims.schema import Claim, Claims, load_claims
from shared.claims.words import number_of
from shared.config import check_name, near
from shared.errors import ReplicationError
from shared.metrics.registry import MEASURES, is_known, measure, split_of
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import REPLICATIONS
from shared.reports.exhibits import Shows, load_exhibits

DECIDING = ("quick", "bench")
"""Scales at which every claim is decided, or has a reason why not."""


def check_shown(settings: ScaleFile, tasks: Collection[str]) -> None:
    """Check that claims can be decided, and that figures name variants and measures that exist.

    Args:
        settings: of the scale.
        tasks: those of the paper at any scale.
    """
    studies = settings.models.ROUTES.get("study", {}).values()
    measured = [pattern for section in studies for pattern in section.measured]
    claims = check_claims(settings, tasks, measured)
    for placed in load_exhibits(settings.paper, ()):
        figure = placed.exhibit if isinstance(placed, Shows) else placed
        where = f"{REPLICATIONS / settings.paper / 'report.py'}: {type(figure).__name__}"
        if isinstance(placed, Shows) and placed.claim:
            check_name(placed.claim, claims, f"{where}: claims.yaml has no claim")
        check_variants(settings, figure.variants(), where)
        check_measures(figure.measures(), measured, where)


def check_variants(settings: ScaleFile, variants: Iterable[str], where: str) -> None:
    """Refuse a variant that no scale has, or that this one neither runs nor leaves out with a reason.

    The ensemble of a variant is ``<variant>-ensemble``.
    """
    for variant in variants:
        paper, _, plain = variant.removesuffix("-ensemble").rpartition("/")
        if paper:
            check_variants(ScaleFile(paper, settings.scale), [plain], where)
        else:
            check_name(plain, settings.known(), f"{where}: {settings.variants_path} has no variant")
            if plain not in settings.variants and plain not in settings.left_out:
                raise ReplicationError(
                    f"{settings.path}: '{plain}' of {where} neither runs nor is left out; list it under variants, or "
                    "with the reason under left_out."
                )


def check_measures(measures: Iterable[str], measured: Iterable[str], where: str) -> None:
    """Refuse a measure that neither evaluation nor a study of the paper has; a test split may stand before its name."""
    for name in measures:
        if not is_known(split_of(name)[1]) and not any(fnmatch(name, pattern) for pattern in measured):
            raise ReplicationError(f"{where}: there is no measure '{name}'{near(name, MEASURES)}.")


def check_claims(settings: ScaleFile, tasks: Collection[str], measured: Sequence[str]) -> list[str]:
    """Check every claim of a paper at a scale; returns their ids.

    Args:
        settings: of the scale.
        tasks: those of the paper at any scale.
        measured: patterns of what the paper's studies measure.

    Raises:
        ReplicationError: names file, claim and key of the first mistake, and what to do.
    """
    path = REPLICATIONS / settings.paper / "claims.yaml"
    claims = load_claims(path, settings.scale)
    for task, floor in claims.floors.items():
        where = f"{path}: floors.{task}"
        check_name(task, tasks, f"{where}: no scale of {settings.paper} has the task")
        check_variants(settings, floor.exempt, where)
        check_measures((floor.metric,), measured, where)
    prefix = claims.claims[0].id.rstrip("0123456789")
    for number, claim in enumerate(claims.claims, 1):
        if claim.id != f"{prefix}{number}":
            raise ReplicationError(f"{path}: {claim.id}: claims are numbered in order; call it {prefix}{number}.")
        decided = claim.undecided_at(settings.scale) is None
        for row in claim.rows():
            where = f"{path}: {claim.id}: '{row.name}'"
            check_variants(settings, row.compared(), where)
            check_measures(row.metrics(), measured, where)
            if not isinstance(row, Exact):
                check_variants(settings, row.doubled, where)
                if decided:
                    _check_data(settings, row, where)
        if decided and settings.scale != TESTS:
            _check_runs(settings, claims, claim, f"{path}: {claim.id}")
    return [claim.id for claim in claims.claims]


def _check_data(settings: ScaleFile, row: Comparison, where: str) -> None:
    """Refuse a comparison of runs on different data, and of other papers' runs that the scale does not list."""
    for name in row.compared():
        if "/" in name:
            settings.other(name.removesuffix("-ensemble"))
    tasks = {settings.task_of(name): name for name in settings.running(row.compared())}
    first = next(iter(tasks), "")
    for other in tasks:
        if settings.corpus(other) != settings.corpus(first):
            raise ReplicationError(
                f"{where}: {tasks[first]} and {tasks[other]} are of different data, the tasks '{first}' and '{other}'; "
                "compare variants of one task."
            )


def _check_runs(settings: ScaleFile, claims: Claims, claim: Claim, where: str) -> None:
    """Refuse a claim whose deciding runs are none of the scale's, too few, or too easily called learned."""
    primary, scale = claim.primary, settings.scale
    deciding = [primary] if primary is not None else claim.identities
    compared = list(dict.fromkeys(name.removesuffix("-ensemble") for row in deciding for name in row.compared()))
    running = settings.running(compared)
    if scale in DECIDING and (absent := [name for name in compared if name not in running]):
        raise ReplicationError(
            f"{where}: {' and '.join(absent)} of what decides it do not run in {settings.path}; let them run, or say "
            f"why not under not_decided.{scale}."
        )
    if primary is None:
        return
    shared = set.intersection(*({*settings.run(name).seeds} for name in running)) if running else {*range(FEWEST_SEEDS)}
    if len(shared) < FEWEST_SEEDS:
        raise ReplicationError(
            f"{where}: {' and '.join(running)} share {number_of(len(shared), 'seed')} in {settings.path}, "
            f"and fewer than {FEWEST_SEEDS} decide nothing; give more, or say why under not_decided.{scale}."
        )
    trained = [name for name in running if "study" not in settings.run(name).model]
    for task in {settings.task_of(name) for name in trained} - claims.floors.keys():
        if scale == "quick" and measure(primary.metric).theme == "score":
            raise ReplicationError(
                f"{where}: the task '{task}' has no floor, so nothing tells whether its models have learned; give it "
                "one under 'floors'."
            )
    for name, twice in zip(primary.compared(), primary.doubled, strict=bool(primary.doubled)):
        if not {name, twice} <= {*settings.judged()}:
            continue
        updates, doubled = settings.run(name).training.updates, settings.run(twice).training.updates
        if doubled != 2 * updates:
            raise ReplicationError(
                f"{where}: doubled: {twice} makes {doubled} updates, not twice the {updates} of {name}."
            )
        if len(settings.run(twice).seeds) < DOUBLED_SEEDS:
            raise ReplicationError(
                f"{where}: doubled: {twice} needs at least {DOUBLED_SEEDS} seeds in {settings.path}."
            )
