"""The commands ``show`` and ``explain``: what a claim is, what became of it at every scale, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text as Styled

from shared.claims.better import better, disagree
from shared.claims.competence import Check, Learned, below
from shared.claims.outcomes import Decision, Outcome, Tests
from shared.claims.results import RunResults
from shared.claims.scales import SCALES
from shared.claims.schema import Claim, Claims, load_claims
from shared.claims.words import number_of
from shared.config import load_yaml, near
from shared.errors import ReplicationError
from shared.pipeline.files import REPLICATIONS, run_folder
from shared.pipeline.use import HIDDEN

# The report's own sentences, so that both say the same.
from shared.reports.claim_sections import SOURCES, claimed, measured, strength, tests_and_checks, why
from shared.reports.document import Text, parts
from shared.reports.paper import Paper
from shared.reports.scales import claims_of, disagreement
from shared.reports.terminal import STYLES
from shared.reports.verdicts import RULES, effect_text, evidence_text, found_text, metric_title, value_text
from shared.tasks.kinds import load_measures
from shared.tasks.protocol import papers

REPORTS = Path("reports")
Entry = Mapping[str, Any]
"""An entry of claims.json."""


class Asked(NamedTuple):
    """A claim, and what reports say of it.

    Attributes:
        paper: its folder's name.
        claim: as the paper's claims.yaml has it.
        entries: scale to the entry of that report's claims.json, from the smallest scale.
    """

    paper: str
    claim: Claim
    entries: Mapping[str, Entry]


def show_claim(name: str, *, console: Console | None = None) -> None:
    """Print a claim's statement, where it stands, the paper's numbers, and the verdict at each scale with a report.

    Raises:
        ReplicationError: there is no such claim; names the nearest one.
    """
    load_measures()
    console = console or Console(highlight=False)
    asked = _asked(name)
    _print_claim(asked, console)
    for scale, entry in asked.entries.items():
        lead = entry["lead"]
        found = "" if lead is None else f"; {found_text(entry)}; {evidence_text(entry, lead)}"
        why = f"; {entry['reason']}" if lead is None else ""
        console.print(Styled.assemble(f"{scale}: ", _verdict(entry), f"{found}{why}"))
    if not asked.entries:
        console.print(f"No report says anything of it yet; run 'dvc repro report@{asked.paper}'.")
    if disagree(list(asked.entries.values())):
        console.print(_plain(disagreement(list(asked.entries.values())) or ""))


def explain_claim(name: str, *, scale: str | None = None, console: Console | None = None) -> None:
    """Print how the verdict came about: what was compared, who has learned, the tests, the checks and the reason.

    Args:
        name: the claim's id.
        scale: of the report; that with the better evidence unless given.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: there is no such claim, or no report of it at this scale.
    """
    load_measures()
    console = console or Console(highlight=False)
    asked = _asked(name)
    if not asked.entries or (scale is not None and scale not in asked.entries):
        there = ", ".join(asked.entries) or "none"
        at = f" at {scale} scale" if scale else ""
        raise ReplicationError(
            f"no report{at} decides {asked.claim.id} (reports at these scales do: {there}); run "
            f"'{_making(asked.paper, scale)}'."
        )
    entry = better(asked.entries.values()) if scale is None else asked.entries[scale]
    claims = load_claims(REPLICATIONS / asked.paper / "claims.yaml", entry["scale"])
    claim = next(claim for claim in claims.claims if claim.id == asked.claim.id)
    _print_claim(asked, console)
    console.print(Styled.assemble("Verdict at ", (f"{entry['scale']} scale", "bold"), ": ", _verdict(entry), "."))
    if [claim.statement, claim.in_paper.model_dump(mode="json")] != [entry["statement"], entry["in_paper"]]:
        console.print("claims.yaml has changed since this report; run the report stage again.")
    for line in _explanation(claims, decision_of(entry, claim), run_folder(asked.paper, entry["scale"])):
        console.print(Styled(line), soft_wrap=False)
    if "plan" in entry:  # older reports do not have it
        console.print(Styled(f"- Plan: {entry['plan']}."), soft_wrap=False)
    others = [each for each in asked.entries if each != entry["scale"]]
    if others:
        console.print(Styled(f"There are reports at other scales, too: {', '.join(others)}.", style="dim"))


def _making(paper: str, scale: str | None) -> str:
    """The command that makes a report; a scale that DVC does not read has to be used first."""
    if scale is None:
        return f"dvc repro report@{paper}"
    first = f"python -m shared.pipeline use {scale} && " if scale in HIDDEN else ""
    return f"{first}dvc repro {(REPLICATIONS / paper / scale / 'dvc.yaml').as_posix()}:report"


def decision_of(entry: Entry, claim: Claim) -> Decision:
    """The decision that an entry of claims.json was written from."""
    outcomes = [dict(row) for row in entry["comparisons"]]
    for row in outcomes:
        row["tests"] = None if row["tests"] is None else Tests(**row["tests"])
        for key in ("variants", "seeds", "per_seed", "interval"):
            row[key] = None if row[key] is None else tuple(row[key])
    return Decision(
        claim=claim, scale=entry["scale"], verdict=entry["verdict"], how=entry["how"], reason=entry["reason"],
        outcomes=tuple(Outcome(**row) for row in outcomes), evidence=entry["evidence"],
        checks=tuple(Check(**each) for each in entry["checks"]),
        learned=tuple(Learned(**each) for each in entry["learned"]),
        changed=None if entry["changed"] is None else tuple(entry["changed"]),
    )  # fmt: skip


def _explanation(claims: Claims, decision: Decision, runs: Path) -> Iterator[str]:
    """Sentences on what was compared and found, in the order in which a verdict comes about."""
    claim, lead = decision.claim, decision.lead
    results = _results(runs, lead)
    if claim.primary is not None and lead is not None:
        if lead.variants[0] in results:
            yield _plain(claimed(claim.primary, lead, results))
        if lead.effect is not None:
            yield _plain(measured(claim.primary, lead))
    for outcome in decision.outcomes:
        if outcome.deciding and outcome.kind == "exact":
            yield f"Identity '{outcome.name}': {outcome.verdict}; {effect_text(vars(outcome))}."
    yield from _floors(claims, decision, results)
    if (reason := why(decision)) is not None:
        yield f"- Why: {reason}."
    for point in (*strength(decision), *(tests_and_checks(decision, lead) if lead is not None else ())):
        yield f"- {_plain(point)}"
    for outcome in decision.supporting:
        yield f"- Supporting comparison '{outcome.name}': {outcome.verdict}; {effect_text(vars(outcome))}."
    name, said = RULES[1]
    yield f"{name} {said}"


def _floors(claims: Claims, decision: Decision, results: Mapping[str, RunResults]) -> Iterator[str]:
    """What models had to reach, and which seeds did."""
    lead = decision.lead
    for each in decision.learned if lead is not None else ():
        floor = claims.floors.get(each.task)
        if floor is None:
            continue
        bound, word = (floor.at_most, "at most") if floor.at_least is None else (floor.at_least, "at least")
        needed = f"{metric_title(floor.metric)}: {word} {value_text(floor.metric, bound or 0.0)}"
        seeds = number_of(each.seeds, "seed")
        said = f"Floor of the task {each.task} ({needed}): {each.reached} of {seeds} of {each.variant}"
        run = results.get(each.variant)
        if lead is not None and run is not None and set(lead.seeds) <= set(run.seeds):
            failed = below(floor, run, lead.seeds)
            reached = ", ".join(str(seed) for seed in lead.seeds if seed not in failed)
            said += " reach it" + (f" ({reached})" if reached else "")
            said += f", and {', '.join(map(str, failed))} do not" if failed and reached else ""
        else:
            said += " reach it"
        exempt = f". It is exempt: {each.exempt}" if each.exempt else ""
        yield f"{said}{exempt}."


def _results(runs: Path, lead: Outcome | None) -> dict[str, RunResults]:
    """The metrics of the variants that decide, as far as they are still there."""
    found: dict[str, RunResults] = {}
    for variant in () if lead is None else lead.variants:
        own = variant.removesuffix("-ensemble")
        if (runs / own / "metrics.json").is_file():
            run = RunResults.load(runs / own)
            found[variant] = run if own == variant else run.as_ensemble()
    return found


def _asked(name: str) -> Asked:
    """The claim with this id, of whatever paper."""
    known: dict[str, str] = {}
    for paper in papers():
        document = load_yaml(REPLICATIONS / paper / "claims.yaml")
        rows = document.get("claims") if isinstance(document, dict) else None
        known |= {str(row["id"]): paper for row in rows or () if isinstance(row, dict) and "id" in row}
    if name not in known:
        upper = {claim.upper(): claim for claim in known}
        hint = near(upper.get(name.upper(), name), known)
        raise ReplicationError(f"there is no claim '{name}'{hint}.")
    paper = known[name]
    entries: dict[str, Entry] = {}
    for scale in SCALES:
        rows = claims_of(REPORTS / scale / paper) or []
        if (entry := next((row for row in rows if row["id"] == name), None)) is not None:
            entries[scale] = entry
    scale = next(reversed(entries), SCALES[0])
    claims = load_claims(REPLICATIONS / paper / "claims.yaml", scale)
    return Asked(paper, next(claim for claim in claims.claims if claim.id == name), entries)


def _print_claim(asked: Asked, console: Console) -> None:
    """The claim, where it stands, and what the paper reports."""
    claim = asked.claim
    paper = Paper.load(REPLICATIONS / asked.paper / "paper.yaml")
    console.print(Styled.assemble((f"{claim.id}: {' '.join(claim.statement.split())}", "bold")))
    console.print(Styled(f"{paper.short}, {claim.where}."))
    console.print(
        Styled(f"The paper reports: {' '.join(claim.in_paper.text.split())}{SOURCES[claim.in_paper.source]}.")
    )


def _verdict(entry: Entry) -> Styled:
    how = f": {entry['how']}" if entry["how"] else ""
    return Styled.assemble((entry["verdict"], STYLES[entry["verdict"]]), how)


def _plain(text: Text) -> str:
    """A report's text without its markup."""
    words = (part if isinstance(part, str) else part.text for part in parts(text))
    return " ".join("".join(words).split())
