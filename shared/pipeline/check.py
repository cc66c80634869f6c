"""Finds mistakes before any long work, in a second and without torch; checks that all referenced names exist."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from pathlib import Path

from shared.claims.scales import SCALES
from shared.claims.schema import load_claims
from shared.claims.words import number_of
from shared.config import near
from shared.data.cards import Card, load_card
from shared.errors import ReplicationError
from shared.pipeline.check_claims import check_claims
from shared.pipeline.check_files import check_card, check_names, check_paper, check_search
from shared.pipeline.check_identities import check_identities, check_tasks
from shared.pipeline.code import STAGES, code_of
from shared.pipeline.config import ScaleFile, load_params
from shared.pipeline.files import PIPELINE, REPLICATIONS, paper_folder, run_folder, write_json
from shared.pipeline.names import check_measures, check_variants
from shared.pipeline.plan import changes, load_found, load_plan, plan_path
from shared.pipeline.provenance import hash_of, sha256_of
from shared.reports.exhibits import Shows, load_exhibits
from shared.tasks.kinds import load_measures, papers
from shared.tasks.sections import check_model


def check_stage(paper: str | None, scale: str) -> None:
    """Check one paper, or all; write down which code each stage of it depends on.

    Raises:
        ReplicationError: names file, key and value of the first mistake, and what to do.
    """
    load_measures()
    check_listed(paper)
    for name in [paper] if paper else papers():
        settings = {each: ScaleFile(name, each) for each in SCALES}
        check_identities(settings[scale])
        check_paper(settings[scale])
        for each in settings.values():
            check_settings(each)
            check_search(each)
            check_names(each)
        tasks = {task for each in settings.values() for task in each.tasks}
        for each in settings.values():
            check_shown(each, tasks)
        write_code(settings[scale])
        print(f"{name}: {number_of(len(settings[scale].variants), 'variant')} at {scale} scale, no mistake.")
        warn_of_changes(settings[scale])


def check_listed(paper: str | None) -> None:
    """Check ``params.yaml``, and that it lists one paper, or all that there are and no others."""
    listed = load_params().papers
    if paper is None:
        for name in listed:
            if not (REPLICATIONS / name).is_dir():
                raise ReplicationError(f"params.yaml: papers: there is no paper '{name}'{near(name, papers())}.")
    for name in [paper] if paper else papers():
        paper_folder(name)
        if name not in listed:
            raise ReplicationError(
                f"params.yaml: papers must list '{name}', or `dvc repro report@{name}` has no stage."
            )


def check_settings(settings: ScaleFile) -> None:
    """Check a scale's pipeline, its data sets and every variant that could be built."""
    pipeline = settings.path.with_name("dvc.yaml")
    if not pipeline.is_file() or pipeline.read_text(encoding="utf-8") != PIPELINE.read_text(encoding="utf-8"):
        raise ReplicationError(
            f"{pipeline} is not the pipeline that all scales share; make it a link, with "
            f"'ln -sf ../../../{PIPELINE} {pipeline}'."
        )
    for task in settings.tasks:
        if not (card := Path("data") / f"{settings.dataset(task)}.yaml").is_file():
            cards = (path.stem for path in Path("data").glob("*.yaml"))
            raise ReplicationError(
                f"{settings.path}: tasks.{task}.corpus.dataset: {card} does not exist"
                f"{near(settings.dataset(task), cards)}."
            )
        _check_corpus(settings, task, check_card(settings.dataset(task)))
    check_tasks(settings)  # first, or a mistake of a task would be said to be one of its first variant
    paper = importlib.import_module(f"replications.{settings.paper}.settings")
    for variant in settings.buildable():
        check_model(paper, settings.run(variant))
    for variant in settings.lent:
        check_lent(settings, variant)


def _check_corpus(settings: ScaleFile, task: str, card: Card) -> None:
    """Refuse splits and languages that the data set of a task does not have."""
    corpus = settings.corpus(task)
    named = {"test": (corpus.splits, card.splits)}
    named |= {key: ([getattr(corpus, key, None)], card.languages) for key in ("source", "target", "language")}
    for key, (names, known) in named.items():
        for name in names:
            if name is not None and known and name not in known:
                raise ReplicationError(
                    f"{settings.path}: tasks.{task}.corpus.{key}: {card.id} has no '{name}'{near(name, known)}."
                )


def check_lent(settings: ScaleFile, variant: str) -> None:
    """Refuse to borrow runs of another paper that its scale does not list, or that use other data."""
    where, lent = f"{settings.path}: lent.{variant}", settings.lent[variant]
    lender = settings.lender(variant)
    if lent.variant not in lender.variants:
        raise ReplicationError(f"{where}: {lender.path} runs no '{lent.variant}'{near(lent.variant, lender.variants)}.")
    theirs = lender.task_of(lent.variant)
    if lender.kind != settings.kind or lender.corpus(theirs) != settings.corpus(lent.task):
        raise ReplicationError(
            f"{where}: the data of '{lent.task}' are not those of {lent.paper}.{lent.variant}, the task '{theirs}' of "
            f"{lender.path}; give both tasks the same corpus."
        )


def check_shown(settings: ScaleFile, tasks: Collection[str]) -> None:
    """Check that claims can be decided, and that figures name variants and measures that exist.

    Args:
        settings: of the scale.
        tasks: those of the paper at any scale.
    """
    measured = tuple(_measured_by_studies(settings.paper))
    check_claims(settings, tasks, measured)
    path = REPLICATIONS / settings.paper / "claims.yaml"
    claims = [claim.id for claim in load_claims(path, settings.scale).claims]
    for placed in load_exhibits(settings.paper, ()):
        figure = placed.exhibit if isinstance(placed, Shows) else placed
        where = f"{REPLICATIONS / settings.paper / 'report.py'}: {type(figure).__name__}"
        if isinstance(placed, Shows) and placed.claim and placed.claim not in claims:
            raise ReplicationError(
                f"{where}: claims.yaml has no claim '{placed.claim}'{near(placed.claim, claims)}; name one that it has."
            )
        check_variants(settings, figure.variants(), where)
        check_measures(figure.measures(), measured, where)


def warn_of_changes(settings: ScaleFile) -> None:
    """Print the claims that are no longer decided as the plan says; this is allowed, and the report says so, too."""
    changed = {claim: said for claim, said in (changes(settings) or {}).items() if said}
    for claim, said in changed.items():
        print(f"{plan_path(settings)}: {claim}: since the plan was frozen, this has changed: {', '.join(said)}.")


def write_code(settings: ScaleFile) -> None:
    """Write ``runs/<scale>/<paper>/code/<stage>.json``, on which DVC's stages depend.

    Fetching depends on what the cards say of the data, too, and a report on their words and on those of search.yaml
    and params.yaml.
    """
    code = code_of(settings.kind, settings.paper, *sorted(settings.lenders(settings.variants)))
    datasets = sorted({settings.dataset(task) for task in settings.tasks})
    code["fetch"] |= {f"data/{dataset}.yaml": load_card(dataset).fingerprint for dataset in datasets}
    shown = [settings.path.with_name("search.yaml"), *(Path("data") / f"{dataset}.yaml" for dataset in datasets)]
    code["report"] |= {str(path): sha256_of([path]) for path in shown}
    code["report"][str(settings.path)] = hash_of([settings.deviations, settings.left_out])
    folder = run_folder(settings.paper, settings.scale) / "code"
    for stage in STAGES:
        write_json(folder / f"{stage}.json", code[stage])
    write_json(folder / "plan.json", [load_plan(settings), load_found(settings)])


def _measured_by_studies(paper: str) -> list[str]:
    """Patterns of the names of all metrics that the paper's studies measure."""
    studies = importlib.import_module(f"replications.{paper}.settings").ROUTES.get("study", {})
    return [pattern for section in studies.values() for pattern in section.measured]
