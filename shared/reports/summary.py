"""One page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shared.claims.better import SCALES, better, disagree
from shared.claims.outcomes import VERDICTS
from shared.errors import ReplicationError
from shared.metrics.registry import by_theme, measure
from shared.reports.document import (
    Block,
    Code,
    Heading,
    Inline,
    Link,
    Paragraph,
    Table,
    Text,
    plain,
    render,
    write_page,
)
from shared.reports.scales import TESTS, link_to
from shared.reports.verdicts import ALIGN, COLUMNS, claim_row, metric_title

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
SHOWN_FIRST = ("quick", "bench", "paper_scale", "smoke")
BETTER = "Where a paper has several reports, the better evidence on each claim is counted (docs/EVIDENCE.md)."


@dataclass(frozen=True)
class Report:
    """One report on disk.

    Attributes:
        folder: where it lies.
        scale, paper: its place, ``reports/<scale>/<paper>``.
        claims: the entries of claims.json.
        metrics: the content of metrics.json.
    """

    folder: Path
    scale: str
    paper: str
    claims: list[dict[str, Any]]
    metrics: dict[str, Any]

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

    def others(self, claim: str) -> str:
        """Where the verdict on a claim is from, and what other scales say if they disagree with it."""
        entries = self._by_claim[claim]
        best = better(entries)
        if not disagree(entries):
            return str(best["scale"])
        said = (f"{entry['scale']} disagrees: {entry['verdict']}" for entry in entries if entry is not best)
        return "; ".join([best["scale"], *said])

    @cached_property
    def _by_claim(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for report in reversed(self.reports):
            for entry in report.claims:
                found.setdefault(entry["id"], []).append(entry)
        return found


def summarize(reports_dir: Path, readmes: list[Path]) -> None:
    """Write ``README.md`` and ``index.html`` of the reports folder, and the verdict part of READMEs.

    Everywhere the better evidence of a paper's reports is shown. A README in ``replications/<paper>/`` gets the
    verdicts of that paper's claims. Any other README gets the number of each verdict for all papers. The smoke scale
    tests the pipeline only, so only the reports folder lists it, and only of a paper that has no other report.

    Raises:
        ReplicationError: a report cannot be read, or a README lacks the two marker lines.
    """
    reports = _load(reports_dir)
    found = replicated(reports)
    blocks: list[Block] = [
        Heading("Verdicts of all replications", level=1),
        *_or_none([*count_blocks(found, reports_dir), *claim_blocks(found, reports_dir)]),
        *_variant_blocks(reports, reports_dir),
    ]
    write_page(blocks, reports_dir, title="Verdicts of all replications")
    shown = replicated([report for report in reports if report.scale != TESTS])
    for readme in readmes:
        if readme.parent.parent.name == "replications":
            part = claim_blocks([each for each in shown if each.paper == readme.parent.name], readme.parent)
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(_or_none(part), "md", title="", folder=readme.parent))


def replicated(reports: Sequence[Report]) -> list[Replicated]:
    """The reports of each paper together; that of the smoke scale only where it is alone."""
    papers = sorted({report.paper for report in reports})
    together = [[report for report in reports if report.paper == paper] for paper in papers]
    whole = [[report for report in own if report.scale != TESTS] or own for own in together]
    return [Replicated(tuple(sorted(own, key=lambda report: SCALES.index(report.scale)))) for own in whole]


def count_blocks(papers: Sequence[Replicated], base: Path) -> list[Block]:
    """How often there is each verdict, a row for each paper with links relative to ``base``; [] without reports."""
    if not papers:
        return []
    counts = [Counter(claim["verdict"] for claim in paper.claims) for paper in papers]
    rows: list[list[Text]] = [
        [paper.title, _links(paper, base), *(plain(count[verdict], 0) for verdict in VERDICTS)]
        for paper, count in zip(papers, counts, strict=True)
    ]
    table = Table(("Paper", "Reports", *(v.capitalize() for v in VERDICTS)), rows, "ll" + "r" * len(VERDICTS))
    return [table, *([Paragraph(BETTER)] if any(len(paper.reports) > 1 for paper in papers) else ())]


def claim_blocks(papers: Sequence[Replicated], base: Path) -> list[Block]:
    """A table of all claims for each paper, after links relative to ``base``; [] without reports."""
    blocks: list[Block] = []
    for paper in papers:
        rows = [[*claim_row(claim), paper.others(claim["id"])] for claim in paper.claims]
        said = f"{paper.title}, " + (
            "reports at these scales: " if len(paper.reports) > 1 else "report at this scale: "
        )
        blocks.append(Paragraph((said, *_links(paper, base), ".")))
        blocks.append(Table((*COLUMNS, "Scale"), rows, f"{ALIGN}l", stacked=True))
    return blocks


def _or_none(blocks: list[Block]) -> list[Block]:
    return blocks or [Paragraph("No report has been made yet.")]


def _variant_blocks(reports: Sequence[Report], base: Path) -> list[Block]:
    """What every variant of each report scores, a table per theme of the measures."""
    blocks: list[Block] = []
    for report in reports:
        variants = report.metrics.get("variants", {})
        themes = by_theme({name for values in variants.values() for name in values})
        tables = [table for names in themes if (table := _score_table(variants, names)) is not None]
        if tables:
            blocks += [Paragraph((_link(report, base), f", {report.scale} scale:")), *tables]
    return [Heading("Scores"), *blocks] if blocks else []


def _score_table(variants: Mapping[str, Mapping[str, float]], metrics: Sequence[str]) -> Table | None:
    shown = [name for name in metrics if any(name in values for values in variants.values())]
    rows: list[list[Text]] = [
        [Code(variant), *(plain(values.get(name), measure(name).digits) for name in shown)]
        for variant, values in variants.items()
        if any(name in values for name in shown)
    ]
    titles = [metric_title(name) for name in shown]
    return Table(("Variant", *titles), rows, "l" + "r" * len(shown)) if rows else None


def _load(reports_dir: Path) -> list[Report]:
    """All reports: first those of the scale that newcomers run first, then by paper."""
    reports = []
    for path in reports_dir.glob("*/*/claims.json"):
        try:
            claims = json.loads(path.read_text(encoding="utf-8"))
            metrics = json.loads((path.parent / "metrics.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ReplicationError(f"{path.parent} is no whole report ({error}); run its report stage.") from None
        reports.append(Report(path.parent, path.parent.parent.name, path.parent.name, claims, metrics))
    rank = {scale: index for index, scale in enumerate(SHOWN_FIRST)}
    return sorted(reports, key=lambda report: (rank.get(report.scale, len(rank)), report.paper))


def _link(report: Report, base: Path, words: str = "") -> Link:
    return link_to(report.folder / "README.md", words or report.title, base)


def _links(paper: Replicated, base: Path) -> tuple[Inline, ...]:
    """The scales of a paper's reports, each a link."""
    found = [part for report in paper.reports for part in (", ", _link(report, base, report.scale))]
    return tuple(found[1:])


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
