"""The commands ``show`` and ``list``: what became of a claim at every scale, and how; what is trained and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.claims.competence import below
from shared.claims.outcomes import Decision, Outcome, better, disagree
from shared.claims.results import RunResults
from shared.claims.scales import SCALES
from shared.claims.schema import Claim, Claims, load_claims
from shared.claims.words import number_of
from shared.config import load_yaml, near
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import REPLICATIONS, paper_folder, run_folder
from shared.records import read_record

# The report's own sentences, so that both say the same.
from shared.reports.cards import SOURCES, describe_comparison, describe_effect, describe_strength, tests_and_checks, why
from shared.reports.document import plain_text
from shared.reports.paper import Paper
from shared.reports.scales import claims_of, disagreement
from shared.reports.terminal import STYLES
from shared.reports.verdicts import RULES, effect_text, evidence_text, found_text, metric_title, value_text
from shared.tasks.kinds import load_measures, papers

REPORTS = Path("reports")
Entry = Mapping[str, Any]
"""An entry of claims.json."""
LEFT_OUT = "–"
LEGEND = (
    "Seeds with a checkpoint / with metrics, of all seeds. Checkpoints lie on the machine that has trained; metrics "
    f"come with the project. {LEFT_OUT}: does not run at this scale. 'list <paper>' says more, --all names what runs "
    "at no scale, too."
)


def show_claim(name: str, *, scale: str | None = None, console: Console | None = None) -> None:
    """Print a claim, its verdict at each scale with a report, and how one of them came about.

    Args:
        name: the claim's id.
        scale: of the report that is explained; that with the better evidence unless given.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: there is no such claim, or no report of it at this scale.
    """
    load_measures()
    console = console or Console(highlight=False)
    paper, entries = _reports_of(name)
    if scale is not None and scale not in entries:
        raise ReplicationError(
            f"no report at {scale} scale decides {name} (reports at these scales do: {', '.join(entries) or 'none'}); "
            f"run 'python -m shared.pipeline use {scale} && dvc repro report@{paper}'."
        )
    entry = entries[scale] if scale else better(entries.values()) if entries else None
    claims = load_claims(REPLICATIONS / paper / "claims.yaml", entry["scale"] if entry else SCALES[0])
    claim = next(claim for claim in claims.claims if claim.id == name)
    short, source = Paper.load(REPLICATIONS / paper / "paper.yaml").short, SOURCES[claim.in_paper.source]
    console.print(Text.assemble((f"{claim.id}: {_line(claim.statement)}", "bold")))
    console.print(Text(f"{short}, {claim.where}.\nThe paper reports: {_line(claim.in_paper.text)}{source}."))
    for each, found in entries.items():
        lead = found["lead"]
        said = f"{found_text(found)}; {evidence_text(found, lead)}" if lead is not None else found["reason"]
        how = f": {found['how']}" if found["how"] else ""
        verdict = (found["verdict"], STYLES[found["verdict"]])
        console.print(Text.assemble(f"{each}: ", verdict, f"{how}; {said}"))
    if entry is None:
        console.print(f"No report says anything of it yet; run 'dvc repro report@{paper}'.")
        return
    if disagree(list(entries.values())):
        console.print(Text(_line(disagreement(list(entries.values())) or "")))
    if [claim.statement, claim.in_paper.model_dump(mode="json")] != [entry["statement"], entry["in_paper"]]:
        console.print("claims.yaml has changed since this report; run the report stage again.")
    console.print(Text(f"How the verdict at {entry['scale']} scale came about:", style="bold"))
    for line in _explanation(claims, decision_of(entry, claim), run_folder(paper, entry["scale"])):
        console.print(Text(line))
    if "plan" in entry:  # older reports do not have it
        console.print(Text(f"- Plan: {entry['plan']}."))


def _reports_of(name: str) -> tuple[str, dict[str, Entry]]:
    """The paper of a claim, and the scales from the smallest to the entries of their reports' claims.json."""
    known: dict[str, str] = {}
    for paper in _papers():
        document = load_yaml(REPLICATIONS / paper / "claims.yaml")
        rows = document.get("claims") if isinstance(document, dict) else None
        known |= {str(row["id"]): paper for row in rows or () if isinstance(row, dict) and "id" in row}
    if name not in known:
        upper = {claim.upper(): claim for claim in known}
        raise ReplicationError(f"there is no claim '{name}'{near(upper.get(name.upper(), name), known)}.")
    found = {scale: claims_of(REPORTS / scale / known[name]) for scale in SCALES}
    return known[name], {scale: row for scale, rows in found.items() for row in rows if row["id"] == name}


def _papers() -> list[str]:
    if not (found := papers()):
        raise ReplicationError(f"{Path.cwd()} has no folder 'replications' with papers; go to the project's root.")
    return found


def decision_of(entry: Entry, claim: Claim) -> Decision:
    """The decision that an entry of claims.json was written from."""
    known = {key: entry[key] for key in ("scale", "verdict", "how", "reason", "evidence", "checks", "learned")}
    changed = None if entry["changed"] is None else tuple(entry["changed"])
    return TypeAdapter(Decision).validate_python(
        known | {"claim": claim, "outcomes": entry["comparisons"], "changed": changed}
    )


def _explanation(claims: Claims, decision: Decision, runs: Path) -> Iterator[str]:
    """Sentences on what was compared and found, in the order in which a verdict comes about."""
    claim, lead = decision.claim, decision.lead
    results = _results(runs, lead)
    if claim.primary is not None and lead is not None:
        if lead.variants[0] in results:
            yield _line(describe_comparison(claim.primary, lead, results))
        if lead.effect is not None:
            yield _line(describe_effect(claim.primary, lead))
    for outcome in decision.outcomes:
        if outcome.deciding and outcome.kind == "exact":
            yield f"Identity '{outcome.name}': {outcome.verdict}; {effect_text(vars(outcome))}."
    if lead is not None:
        yield from _floors(claims, decision, lead, results)
    if (reason := why(decision)) is not None:
        yield f"- Why: {reason}."
    for point in (*describe_strength(decision), *(tests_and_checks(decision, lead) if lead is not None else ())):
        yield f"- {_line(point)}"
    for outcome in decision.supporting:
        yield f"- Supporting comparison '{outcome.name}': {outcome.verdict}; {effect_text(vars(outcome))}."
    yield f"The verdict. {RULES['The verdict.']}"


def _floors(claims: Claims, decision: Decision, lead: Outcome, results: Mapping[str, RunResults]) -> Iterator[str]:
    """What models had to reach, and which seeds did."""
    for each in decision.learned:
        if (floor := claims.floors.get(each.task)) is None:
            continue
        bound, word = (floor.at_most, "at most") if floor.at_least is None else (floor.at_least, "at least")
        needed = f"{metric_title(floor.metric)}: {word} {value_text(floor.metric, bound or 0.0)}"
        said = f"Floor of the task {each.task} ({needed}): {each.reached} of {number_of(each.seeds, 'seed')} of "
        said += f"{each.variant} reach it"
        run = results.get(each.variant)
        if run is not None and {*lead.seeds} <= {*run.seeds}:
            failed = below(floor, run, lead.seeds)
            reached = ", ".join(str(seed) for seed in lead.seeds if seed not in failed)
            said += f" ({reached})" if reached else ""
            said += f", and {', '.join(map(str, failed))} do not" if failed and reached else ""
        yield said + (f". It is exempt: {each.exempt}." if each.exempt else ".")


def _results(runs: Path, lead: Outcome | None) -> dict[str, RunResults]:
    """The metrics of the variants that decide, as far as they are still there."""
    found: dict[str, RunResults] = {}
    for variant in () if lead is None else lead.variants:
        own = variant.removesuffix("-ensemble")
        if (runs / own / "metrics.json").is_file():
            run = RunResults.load(runs / own)
            found[variant] = run if own == variant else run.as_ensemble()
    return found


def _line(text: Any) -> str:
    """A report's text without its marks, on one line."""
    return " ".join(plain_text(text).split())


class State(NamedTuple):
    """What there is of a variant at a scale.

    Attributes:
        trained, judged, seeds: how many seeds have a checkpoint and metrics, and how many there are to be.
        note: whose runs it has, why it does not run, or nothing.
    """

    trained: int
    judged: int
    seeds: int
    note: str = ""

    @property
    def counted(self) -> str:
        """In a cell of a table."""
        return f"{self.trained}/{self.judged} of {self.seeds}" if self.seeds else LEFT_OUT


def list_runs(paper: str | None = None, *, everything: bool = False, console: Console | None = None) -> None:
    """Print a table of every paper, or of one paper a table for every scale, with the reasons for what is left out.

    Args:
        paper: its name; None: all.
        everything: whether variants that run at no scale are listed, too.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: there is no such paper.
    """
    console = console or Console(highlight=False)
    if paper is not None:
        for scale in scales_of(paper):
            _print_scale(ScaleFile(paper_folder(paper).name, scale), console)
        return
    console.print(f"{LEGEND}\n")
    for each in _papers():
        _print_paper([ScaleFile(each, scale) for scale in scales_of(each)], everything, console)


def state(settings: ScaleFile, variant: str) -> State:
    """What there is of a variant."""
    if variant in settings.left_out:
        return State(0, 0, 0, settings.left_out[variant])
    config, folder = settings.run(variant), settings.folder(variant)
    name = f"{config.evaluation.checkpoint}.ckpt"
    trained = sum((folder / "train" / f"seed{seed}" / "checkpoints" / name).is_file() for seed in config.seeds)
    path, again = folder / "metrics.json", "run its evaluate stage again"
    metrics = read_record(path, again, {"seeds": dict | None}) if path.exists() else {}
    judged = sum(str(seed) in metrics.get("seeds", {}) for seed in config.seeds)
    return State(trained, judged, len(config.seeds), f"not run: {metrics['not_run']}" if "not_run" in metrics else "")


def _print_paper(settings: list[ScaleFile], everything: bool, console: Console) -> None:
    """A row for each variant, a column for each scale, and the tasks of each scale below."""
    console.print(Text(f"{settings[0].paper} ({settings[0].kind})", style="bold"))
    table = Table("variant", *(each.scale for each in settings), box=None, pad_edge=False)
    for variant in settings[0].known():
        cells = [state(each, variant).counted for each in settings]
        if everything or {*cells} != {LEFT_OUT}:
            table.add_row(variant, *cells)
    console.print(table)
    for each in settings:
        console.print(Text(f"tasks, scale {each.scale}: {', '.join(each.tasks) or 'none'}", style="dim"))
    console.print()


def _print_scale(settings: ScaleFile, console: Console) -> None:
    """A row for each variant that runs, and the reasons for the others."""
    console.print(Text(f"{settings.paper} ({settings.kind}), scale {settings.scale}", style="bold"))
    table = Table("variant", "task", "trained", "judged", "seeds", "", box=None, pad_edge=False)
    for variant in settings.judged():
        trained, judged, seeds, note = state(settings, variant)
        table.add_row(variant, settings.task_of(variant), str(trained), str(judged), str(seeds), Text(note))
    console.print(table)
    for reason in dict.fromkeys(settings.left_out.values()):
        names = ", ".join(variant for variant, why_not in settings.left_out.items() if why_not == reason)
        console.print(Text(f"left out: {names}: {_line(reason)}", style="dim"))
    console.print()
