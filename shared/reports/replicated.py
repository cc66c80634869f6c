"""The reports on disk, and of each paper the better evidence of all its scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shared.claims.better import better, disagree, left_open
from shared.claims.scales import SCALES, TESTS
from shared.reports.scales import link_to, read_claims


@dataclass(frozen=True)
class Report:
    """One report on disk.

    Attributes:
        folder: where it lies.
        scale, paper: its place, ``reports/<scale>/<paper>``.
        claims: the entries of claims.json.
    """

    folder: Path
    scale: str
    paper: str
    claims: list[dict[str, Any]]

    @property
    def title(self) -> str:
        """What the paper is cited as."""
        return str(self.claims[0].get("paper", self.paper))


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

    def page(self, claim: Mapping[str, Any], base: Path) -> str:
        """The page with a claim's better evidence, relative to ``base``."""
        report = next(report for report in self.reports if claim in report.claims)
        return link_to(report.folder / "README.md", "", base).target

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
            for entry in report.claims:
                found.setdefault(entry["id"], []).append(entry)
        return found


def load_reports(reports_dir: Path) -> list[Report]:
    """All reports of a folder.

    Raises:
        ReplicationError: one cannot be read.
    """
    folders = [path.parent for path in sorted(reports_dir.glob("*/*/claims.json"))]
    folders = [folder for folder in folders if folder.name.isidentifier()]  # a killed report leaves <paper>.partial
    return [Report(folder, folder.parent.name, folder.name, read_claims(folder)) for folder in folders]


def replicated(reports: Sequence[Report]) -> list[Replicated]:
    """The reports of each paper together; that of the smoke scale only where it is alone."""
    papers = dict.fromkeys(report.paper for report in reports)
    together = [[report for report in reports if report.paper == paper] for paper in papers]
    whole = [[report for report in own if report.scale != TESTS] or own for own in together]
    return [Replicated(tuple(sorted(own, key=lambda report: SCALES.index(report.scale)))) for own in whole]
