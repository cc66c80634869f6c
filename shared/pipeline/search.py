"""Settings tried with pilot seeds on validation data, before the plan of a paper at a scale is frozen.

``replications/<paper>/<scale>/search.yaml`` says what is tried; what came of it goes into ``search.json`` beside it. No
test split is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag
from rich.console import Console

from shared.claims.results import read_curve
from shared.claims.rules import PILOTS
from shared.claims.words import number_of
from shared.config import Strict, build, load_yaml, merge, near
from shared.data.cards import load_card
from shared.errors import ReplicationError
from shared.pipeline.code import code_of
from shared.pipeline.config import EMPTY, ScaleFile, Seeds, each_once, lenders
from shared.pipeline.files import alone, run_folder, write_json
from shared.pipeline.plan import found_path, load_found
from shared.pipeline.provenance import hash_of, now, revision, sha256_of
from shared.pipeline.runs import TRAINED, run_side_by_side, runnable, training_jobs
from shared.pipeline.stages import features_stage, fetch_stage, prepare_stage
from shared.records import read_if_whole, read_record
from shared.reports.document import Text, code
from shared.tasks.settings import RunConfig, check_model, find_route, trains_network
from shared.training.pool import Job

Value = bool | int | float | str
Outcomes = dict[tuple[str, str], dict[str, Any]]
"""Key and variant to what ``search.json`` says of them."""
Trials = dict[Value, dict[int, tuple[Path, Job | None]]]
"""Value that is tried to :func:`shared.pipeline.runs.training_jobs`."""


class Group(Strict):
    """Some variants, and what is searched of them.

    Attributes:
        variants: their names.
        kept: variant to the reason why it keeps a value of its own.
    """

    variants: list[str] = Field(min_length=1)
    kept: dict[str, str] = EMPTY


class Tried(Group):
    """Variants each of which is trained with each value of one setting.

    Attributes:
        key: of the setting in a variant, such as ``training.optimizer.learning_rate``.
        values: what is tried.
        updates: of a trial; null: as many as in ``params.yaml``.
        seeds: of its pilots; none: those of the whole search.
    """

    key: str = Field(pattern=r"^(training|model)\.")
    values: Annotated[list[Value], AfterValidator(each_once)] = Field(min_length=2)
    updates: int | None = Field(default=None, ge=1)
    seeds: Seeds = Field(default_factory=list)


class Same(Group):
    """Variants that are not tried: their settings of the searched keys are those of another one.

    Attributes:
        same_as: the variant that is tried.
        because: why its values suit them.
    """

    same_as: str
    because: str


def _form(group: Any) -> str:
    return "same" if isinstance(group, dict) and "same_as" in group else "tried"


class _Content(Strict):
    seeds: Seeds
    groups: list[Annotated[Annotated[Tried, Tag("tried")] | Annotated[Same, Tag("same")], Discriminator(_form)]] = (
        Field(min_length=1)
    )


class Search:
    """``search.yaml`` of a paper at a scale.

    Attributes:
        seeds: of pilots, where a group has none of its own.
        tried: groups that are trained, each with its seeds.
        same: groups that are not.

    Raises:
        ReplicationError: it is missing or wrong; names key and value.
    """

    def __init__(self, settings: ScaleFile) -> None:
        self.settings, self.path = settings, settings.path.with_name("search.yaml")
        content = build(_Content, load_yaml(self.path), where=str(self.path))
        self.seeds = content.seeds
        tried = [group for group in content.groups if isinstance(group, Tried)]
        self.tried = [each.model_copy(update={"seeds": each.seeds or content.seeds}) for each in tried]
        self.same = [group for group in content.groups if isinstance(group, Same)]
        for problem in self._mistakes():
            raise ReplicationError(f"{self.path}: {problem}")

    def _mistakes(self) -> Iterator[str]:
        known = {variant for _, variant in self.pairs()}
        for group in (*self.tried, *self.same):
            for variant in group.variants:
                try:
                    config = runnable(self.settings, variant)
                except ReplicationError as error:
                    yield f"variants: {error}"
                if not trains_network(config, self.settings.models):
                    yield f"variants: '{variant}' is a study, which trains no network; take it out."
                for seed in {*getattr(group, "seeds", self.seeds)} & {*config.seeds}:
                    yield f"seeds: {seed} is a seed that decides claims about '{variant}'; choose others, such as 101."
            for variant in group.kept.keys() - group.variants:
                yield f"kept: '{variant}' is no variant of its group{near(variant, group.variants)}."
        for group in self.same:
            if group.same_as not in known:
                yield f"same_as: '{group.same_as}' is not tried{near(group.same_as, known)}."
        pairs = [f"{group.key} of {variant}" for group, variant in self.pairs()]
        if twice := [pair for pair in pairs if pairs.count(pair) > 1]:
            yield f"groups: {twice[0]} stands there twice; leave in one."
        for group, variant in [*self.pairs(), *((group, variant) for _, variant, group in self.same_pairs())]:
            for value in group.values:
                try:
                    self.config(group, variant, value)
                except ReplicationError as error:
                    yield f"values: {group.key} {value!r} cannot be tried: {error}"

    def pairs(self) -> list[tuple[Tried, str]]:
        """Every group that is trained with every variant of it."""
        return [(group, variant) for group in self.tried for variant in group.variants]

    def same_pairs(self) -> Iterator[tuple[Same, str, Tried]]:
        """Every group that is not trained, with each variant of it and each group of the variant that it goes with."""
        for same in self.same:
            for group in [each for each in self.tried if same.same_as in each.variants]:
                yield from ((same, variant, group) for variant in same.variants)

    def changes(self, group: Tried, variant: str, value: Value) -> dict[str, Any]:
        """What a trial changes in the settings; one whose gradient is not finite ends there and harms no other."""
        usual = self.settings.run(variant).training
        updates = group.updates or usual.updates
        training: dict[str, Any] = {"updates": updates}
        if updates % usual.validate_every:  # what it is judged by is the loss at its end
            training["validate_every"] = updates
        if usual.average is None:
            training["may_diverge"] = True
        changed: Any = value
        for part in reversed(group.key.split(".")):
            changed = {part: changed}
        return dict(merge({"training": training}, changed))

    def config(self, group: Tried, variant: str, value: Value) -> RunConfig:
        """All settings of a trial.

        Raises:
            ReplicationError: the value does not fit.
        """
        config = self.settings.run(variant, self.changes(group, variant, value))
        check_model(self.settings.models, config)
        return config

    def value(self, group: Tried, variant: str) -> Any:
        """The value of the setting in ``params.yaml``."""
        config, models = self.settings.run(variant), self.settings.models
        section, routed = find_route(config, models)
        model = routed.model if section else config.checked_model(models.ModelConfig).model_dump()
        whole: Any = {"training": config.training.model_dump(), "model": model}
        return reduce(lambda inside, part: inside.get(part), group.key.split("."), whole)

    def digest(self, group: Tried, variant: str) -> str:
        """Hash of the data's card and of all settings of training except the one that is searched.

        Whether seeds share one draw of the data is left out: what is best of one draw is best of another.
        """
        config = self.config(group, variant, group.values[0])
        given = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"}, exclude_unset=True)
        given["corpus"].pop("draws", None)
        return hash_of([given, load_card(config.corpus.dataset).fingerprint])

    def answers(self) -> Outcomes | None:
        """The outcomes in ``search.json`` that are of what is asked and of the settings of today; None without one."""
        if (record := load_found(self.settings)) is None:
            return None
        found = {}
        for group, variant in self.pairs():
            asked = group.model_dump(include={"key", "values", "updates"})
            for then in record["groups"]:
                outcome = then["variants"].get(variant) if asked.items() <= then.items() else None
                seeds = [*outcome["trials"][0]["seeds"]] if outcome else []
                if outcome and seeds == [*map(str, group.seeds)] and outcome["settings"] == self.digest(group, variant):
                    found[group.key, variant] = outcome
        return found


@alone("trials")
def search_stage(paper: str, scale: str, only: Sequence[str] | None = None) -> None:
    """Train every variant with every value and pilot seed, and say which value is best; a killed search is continued.

    Args:
        only: these variants alone; of the others ``search.json`` is kept. None: all.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, ``search.json`` cannot be kept of a variant that is not tried, or
            trials failed; the others have been trained to their end by then.
    """
    from shared.reports.page import print_blocks
    from shared.reports.plans import Frozen, plan_blocks

    settings = ScaleFile(paper, scale)
    search, made = Search(settings), revision() | {"date": now()}
    tried = [variant for _, variant in search.pairs()]
    wanted = only or tried
    for variant in [name for name in wanted if name not in tried]:
        raise ReplicationError(f"--only: '{variant}' is not tried in {search.path}{near(variant, tried)}.")
    outcomes = {pair: found for pair, found in (search.answers() or {}).items() if pair[1] not in wanted}
    for group, variant in search.pairs():
        if variant not in wanted and (group.key, variant) not in outcomes:
            lacking = f"{found_path(settings)} does not answer what {search.path} asks of '{variant}'"
            raise ReplicationError(f"{lacking}; add that variant to --only, or leave --only out.")
    for task in dict.fromkeys(map(settings.task_of, wanted)):
        _prepare(settings, task)
    asked = [(group, name, _trials(search, group, name)) for group, name in search.pairs() if name in wanted]
    every = [trial for *_, trials in asked for of_value in trials.values() for trial in of_value.values()]
    jobs = {folder: job for folder, job in every if job is not None}  # groups may share a trial
    if cannot := set(run_side_by_side([*jobs.values()], paper, True)) - {None}:
        raise ReplicationError(f"{search.path}: a variant cannot be trained on this machine: {cannot.pop()}.")
    for group, variant, trials in asked:
        outcomes[group.key, variant] = _outcome(search, group, variant, trials) | made
    seconds = sum(trial["processor_seconds"] for found in outcomes.values() for trial in found["trials"])
    groups = [
        group.model_dump(include={"key", "values", "updates"})
        | {"variants": {name: outcomes[group.key, name] for name in group.variants}}
        for group in search.tried
    ]
    head = {"paper": paper, "scale": scale, **made, "seeds": search.seeds, "processor_seconds": round(seconds, 1)}
    write_json(found_path(settings), head | {"groups": groups})
    used, reasons = in_use(settings)
    print_blocks(plan_blocks(Frozen(search=head | {"groups": groups}, used=used, reasons=reasons), ())[1:], Console())
    print("\n".join([f"{seconds:,.0f} processor seconds in all.", *unfollowed(paper, scale)]))


def _prepare(settings: ScaleFile, task: str) -> None:
    """Prepare a task's data, unless they exist and its settings, its card and the code have not changed since."""
    name, runs = f"{settings.paper}.{task}", run_folder(settings.paper, settings.scale)
    fetch_stage(name, settings.scale)
    known, corpus = runs / "search" / f"{task}.json", settings.corpus(task).model_dump(mode="json")
    of = [corpus, sha256_of([runs / "fetched" / f"{task}.json"]), code_of(settings.kind, settings.paper)["prepare"]]
    if read_if_whole(known) != {"of": hash_of(of), "data": sha256_of([runs / "tasks" / task])}:
        if task in settings.features:
            features_stage(name, settings.scale)
        prepare_stage(name, settings.scale)
        write_json(known, {"of": hash_of(of), "data": sha256_of([runs / "tasks" / task])})


def _trials(search: Search, group: Tried, variant: str) -> Trials:
    settings, found = search.settings, Trials()
    folder = run_folder(settings.paper, settings.scale) / "search" / variant
    for value in group.values:
        label, changes = f"{settings.paper}.{variant} {group.key} {value}", search.changes(group, variant, value)
        found[value] = training_jobs(settings, variant, group.seeds, lambda _, mark: folder / mark[:16], label, changes)
    return found


def _outcome(search: Search, group: Tried, variant: str, trials: Trials) -> dict[str, Any]:
    """The loss of each value, means over the pilots, and the best value; null if any or all diverged."""
    from shared.reports.curves import DIVERGED

    settings, values = search.settings, list[dict[str, Any]]()
    for value, of_value in trials.items():
        ends, seconds = dict[str, float | None](), 0.0
        for seed, (folder, _) in of_value.items():
            run = read_record(folder / "run.json", "run the search again", TRAINED)
            losses = read_curve(folder / "curve.csv", metric="loss", split="valid")  # those that are finite
            diverged = run["stopped_because"].startswith(DIVERGED) or max(losses, default=-1) < run["updates"]
            ends[str(seed)] = None if diverged else losses[run["updates"]]
            seconds += run["processor_seconds"]
        known = [loss for loss in ends.values() if loss is not None]
        mean = float(f"{sum(known) / len(known):.6g}") if len(known) == len(ends) else None
        values.append({"value": value, "loss": mean, "seeds": ends, "processor_seconds": round(seconds, 1)})
    learnt = [value for value in values if value["loss"] is not None]
    best = min(learnt, key=lambda value: value["loss"])["value"] if learnt else None
    code = hash_of(code_of(settings.kind, settings.paper, *lenders(settings.run(variant)))["train"])
    return {"trials": values, "best": best, "settings": search.digest(group, variant), "code": code}


def has_search(settings: ScaleFile) -> bool:
    """Whether something is searched at a scale."""
    return settings.path.with_name("search.yaml").exists()


def unfollowed(paper: str, scale: str) -> list[str]:
    """One sentence for each reason why the settings are not the best ones of a search; empty without a search.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, or ``search.json`` cannot be read.
    """
    if not has_search(settings := ScaleFile(paper, scale)):
        return []
    search, lines = Search(settings), list[str]()
    path, command = found_path(settings), f"run 'python -m shared.pipeline search {paper} --scale {scale}'"
    if (answers := search.answers()) is None:
        return [f"{path} does not exist; {command}."]

    def differs(variant: str, group: Tried, said: str) -> None:
        why = f"set it, or say why in {search.path} (`kept: {{{variant}: reason}}`)"
        lines.append(f"{settings.path}: variants.{variant}.{group.key} is {said}; {why}.")

    for group, variant in search.pairs():
        used, outcome = search.value(group, variant), answers.get((group.key, variant))
        if outcome is None:
            since = "or its other settings or its data have changed since"
            lines.append(f"{path}: it is not of what {search.path} asks of '{variant}' now, {since}; {command} again.")
        elif variant not in group.kept:
            losses = {trial["value"]: trial["loss"] for trial in outcome["trials"]}
            if outcome["best"] is None:
                lines.append(f"{search.path}: {variant} diverged with every {group.key}; try others.")
            elif used not in losses or losses[used] != losses[outcome["best"]]:
                differs(variant, group, f"{used}, but the search found {outcome['best']} best")
    for same, variant, group in search.same_pairs():
        used, other = search.value(group, variant), search.value(group, same.same_as)
        if used != other and variant not in same.kept:
            differs(variant, group, f"{used}, but that of '{same.same_as}', with which it goes, is {other}")
    return lines


def untuned(settings: ScaleFile) -> dict[str, str]:
    """Variant to what the search of its settings lacks, so that no claim can be contradicted by it."""
    from shared.reports.plans import end_of

    search, lacks = load_found(settings) or {"groups": []}, dict[str, str]()
    same = Search(settings).same if has_search(settings) else ()
    like = {variant: each.same_as for each in same for variant in each.variants}
    for variant in settings.judged():
        name = like.get(variant, variant)
        tried = [(group, group["variants"][name]) for group in search["groups"] if name in group["variants"]]
        pilots = min((len(trial["seeds"]) for _, of in tried for trial in of["trials"]), default=0)
        reasons = [] if tried else ["its settings were not searched"]
        if tried and pilots < PILOTS:
            reasons.append(f"it was searched with {number_of(pilots, 'pilot seed')}, not {PILOTS}")
        for group, of in tried:
            if end := end_of(group["values"], of["best"]):
                reasons.append(f"the best {group['key']} is the {end} tried")
        if reasons:
            lacks[variant] = "; ".join(reasons)
    return lacks


def in_use(settings: ScaleFile) -> tuple[dict[tuple[str, str], Any], list[Text]]:
    """Key and variant that were tried to the value in ``params.yaml``; and why others have theirs, a sentence each."""
    if not has_search(settings):
        return {}, []
    search, reasons = Search(settings), list[Text]()
    for same in search.same:
        if others := [code(name) for name in same.variants if name not in same.kept]:
            have, why = "has" if len(others) == 1 else "have", same.because.rstrip(". ")
            reasons.append(f"{', '.join(others)} {have} the value of {code(same.same_as)}: {why}.")
    kept = [item for group in (*search.tried, *search.same) for item in group.kept.items()]
    reasons += [f"{code(name)} keeps a value of its own: {why}." for name, why in kept]
    return {(group.key, name): search.value(group, name) for group, name in search.pairs()}, reasons
