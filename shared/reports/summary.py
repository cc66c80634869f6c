"""One page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.claims.outcomes import VERDICTS
from shared.errors import ReplicationError
from shared.metrics.registry import by_theme, measure
from shared.reports.document import (
    Block,
    Code,
    Heading,
    Link,
    Paragraph,
    Table,
    Text,
    plain,
    render,
    write_page,
)
from shared.reports.verdicts import ALIGN, COLUMNS, claim_row, metric_title

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
SCALES = ("quick", "bench", "paper_scale", "smoke")


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


def summarize(reports_dir: Path, readmes: list[Path]) -> None:
    """Write ``README.md`` and ``index.html`` of the reports folder, and the verdict part of READMEs.

    A README in ``replications/<paper>/`` gets the verdicts of that paper's claims. Any other README gets the number of
    each verdict for all papers. The smoke scale tests the pipeline only, so only the reports folder lists it.

    Raises:
        ReplicationError: a report cannot be read, or a README lacks the two marker lines.
    """
    reports = _load(reports_dir)
    blocks: list[Block] = [
        Heading("Verdicts of all replications", level=1),
        *_or_none([*count_blocks(reports, reports_dir), *claim_blocks(reports, reports_dir)]),
        *_variant_blocks(reports, reports_dir),
    ]
    write_page(blocks, reports_dir, title="Verdicts of all replications")
    for readme in readmes:
        shown = [report for report in reports if report.scale != "smoke"]
        if readme.parent.parent.name == "replications":
            part = claim_blocks([report for report in shown if report.paper == readme.parent.name], readme.parent)
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(_or_none(part), "md", title="", folder=readme.parent))


def count_blocks(reports: Sequence[Report], base: Path) -> list[Block]:
    """How often there is each verdict, a row for each report with a link relative to ``base``; [] without reports."""
    if not reports:
        return []
    counts = [Counter(claim["verdict"] for claim in report.claims) for report in reports]
    rows: list[list[Text]] = [
        [_link(report, base), report.scale, *(plain(count[verdict], 0) for verdict in VERDICTS)]
        for report, count in zip(reports, counts, strict=True)
    ]
    return [Table(("Report", "Scale", *(v.capitalize() for v in VERDICTS)), rows, "ll" + "r" * len(VERDICTS))]


def claim_blocks(reports: Sequence[Report], base: Path) -> list[Block]:
    """A table of all claims for each report, after a link relative to ``base``; [] without reports."""
    blocks: list[Block] = []
    for report in reports:
        blocks.append(Paragraph((_link(report, base), f", {report.scale} scale:")))
        blocks.append(Table(COLUMNS, [claim_row(claim) for claim in report.claims], ALIGN, stacked=True))
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
    rank = {scale: index for index, scale in enumerate(SCALES)}
    return sorted(reports, key=lambda report: (rank.get(report.scale, len(rank)), report.paper))


def _link(report: Report, base: Path) -> Link:
    return Link(report.title, Path(os.path.relpath(report.folder / "README.md", base)).as_posix())


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
