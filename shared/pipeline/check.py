"""Finds mistakes before any long work, in a second and without torch; checks that all referenced names exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from shared.claims.comparisons import Comparison, Exact
from shared.claims.rules import DOUBLED_SEEDS, FEWEST_SEEDS, TESTS
from shared.claims.schema import Claim, Claims, load_claims
from shared.claims.words import number_of
from shared.config import build, check_name, check_part, load_yaml, near
from shared.data.cards import Card, GeneratedSource, leaves, load_card
from shared.data.generated import TASKS
from shared.data.readers import READERS
from shared.errors import ReplicationError
from shared.metrics.registry import MEASURES, is_known, measure, split_of
from shared.pipeline.code import STAGES, Sources, code_of
from shared.pipeline.config import ScaleFile, lenders, load_params, load_settings, refuse_huge, scales_of
from shared.pipeline.files import PIPELINE, REPLICATIONS, paper_folder, run_folder, write_json
from shared.pipeline.plan import changes, load_found, load_plan, plan_path
from shared.pipeline.provenance import hash_of, sha256_of
from shared.pipeline.search import Search, has_search
from shared.reports.exhibits import OfPanels, load_exhibits
from shared.reports.naming import FILE, load_colours, load_names
from shared.reports.paper import Paper
from shared.tasks.kinds import load_measures, papers, part_of
from shared.tasks.settings import check_model, routes_of

CARDS = Path("data")
DECIDING = ("quick", "bench")
"""Scales at which every claim is decided, or has a reason why not."""
MOST_GENERATED = 1_000_000
"""The largest whole number among the parameters of a generated task: some are lengths that are counted one by one."""
MOST_READ = 1_000_000_000
"""The same for the options of a reader."""
OF_PROGRAMS = re.compile(
    r"\b(authors['’]s?|released|official|their( own)?)\s(code|programs?|scripts?|implementation|library|repository|log)"
    r"\b|\bin\sthe\s(code|program|scripts?)\b",
    re.IGNORECASE,
)
"""Words that speak of the authors' program."""


def check_stage(paper: str | None, scale: str, suite: bool = False, data: bool = False) -> None:
    """Check one paper, or all; write down which code each stage of it depends on.

    Args:
        paper: its name; None: all.
        scale: whose code is written down.
        suite: whether all is checked that the tests ask of a paper, too, which needs torch and some seconds.
        data: whether the name is that of a card, whose data are looked at instead.

    Raises:
        ReplicationError: names file, key and value of the first mistake, and what to do.
    """
    if data:
        from shared.data.look import describe  # which takes half a second

        check_card(paper or "")
        print(*describe(paper or ""), sep="\n")
        return
    load_measures()
    check_listed(paper)
    sources = Sources()
    for name in [paper] if paper else papers():
        if paper is None and scale not in scales_of(name):
            print(f"{name}: has no {scale} scale.")
            continue
        scales = {each: ScaleFile(name, each) for each in dict.fromkeys([scale, *scales_of(name)])}
        settings, tasks = scales[scale], {task for each in scales.values() for task in each.tasks}
        check_identities(settings)
        check_paper(settings)
        check_words(settings)
        for each in scales.values():
            check_settings(each)
            if has_search(each):
                Search(each)
            check_names(each)
            check_shown(each, tasks)
        write_code(settings, sources)
        if suite and (lacking := list(asked_by_tests(scales))):
            raise ReplicationError("\n       ".join(lacking))
        print(f"{name}: {number_of(len(settings.variants), 'variant')} at {scale} scale, no mistake.")
        for claim, changed in (changes(settings) or {}).items():
            if said := ", ".join(changed):  # which is allowed, and the report says so, too
                print(f"{plan_path(settings)}: {claim}: since the plan was frozen, this has changed: {said}.")


def check_listed(paper: str | None) -> None:
    """Check ``params.yaml``, and that it lists one paper, or all that there are and no others."""
    listed = load_params().papers
    for name in listed if paper is None else ():
        check_name(name, papers(), "params.yaml: papers: there is no paper")
    for name in [paper] if paper else papers():
        paper_folder(name)
        if name not in listed:
            raise ReplicationError(f"params.yaml: papers must list '{name}', or dvc has no stage report@{name}.")


def check_settings(settings: ScaleFile) -> None:
    """Check a scale's pipeline, its data sets and every variant that could be built."""
    pipeline = settings.path.with_name("dvc.yaml")
    if not pipeline.is_file() or pipeline.read_text(encoding="utf-8") != PIPELINE.read_text(encoding="utf-8"):
        link = f"ln -sf ../../../{PIPELINE} {pipeline}"
        raise ReplicationError(f"{pipeline} is not the pipeline that all scales share; run '{link}'.")
    cards = [path.stem for path in CARDS.glob("*.yaml")]
    for task in settings.tasks:
        check_name(settings.dataset(task), cards, f"{settings.path}: tasks.{task}.corpus.dataset: there is no card")
    # Tasks first, or a mistake of a task would be said to be one of its first variant, or be overridden by all.
    for name, built in settings.built_tasks.items():
        _check_sections(settings, built.sections, f"{settings.path}: tasks.{name}")
    for task in settings.tasks:
        card, corpus = check_card(settings.dataset(task)), settings.corpus(task)
        where = f"{settings.path}: tasks.{task}"
        if corpus.draws == "each_seed" and not isinstance(card.sources[0], GeneratedSource):
            raise ReplicationError(f"{where}.corpus.draws: {card.id} is not generated; take 'draws' out.")
        running = card.reader is not None and card.reader.name == "running_text"
        languages = card.languages or ["text"] * running
        named = {"test": (corpus.splits, card.splits), "dataset": (corpus.reads, languages)}
        for key in ("source", "target", "language", "texts", "label", "evidence", "recalls"):
            value = getattr(corpus, key, None) or ()
            named[key] = ([value] if isinstance(value, str) else value, languages)
        for key, (names, known) in named.items():
            for name in names if known or key != "test" else ():
                check_name(name, known, f"{where}.corpus.{key}: {card.id} has no")
    for variant in settings.built_variants:
        check_model(settings.models, settings.run(variant))
    for name in settings.others:  # other data may not go by the name of a task
        other, variant = settings.other(name)
        task = other.task_of(variant)
        if other.kind != settings.kind or task not in settings.tasks or other.corpus(task) != settings.corpus(task):
            alike = f"a task '{task}' whose corpus is that of {other.path}"
            raise ReplicationError(f"{settings.path}: others: '{name}' needs {alike}; give this paper one.")


def check_identities(settings: ScaleFile) -> None:
    """Check each entry of ``variants.yaml`` on its own: which settings it names, and their types and ranges.

    What an entry lacks is not looked at, and neither is what only whole sections show: scales add to it.

    Args:
        settings: of the paper at any scale.

    Raises:
        ReplicationError: names file, variant, key and value of the first mistake.
    """
    path = settings.variants_path
    if settings.kind != settings.models.KIND:
        known = f"KIND = '{settings.models.KIND}' of replications/{settings.paper}/settings.py"
        raise ReplicationError(f"{path}: kind: '{settings.kind}' must be the same as {known}.")
    for name, identity in settings.identities.items():
        _check_sections(settings, identity.model_dump(exclude_unset=True), f"{path}: variants.{name}")
        if (lender := identity.model.get("paper")) in papers() and isinstance(identity.model.get("settings"), dict):
            theirs = load_settings(lender).ModelConfig
            check_part(theirs, identity.model["settings"], where=f"{path}: variants.{name}.model.settings")


def _check_sections(settings: ScaleFile, given: dict[str, Any], where: str) -> None:
    """Check one layer of settings on its own, as another may override what is wrong in it."""
    refuse_huge(given, where)
    models, model = settings.models, given.pop("model", {})
    routes = routes_of(models)
    check_part(part_of(settings.kind, "settings").RUN, given, where=where)
    section, keys = models.ModelConfig, [key for key in routes if key in model]
    if len(keys) == 1:  # else they are refused when the variant is built
        kinds = routes[keys[0]]
        section = kinds if isinstance(kinds, type) else kinds.get(str(model[keys[0]]))
    if section is not None and len(keys) < 2:
        check_part(section, model, where=f"{where}.model")


def check_card(dataset: str) -> Card:
    """Read a data card, and check the options of its reader and the parameters of what it generates.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    path, card = CARDS / f"{dataset}.yaml", load_card(dataset)
    if card.reader is not None:
        name, options, where = card.reader.name, card.reader.options, f"{path}: reader"
        check_name(name, READERS, f"{where}: there is no reader")
        refuse_huge(options, f"{where}.options", MOST_READ)
        build(READERS[name].options, options, where=f"{where}.options")
    for number, source in enumerate(card.sources):
        if isinstance(source, GeneratedSource):
            where = f"{path}: sources.{number}"
            check_name(source.task, TASKS, f"{where}: there is no generated task")
            refuse_huge(source.parameters, f"{where}.parameters", MOST_GENERATED)
            build(TASKS[source.task].parameters, source.parameters, where=f"{where}.parameters")
    return card


def check_paper(settings: ScaleFile) -> None:
    """Check the facts of a paper, and the cards and variants that they name; a table may show any number of a run.

    Args:
        settings: of one of its scales.

    Raises:
        ReplicationError: names file, key and value of the first mistake.
    """
    path = REPLICATIONS / settings.paper / "paper.yaml"
    paper, cards = Paper.load(path), [card.stem for card in CARDS.glob("*.yaml")]
    for name in paper.data:
        check_name(name, cards, f"{path}: data: there is no card")
    for attention in paper.attentions:
        source, _, name = attention.code.partition(":")
        if not (file := Path(source)).is_file() or f"\nclass {name}(" not in file.read_text(encoding="utf-8"):
            raise ReplicationError(f"{path}: attentions, '{attention.name}': code: {source} has no class '{name}'.")
    for table in paper.tables:
        for row in table.rows:
            check_variants(settings, row.variants, f"{path}: tables.{table.id}, row '{row.label}'")


def check_words(settings: ScaleFile) -> None:
    """Refuse what is said of the authors' program elsewhere than under ``program`` of paper.yaml, where it has a file.

    Raises:
        ReplicationError: names file and key of the first sentence.
    """
    folder = REPLICATIONS / settings.paper
    for path in sorted((*folder.glob("*.yaml"), *folder.glob("*/*.yaml"))):
        document = load_yaml(path)
        if path == folder / "paper.yaml":
            document.pop("program", None)
        for key, text in leaves(document):
            if isinstance(text, str) and (found := OF_PROGRAMS.search(text)):
                place = f"under 'program' of {folder / 'paper.yaml'}, with its file"
                raise ReplicationError(f"{path}: {key}: '{found.group()}': say what the authors' program does {place}.")


def check_names(settings: ScaleFile) -> None:
    """Check that the names of a paper's variants tell those of one task apart at a scale; and the colours of models.

    Raises:
        ReplicationError: a file is wrong; names no variant, or gives two of a task one name.
    """
    load_colours(FILE)
    names = load_names(REPLICATIONS / settings.paper)
    first: dict[tuple[str, str], str] = {}
    for variant, section in settings.variants.items():
        name = names.get(variant, variant)
        if (other := first.setdefault((section.task, name), variant)) != variant:
            path = REPLICATIONS / settings.paper / "names.yaml"
            raise ReplicationError(f"{path}: '{other}' and '{variant}' have one name, '{name}'; give each its own.")


def write_code(settings: ScaleFile, sources: Sources | None = None) -> None:
    """Write ``runs/<scale>/<paper>/code/<stage>.json``, on which DVC's stages depend.

    Fetching depends on what the cards say of the data, too, and a report on their words and on those of search.yaml
    and params.yaml.
    """
    papers = settings.paper, *lenders(*map(settings.run, settings.variants))
    code = code_of(settings.kind, *papers, sources=sources)
    datasets = sorted({settings.dataset(task) for task in settings.tasks})
    code["fetch"] |= {f"data/{dataset}.yaml": load_card(dataset).fingerprint for dataset in datasets}
    shown = [settings.path.with_name("search.yaml"), *(CARDS / f"{dataset}.yaml" for dataset in datasets)]
    code["report"] |= {str(path): sha256_of([path]) for path in shown}
    code["report"][str(settings.path)] = hash_of([settings.deviations, settings.left_out])
    folder = run_folder(settings.paper, settings.scale) / "code"
    for stage in STAGES:
        write_json(folder / f"{stage}.json", code[stage])
    write_json(folder / "plan.json", [load_plan(settings), load_found(settings)])


def check_shown(settings: ScaleFile, tasks: Collection[str]) -> None:
    """Check that claims can be decided, and that figures name variants and measures that exist.

    Args:
        settings: of the scale.
        tasks: those of the paper at any scale.
    """
    studies = routes_of(settings.models).get("study", {}).values()
    measured = [pattern for section in studies for pattern in section.measured]
    claims = check_claims(settings, tasks, measured)
    for figure in load_exhibits(settings.paper, ()):
        where = f"{REPLICATIONS / settings.paper / 'report.py'}: {type(figure).__name__}"
        if figure.claim:
            check_name(figure.claim, claims, f"{where}: claims.yaml has no claim")
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
            check_name(plain, settings.identities, f"{where}: {settings.variants_path} has no variant")
            if plain not in settings.variants and plain not in settings.left_out:
                advice = "list it under variants, or with the reason under left_out"
                raise ReplicationError(f"{settings.path}: '{plain}' of {where} neither runs nor is left out; {advice}.")


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
            check_variants(settings, row.variants, where)
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
    for name in row.variants:
        if "/" in name:
            settings.other(name.removesuffix("-ensemble"))
    tasks = {settings.task_of(name): name for name in settings.running(row.variants)}
    first = next(iter(tasks), "")
    for other in tasks:
        if settings.corpus(other) != settings.corpus(first):
            pair = f"{tasks[first]} and {tasks[other]} are of the tasks '{first}' and '{other}'"
            raise ReplicationError(f"{where}: {pair}, which have different data; compare variants of one task.")


def _check_runs(settings: ScaleFile, claims: Claims, claim: Claim, where: str) -> None:
    """Refuse a claim whose deciding runs are none of the scale's, too few, or too easily called learned."""
    primary, scale = claim.primary, settings.scale
    deciding = [primary] if primary is not None else claim.identities
    compared = list(dict.fromkeys(name.removesuffix("-ensemble") for row in deciding for name in row.variants))
    running = settings.running(compared)
    if scale in DECIDING and (absent := [name for name in compared if name not in running]):
        lacking = f"{' and '.join(absent)} of what decides it do not run in {settings.path}"
        raise ReplicationError(f"{where}: {lacking}; let them run, or say why not under not_decided.{scale}.")
    if primary is None:
        return
    shared = settings.paired(running)
    if running and len(shared) < FEWEST_SEEDS:
        few = f"share {number_of(len(shared), 'seed')} in {settings.path} and need {FEWEST_SEEDS}; give more"
        raise ReplicationError(f"{where}: {' and '.join(running)} {few}, or say why not under not_decided.{scale}.")
    trained = [name for name in running if "study" not in settings.run(name).model]
    for task in {settings.task_of(name) for name in trained} - claims.floors.keys():
        if scale == "quick" and measure(primary.metric).theme == "score":
            lacking = f"the task '{task}' has no floor, so nothing tells whether its models have learned"
            raise ReplicationError(f"{where}: {lacking}; give it one under 'floors'.")
    for name, twice in zip(primary.variants, primary.doubled, strict=bool(primary.doubled)):
        if not {name, twice} <= {*settings.judged()}:
            continue
        updates, doubled = settings.run(name).training.updates, settings.run(twice).training.updates
        if doubled != 2 * updates:
            raise ReplicationError(f"{where}: doubled: {twice} makes {doubled} updates, not twice {updates} of {name}.")
        if len(settings.run(twice).seeds) < DOUBLED_SEEDS:
            raise ReplicationError(f"{where}: doubled: {twice} needs {DOUBLED_SEEDS} or more seeds in {settings.path}.")


def asked_by_tests(scales: dict[str, ScaleFile]) -> Iterator[str]:
    """What the tests would refuse in a paper that has no mistake otherwise, a sentence each; needs torch.

    Names and colours of what reports show; pages of ``docs`` that are current; models that make an update, untrained,
    on a random batch.
    """
    from shared.pipeline.costs import PAGE, SCALE, network_of
    from shared.pipeline.reference import PATH, reference
    from shared.tasks.kinds import load_replication

    paper = next(iter(scales.values())).paper
    folder, replication = REPLICATIONS / paper, load_replication(paper)
    if not (folder / "README.md").is_file():
        yield f"{folder / 'README.md'} does not exist; say there what is replicated and where it deviates."
    names, colours = load_names(folder), load_colours(FILE)
    for scale in scales.keys() & {"quick", "bench"}:
        for variant in scales[scale].variants.keys() - names.keys():
            yield f"{folder / 'names.yaml'}: '{variant}' has no name; reports of the scale {scale} call it by it."
    for figure in load_exhibits(paper, ()):
        if isinstance(figure, OfPanels):
            for name in {names.get(variant, variant) for variant in figure.variants()} - colours.keys():
                yield f"{FILE}: '{name}' has no colour; figures of {paper} draw it."
    if PATH.read_text(encoding="utf-8") != reference():
        yield f"{PATH} is not current; run 'python -m shared.pipeline reference'."
    listed = PAGE.read_text(encoding="utf-8").partition(f"\n## {paper}\n")[2].partition("\n## ")[0]
    for variant in scales[SCALE].variants if SCALE in scales else ():
        if network_of(replication, scales[SCALE].run(variant)) is not None and f"\n| {variant} |" not in listed:
            yield f"{PAGE} lacks {paper}.{variant}; run 'python -m shared.pipeline costs'."
    if "smoke" not in scales:
        yield f"{folder / 'smoke'} does not exist; the tests run every stage at that scale."
        return
    for variant in scales["smoke"].variants:
        if (network := network_of(replication, config := scales["smoke"].run(variant))) is not None:
            try:
                make_update(*network)
            except Exception as error:  # whatever a model raises is what its author has to know
                yield f"{config.where}: an untrained model makes no update: {type(error).__name__}: {error}"


def make_update(runner: Any, config: Any) -> None:
    """Make one update of an untrained model on a random batch.

    Raises:
        ValueError: the loss is not finite, or no parameter has a gradient.
    """
    import torch

    batch, sizes = runner.part("module").random_batch(config)
    model = runner.model(config, sizes)
    loss = runner.part("module").module(model, config, None).training_step(batch, 0)
    if not torch.isfinite(loss):
        raise ValueError(f"its loss is {float(loss)}")
    loss.backward()
    if not any(each.grad is not None for each in model.parameters()):
        raise ValueError("no gradient reaches a parameter")
