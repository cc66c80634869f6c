"""Settings tried with pilot seeds on validation data, before the plan of a paper at a scale is frozen.

``replications/<paper>/<scale>/search.yaml`` says what is tried; what came of it goes into ``search.json`` beside it. No
test split is looked at.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from shared.config import Strict, build, flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.pipeline.code import code_of
from shared.pipeline.config import EMPTY, ScaleFile, Seeds, Words
from shared.pipeline.files import run_folder, write_json
from shared.pipeline.plan import found_path, load_found
from shared.pipeline.processes import alone
from shared.pipeline.provenance import hash_of, now, revision, sha256_of
from shared.pipeline.runs import TRAINED, is_finished, marks_of, run_side_by_side, runnable, train_into
from shared.pipeline.stages import features_stage, fetch_stage, prepare_stage
from shared.records import read_if_whole, read_record
from shared.reports.document import Text, code
from shared.tasks.settings import check_model, find_route, trains_network
from shared.training.pool import PRELOAD, Job
from shared.training.progress import Report

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

Value = bool | int | float | str


class Tried(Strict):
    """Variants each of which is trained with each value of one setting.

    Attributes:
        variants: their names.
        key: of the setting in a variant, such as ``training.optimizer.learning_rate``.
        values: what is tried.
        updates: of a trial; null: as many as in ``params.yaml``.
        kept: variant to the reason why it keeps a value that is not the best one.
    """

    variants: list[str] = Field(min_length=1)
    key: str
    values: list[Value] = Field(min_length=2)
    updates: int | None = Field(default=None, ge=1)
    kept: dict[str, Words] = EMPTY

    @property
    def asked(self) -> dict[str, Any]:
        """What an outcome must match."""
        return self.model_dump(exclude={"kept"})


class Same(Strict):
    """Variants that are not tried: their settings of the searched keys are those of another one.

    Attributes:
        variants: their names.
        same_as: the variant that is tried.
        because: why its values suit them.
        kept: variant to the reason why it has another value all the same.
    """

    variants: list[str] = Field(min_length=1)
    same_as: str
    because: Words
    kept: dict[str, Words] = EMPTY


class _Content(Strict):
    seeds: Seeds
    groups: list[dict[str, Any]] = Field(min_length=1)


class Search(NamedTuple):
    """A checked ``search.yaml``.

    Attributes:
        path: of the file.
        settings: of the paper at the scale.
        seeds: of pilots.
        tried: groups that are trained.
        same: groups that are not.
    """

    path: Path
    settings: ScaleFile
    seeds: list[int]
    tried: list[Tried]
    same: list[Same]

    def config(self, group: Tried, variant: str, value: Value) -> RunConfig:
        """The settings of a trial; one whose gradient is not finite ends there and harms no other.

        Raises:
            ReplicationError: the value does not fit.
        """
        changes: Any = value
        for part in reversed(group.key.split(".")):
            changes = {part: changes}
        usual = self.settings.run(variant).training
        updates = group.updates or usual.updates
        training: dict[str, Any] = {"updates": updates}
        if updates % usual.validate_every:  # what it is judged by is the loss at its end
            training["validate_every"] = updates
        if usual.average is None:
            training["may_diverge"] = True
        try:
            config = self.settings.run(variant, merge({"training": training}, changes))
            check_model(self.settings.models, config)
        except ReplicationError as error:
            raise ReplicationError(
                f"{self.path}: {variant}: values: {group.key} {value!r} cannot be tried: {error}"
            ) from None
        return config

    def value(self, variant: str, key: str) -> Any:
        """The value of a setting in ``params.yaml``.

        Raises:
            ReplicationError: its training has no such setting, or it is a study.
        """
        config, models = self.settings.run(variant), self.settings.models
        check_model(models, config)
        section, routed = find_route(config, models)
        if not trains_network(config, models):
            raise ReplicationError(f"{self.path}: '{variant}' is a study, which trains no network; take it out.")
        own = section is None
        model = build(models.MODEL, config.model, where=config.where).model_dump() if own else dict(routed.model)
        known = flat({"training": config.training.model_dump(), "model": model})
        if key not in known:
            raise ReplicationError(
                f"{self.path}: key: '{variant}' is not trained with a setting '{key}'{near(key, known)}."
            )
        return known[key]

    def groups(self) -> Iterator[Tried | Same]:
        """All, those first that are trained."""
        yield from self.tried
        yield from self.same

    def pairs(self) -> Iterator[tuple[Tried, str]]:
        """Every group that is trained with every variant of it."""
        return ((group, variant) for group in self.tried for variant in group.variants)

    def same_pairs(self) -> Iterator[tuple[Same, str, str]]:
        """Every group that is not trained with every variant of it and every key that goes with another variant."""
        for same in self.same:
            keys = [group.key for group in self.tried if same.same_as in group.variants]
            yield from ((same, variant, key) for variant in same.variants for key in keys)

    def digest(self, group: Tried, variant: str) -> str:
        """Hash of the data's card and of all settings of training except the one that is searched."""
        from shared.data.cards import load_card

        config = self.config(group, variant, group.values[0])
        given = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"}, exclude_unset=True)
        return hash_of([given, load_card(config.corpus.dataset).fingerprint])


def load_search(paper: str, scale: str) -> Search:
    """Read and check ``search.yaml``.

    Raises:
        ReplicationError: it is missing or wrong; names key and value.
    """
    settings = ScaleFile(paper, scale)
    path = settings.path.with_name("search.yaml")
    content = build(_Content, load_yaml(path), where=str(path))
    search = Search(path, settings, content.seeds, [], [])
    for number, section in enumerate(content.groups):
        where = f"{path}: groups.{number}"
        if "same_as" in section:
            search.same.append(build(Same, section, where=where))
        else:
            search.tried.append(build(Tried, section, where=where))
    for each in search.groups():
        _check_variants(search, each)
    _refuse_twice(f"{path}: groups", [f"{group.key} of {variant}" for group, variant in search.pairs()])
    for group in search.tried:
        _refuse_twice(f"{path}: values of {group.key}", group.values)
    for group, variant in search.pairs():
        search.value(variant, group.key)
        for value in group.values:
            search.config(group, variant, value)
    known = {variant for _, variant in search.pairs()}
    for same in search.same:
        if same.same_as not in known:
            raise ReplicationError(f"{path}: same_as: '{same.same_as}' is not tried{near(same.same_as, known)}.")
    for _, variant, key in search.same_pairs():
        search.value(variant, key)
    return search


def _check_variants(search: Search, group: Tried | Same) -> None:
    """Refuse variants that do not run, or whose claims are decided with a seed of the pilots."""
    path, settings = search.path, search.settings
    for variant in group.variants:
        if variant not in settings.known():
            raise ReplicationError(
                f"{path}: variants: there is no variant '{variant}'{near(variant, settings.known())}."
            )
        if variant in settings.left_out:
            raise ReplicationError(f"{path}: '{variant}' is left out at this scale: {settings.left_out[variant]}.")
        if both := sorted({*search.seeds} & {*runnable(settings, variant).seeds}):
            raise ReplicationError(
                f"{path}: seeds: {both[0]} is a seed that decides claims about '{variant}'; choose others, such as 101."
            )
    for variant in group.kept:
        if variant not in group.variants:
            raise ReplicationError(
                f"{path}: kept: '{variant}' is no variant of its group{near(variant, group.variants)}."
            )


def _refuse_twice(where: str, values: Sequence[Any]) -> None:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ReplicationError(f"{where}: {value} stands there twice; leave in one.")


class Trial(NamedTuple):
    """One run of a search: a variant with a value of the setting ``key``, and a pilot's seed.

    Attributes:
        config: the settings with that value.
        folder: of its record and curve.
        mark: its fingerprint.
    """

    paper: str
    scale: str
    variant: str
    key: str
    value: Value
    seed: int
    config: RunConfig
    folder: Path
    mark: str

    @property
    def label(self) -> str:
        """What it is called in progress and errors."""
        return f"{self.paper}.{self.variant} {self.key} {self.value} seed {self.seed}"


@alone("trials")
def search_stage(paper: str, scale: str, only: Sequence[str] | None = None) -> None:
    """Train every variant with every value and pilot seed, and say which value is best; a killed search is continued.

    Args:
        only: these variants alone; of the others ``search.json`` is kept. None: all.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, ``search.json`` cannot be kept of a variant that is not tried, or
            trials failed; the others have been trained to their end by then.
    """
    search = load_search(paper, scale)
    kept = {} if only is None else _kept(search, only)
    wanted = only or [variant for _, variant in search.pairs()]
    for task in dict.fromkeys(search.settings.task_of(variant) for variant in wanted):
        _prepare(search.settings, task)
    trials = list(_trials(search, wanted))
    jobs: dict[Path, Job] = {}
    for trial in trials:
        if is_finished(trial.folder, trial.mark):
            print(f"{trial.label}: finished before, kept.")
        else:
            jobs.setdefault(trial.folder, Job(trial.label, train_trial, (str(Path.cwd()), trial)))
    if reasons := set(run_side_by_side([*jobs.values()], PRELOAD)) - {None}:
        raise ReplicationError(f"{search.path}: a variant cannot be trained on this machine: {reasons.pop()}.")
    record = _record(search, trials, kept)
    write_json(found_path(search.settings), record)
    show(record)
    print("\n".join(unfollowed(paper, scale)))


def train_trial(root: str, trial: Trial, *, report: Report | None = None) -> str | None:
    """Run a trial in its own process; return the reason if this machine cannot run it, otherwise None."""
    os.chdir(root)
    return train_into(
        trial.folder, ScaleFile(trial.paper, trial.scale), trial.config, seed=trial.seed, mark=trial.mark,
        label=trial.label, report=report, keep_checkpoints=False,
    )  # fmt: skip


def _prepare(settings: ScaleFile, task: str) -> None:
    """Prepare a task's data, unless they exist and its settings, its card and the code have not changed since."""
    paper, scale = settings.paper, settings.scale
    name, runs = f"{paper}.{task}", run_folder(paper, scale)
    fetch_stage(name, scale)
    known = runs / "search" / f"{task}.json"

    def made() -> dict[str, Any]:
        return {
            "fetched": sha256_of([runs / "fetched" / f"{task}.json"]),
            "corpus": settings.corpus(task).model_dump(mode="json"),
            "code": code_of(settings.kind, paper)["prepare"],
            "data": sha256_of([runs / "tasks" / task]),
        }

    before = read_if_whole(known)
    if before is not None and before == made():
        return
    if task in settings.features:
        features_stage(name, scale)
    prepare_stage(name, scale)
    write_json(known, made())


def _trials(search: Search, variants: Sequence[str]) -> Iterator[Trial]:
    settings = search.settings
    for group, variant in search.pairs():
        for value in group.values if variant in variants else ():
            config = search.config(group, variant, value)
            for seed, mark in marks_of(settings, variant, config, search.seeds).items():
                folder = run_folder(settings.paper, settings.scale) / "search" / variant / mark[:16]
                yield Trial(settings.paper, settings.scale, variant, group.key, value, seed, config, folder, mark)


def _record(search: Search, trials: Sequence[Trial], kept: Mapping[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The content of ``search.json``: the loss of each trial and its provenance, and outcomes kept of variants."""
    settings, made = search.settings, revision() | {"date": now()}
    outcomes: dict[tuple[str, str], dict[str, Any]] = {}
    for group, variant in search.pairs():
        if (found := kept.get((group.key, variant))) is None:
            own = [trial for trial in trials if (trial.key, trial.variant) == (group.key, variant)]
            values = [_outcome(value, [trial for trial in own if trial.value == value]) for value in group.values]
            learnt = [value for value in values if value["loss"] is not None]
            found = {
                "trials": values,
                "best": min(learnt, key=lambda value: value["loss"])["value"] if learnt else None,
                "settings": search.digest(group, variant),
                "code": hash_of(code_of(settings.kind, settings.paper, *settings.lenders([variant]))["train"]),
                **made,
            }
        outcomes[group.key, variant] = found | {"in_params": search.value(variant, group.key)}
    seconds = [trial["processor_seconds"] for found in outcomes.values() for trial in found["trials"]]
    groups = [g.asked | {"variants": {name: outcomes[g.key, name] for name in g.variants}} for g in search.tried]
    head = {"paper": settings.paper, "scale": settings.scale, **made, "seeds": search.seeds}
    return head | {"processor_seconds": round(sum(seconds), 1), "groups": groups}


def _outcome(value: Value, trials: Sequence[Trial]) -> dict[str, Any]:
    """Outcome of one value: means over the pilots of the final and lowest validation loss, null if any diverged."""
    from shared.reports.curves import DIVERGED

    ends, lowest, seconds = dict[str, float | None](), list[float | None](), 0.0
    for trial in trials:
        again = f"run 'python -m shared.pipeline search {trial.paper} --scale {trial.scale}' again"
        run = read_record(trial.folder / "run.json", again, TRAINED)
        with (trial.folder / "curve.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if (row["split"], row["metric"]) == ("valid", "loss")]
        losses = [float(row["value"]) for row in rows]
        diverged = run["stopped_because"].startswith(DIVERGED) or not math.isfinite(losses[-1])
        ends[str(trial.seed)] = None if diverged else losses[-1]
        lowest.append(None if diverged else min(losses))
        seconds += run["processor_seconds"]
    return {
        "value": value, "loss": _mean([*ends.values()]), "lowest": _mean(lowest), "seeds": ends,
        "processor_seconds": round(seconds, 1),
    }  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(f"{sum(known) / len(known):.6g}") if len(known) == len(values) else None


def show(record: Mapping[str, Any]) -> None:
    """Print a table per group, variant by value."""
    from rich.console import Console
    from rich.table import Table

    from shared.reports.plans import end_of

    console = Console()
    for group in record["groups"]:
        table = Table(title=f"{group['key']}: loss at the last validation", title_justify="left")
        for name in ("variant", *map(str, group["values"]), "params.yaml"):
            table.add_column(name, overflow="fold")
        for variant, found in group["variants"].items():
            cells = ["diverged" if each["loss"] is None else f"{each['loss']:.4f}" for each in found["trials"]]
            best = [found["best"] is not None and each["value"] == found["best"] for each in found["trials"]]
            marked = [f"[bold green]{cell} *[/]" if first else cell for cell, first in zip(cells, best, strict=True)]
            table.add_row(variant, *marked, str(found["in_params"]))
            if end_of(group["values"], found["best"]):
                table.caption = "A best value at the end of what was tried: a wider search may find a better one."
        console.print(table)
    console.print(f"* the best. {record['processor_seconds']:,.0f} processor seconds in all.", highlight=False)


def unfollowed(paper: str, scale: str) -> list[str]:
    """One sentence for each reason why the settings are not the best ones of a search; empty without a search.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, or ``search.json`` cannot be read.
    """
    if not ScaleFile(paper, scale).path.with_name("search.yaml").exists():
        return []
    search = load_search(paper, scale)
    path, command = found_path(search.settings), f"run 'python -m shared.pipeline search {paper} --scale {scale}'"
    params = search.settings.path
    if (record := load_found(search.settings)) is None:
        return [f"{path} does not exist; {command}."]
    answered = [found | {"variants": [*found["variants"]]} for found in record["groups"]]
    if record["seeds"] != search.seeds or [group.asked for group in search.tried] != answered:
        return [f"{path} is not of what {search.path} asks now; {command} again."]
    lines = []
    outcomes = [outcome for found in record["groups"] for outcome in found["variants"].values()]
    for (group, variant), outcome in zip(search.pairs(), outcomes, strict=True):
        now_used, best = search.value(variant, group.key), outcome["best"]
        losses = {trial["value"]: trial["loss"] for trial in outcome["trials"]}
        if outcome["settings"] != search.digest(group, variant):
            lines.append(f"{path}: other settings of '{variant}', or its data, have changed since; {command} again.")
        elif best is None and variant not in group.kept:
            lines.append(f"{search.path}: {variant} diverged with every {group.key}; try others.")
        elif variant not in group.kept and (now_used not in losses or losses[now_used] != losses[best]):
            lines.append(
                f"{params}: variants.{variant}.{group.key} is {now_used}, but the search found {best} best; set it, or "
                f"say why in {search.path} (`kept: {{{variant}: reason}}`)."
            )
    for same, variant, key in search.same_pairs():
        now_used, other = search.value(variant, key), search.value(same.same_as, key)
        if now_used != other and variant not in same.kept:
            lines.append(
                f"{params}: variants.{variant}.{key} is {now_used}, but that of '{same.same_as}', with which it goes, "
                f"is {other}; set it, or say why in {search.path} (`kept: {{{variant}: reason}}`)."
            )
    return lines


def in_use(settings: ScaleFile) -> tuple[dict[tuple[str, str], Any], list[Text]]:
    """Key and variant that were tried to the value in ``params.yaml``; and why others have theirs, a sentence each."""
    if not settings.path.with_name("search.yaml").exists():
        return {}, []
    search = load_search(settings.paper, settings.scale)
    used = {(group.key, name): search.value(name, group.key) for group, name in search.pairs()}
    reasons: list[Text] = []
    for same in search.same:
        if others := [code(name) for name in same.variants if name not in same.kept]:
            have = "has" if len(others) == 1 else "have"
            reasons.append(f"{', '.join(others)} {have} the value of {code(same.same_as)}: {same.because}.")
    kept = [item for group in search.groups() for item in group.kept.items()]
    return used, reasons + [f"{code(name)} keeps a value of its own: {why}." for name, why in kept]


def _kept(search: Search, only: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """What ``search.json`` says of the variants that are not in ``only``, by key and variant, with its provenance.

    Raises:
        ReplicationError: a variant of ``only`` is not in ``search.yaml``; or the file does not answer what is asked
            of another variant.
    """
    tried = [variant for _, variant in search.pairs()]
    for variant in only:
        if variant not in tried:
            raise ReplicationError(f"--only: '{variant}' is not tried in {search.path}{near(variant, tried)}.")
    record = load_found(search.settings) or {"seeds": [], "groups": []}
    made = {name: record[name] for name in ("git_commit", "git_dirty", "date") if name in record}
    kept = {}
    for group, variant in search.pairs():
        if variant in only:
            continue
        asked = {key: value for key, value in group.asked.items() if key != "variants"}
        same = [found for found in record["groups"] if asked.items() <= found.items()]
        outcome = same[0]["variants"].get(variant) if same and record["seeds"] == search.seeds else None
        if outcome is None or outcome["settings"] != search.digest(group, variant):
            raise ReplicationError(
                f"{found_path(search.settings)}: it does not answer what {search.path} asks of '{variant}'; add that "
                "variant to --only, or leave --only out."
            )
        kept[group.key, variant] = made | outcome
    return kept
