"""The reports on disk, and what those of one paper at several scales say of the same claims."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shared.claims.outcomes import Decision, better, disagree, left_open
from shared.claims.scales import SCALES, TESTS
from shared.errors import ReplicationError
from shared.reports.document import Block, Bullets, Details, Heading, Table, Text, code, hash_text, link, strong
from shared.reports.verdicts import ALIGN, COLUMNS, Entry, claim_row, evidence_text, found_text, rules, verdict_text


@dataclass(frozen=True)
class Report:
    """One report on disk, ``reports/<scale>/<paper>``, as it was when it was read.

    Attributes:
        folder: where it lies.
        claims: the entries of claims.json, by id.
    """

    folder: Path
    claims: Mapping[str, dict[str, Any]]

    @property
    def scale(self) -> str:
        """Of its runs."""
        return self.folder.parent.name

    @property
    def paper(self) -> str:
        """The name of the paper's folder."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What the paper is cited as."""
        return str(next(iter(self.claims.values())).get("paper", self.paper))

    def page(self, base: Path) -> str:
        """Its page, relative to the folder ``base`` of another page."""
        return Path(os.path.relpath(self.folder / "README.md", base)).as_posix()


@dataclass(frozen=True)
class Replicated:
    """A paper's reports at all scales, from the smallest, and its better evidence.

    Attributes:
        reports: at least one.
    """

    reports: tuple[Report, ...]

    @property
    def title(self) -> str:
        """What the paper is cited as."""
        return self.reports[-1].title

    @property
    def paper(self) -> str:
        """Its folder's name."""
        return self.reports[-1].paper

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Of each claim the entry with the better evidence, in the order of the largest scale."""
        return [dict(better(entries)) for entries in self._by_claim.values()]

    def page(self, claim: Entry, base: Path) -> str:
        """The page with a claim's better evidence, relative to ``base``."""
        return next(each for each in self.reports if each.claims.get(claim["id"]) == claim).page(base)

    def card(self, claim: Entry, base: Path) -> str:
        """The card with a claim's better evidence, relative to ``base``."""
        return f"{self.page(claim, base)}#{claim['id']}"

    def others(self, claim: str) -> str:
        """Where the verdict on a claim is from, and which scales disagree with it or leave it open on better data."""
        entries = self._by_claim[claim]
        best = better(entries)
        against = (f"{entry['scale']} disagrees: {entry['verdict']}" for entry in entries if disagree([best, entry]))
        undecided = (f"{entry['scale']}, on {entry['evidence']}: inconclusive" for entry in left_open(best, entries))
        return "; ".join([best["scale"], *against, *undecided])

    @cached_property
    def _by_claim(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for report in reversed(self.reports):
            for name, entry in report.claims.items():
                found.setdefault(name, []).append(entry)
        return found


def load_reports(reports_dir: Path) -> list[Report]:
    """All reports of a folder.

    Raises:
        ReplicationError: one cannot be read.
    """
    folders = [path.parent for path in sorted(reports_dir.glob("*/*/claims.json"))]
    return [load_report(each) for each in folders if each.name.isidentifier()]  # a killed one leaves <paper>.partial


def other_scales(reports: Path, paper: str, scale: str) -> list[Report]:
    """The other reports of a paper that there are, from the smallest scale to the largest; none of the smoke scale.

    Args:
        reports: the folder of all reports.
        paper: its folder's name.
        scale: of the report that is to be written.

    Raises:
        ReplicationError: one cannot be read.
    """
    others = [each for each in SCALES if each not in (scale, TESTS)] if scale != TESTS else []
    folders = [reports / other / paper for other in others]
    return [load_report(folder) for folder in folders if (folder / "claims.json").is_file()]


def load_report(folder: Path) -> Report:
    """A report by its folder.

    Raises:
        ReplicationError: it cannot be read.
    """
    return Report(folder, {entry["id"]: entry for entry in read_claims(folder)})


def read_claims(folder: Path) -> list[dict[str, Any]]:
    """The entries of a report's claims.json.

    Raises:
        ReplicationError: it cannot be read.
    """
    try:
        claims: list[dict[str, Any]] = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{folder} is no whole report ({error}); run its report stage.") from None
    return claims


def claims_of(folder: Path) -> list[dict[str, Any]]:
    """As :func:`read_claims`; none where there is no report."""
    return read_claims(folder) if (folder / "claims.json").is_file() else []


def group_by_paper(reports: Sequence[Report]) -> list[Replicated]:
    """The reports of each paper together; that of the smoke scale only where it is alone."""
    papers: dict[str, list[Report]] = {}
    for report in reports:
        papers.setdefault(report.paper, []).append(report)
    whole = [[report for report in own if report.scale != TESTS] or own for own in papers.values()]
    return [Replicated(tuple(sorted(own, key=lambda report: SCALES.index(report.scale)))) for own in whole]


def overview(decisions: Sequence[Decision], others: Sequence[Report], folder: Path) -> list[Block]:
    """The table of verdicts, with a column for each other scale, and folded how verdicts come about.

    Below the table: where the others come from, which are the better evidence, and where they disagree.

    Args:
        decisions: of this report.
        others: of the same paper.
        folder: where the page will lie.
    """
    entries = [decision.to_json() for decision in decisions]
    columns = (*COLUMNS, *(f"At {other.scale} scale" for other in others))
    rows = [[*claim_row(entry), *(_cell(other, entry["id"]) for other in others)] for entry in entries]
    together = [
        [entry, *(each.claims[entry["id"]] for each in others if entry["id"] in each.claims)] for entry in entries
    ]
    split = [line for of_claim in together if (line := disagreement(of_claim)) is not None]
    said = [Bullets([*(_where_from(other, folder) for other in others), _better_line(together), *split])]
    return [
        Heading("Verdicts"),
        Table(columns, rows, ALIGN + "l" * len(others), stacked=True),
        *(said if others else ()),
        Details("How a verdict comes about", [rules()]),
    ]


def _cell(other: Report, claim: str) -> Text:
    """Another scale's verdict on a claim, with effect and evidence; narrow pages show no heads, so it says which."""
    entry = other.claims.get(claim)
    if entry is None:
        return f"{other.scale}: no such claim"
    lead = entry["lead"]
    found = "" if lead is None else f"; {found_text(entry)}; {evidence_text(entry, lead)}"
    return f"{other.scale}: {verdict_text(entry)}{found}"


def disagreement(entries: Sequence[Entry]) -> str | None:
    """A sentence, if decided verdicts on a claim differ between scales."""
    if not disagree(entries):
        return None
    best = better(entries)
    ordered = sorted(entries, key=lambda entry: SCALES.index(entry["scale"]))
    said = ", ".join(f"{entry['verdict']} at {entry['scale']} scale" for entry in ordered)
    return (
        f"{strong('The scales disagree')} on {best['id']}: {said}. Neither verdict is dropped; the better evidence is "
        f"that of {best['scale']} scale."
    )


def _where_from(other: Report, folder: Path) -> Text:
    commits = sorted({commit for entry in other.claims.values() for commit in entry.get("commits", ())})
    shown = ", ".join(code(hash_text(commit)) for commit in commits)
    runs = f": from runs of {'commit' if len(commits) == 1 else 'commits'} {shown}" if commits else ""
    place = link(f"{other.scale} scale", other.page(folder))
    return f"At {place}{runs}; its verdicts are as they were when this page was written."


def _better_line(together: Sequence[Sequence[Entry]]) -> Text:
    """Which scale has the better evidence, claim by claim."""
    by_scale: dict[str, list[str]] = {}
    for entries in together:
        best = better(entries)
        by_scale.setdefault("" if best["verdict"] == "not tested" else best["scale"], []).append(best["id"])
    found = "; ".join(f"{scale} scale for {', '.join(by_scale[scale])}" for scale in SCALES if scale in by_scale)
    untested = f" No scale tests {', '.join(by_scale[''])}." if "" in by_scale else ""
    return (
        f"{strong('The better evidence')} is that of {found or 'no scale'}.{untested} A decided verdict beats an "
        "inconclusive one, and that one that was not tested; then the paper's data beat standard data, and these "
        "generated data; then the larger scale counts."
    )
