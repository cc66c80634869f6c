"""The main page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any

from shared.claims.outcomes import SIDES, VERDICTS, disagree, headline, left_open
from shared.claims.scales import SCALES, TESTS
from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.reports import document as doc
from shared.reports import verdicts
from shared.reports.document import code, hash_text, link, number, plain, strong
from shared.reports.figures import Effect, draw_forest
from shared.reports.page import render, write_page
from shared.reports.paper import Paper
from shared.reports.runs import ARROWS, SCORES
from shared.reports.sentences import paragraphs, say
from shared.reports.verdicts import ALIGN, COLUMNS, Entry, Report, amount

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
TITLE = "Attention, replicated"
BETTER = "Where a paper has several reports, the better evidence on each claim is counted (docs/EVIDENCE.md)."
NOTHING = "No report has been made yet."
BASES = {
    "with small models, trained in minutes or hours of two cores": (
        "generated", "own data", "standard data", "paper's data",
    ),
    "without training": ("measured", "identity"),
}  # fmt: skip
"""What decides, and the kinds of evidence that come from it."""
LEAST = {"perplexity": 1.0}
"""The best possible score, where that is not 0."""
Model = tuple[Report, Mapping[str, Any]]
"""A report, and the entry of a model in its runs.json."""


@dataclass(frozen=True)
class Replicated:
    """A paper's reports at all scales, from the smallest, and its better evidence.

    Attributes:
        reports: at least one.
    """

    reports: Sequence[Report]

    @property
    def title(self) -> str:
        """What the paper is cited as."""
        return self.reports[-1].title

    @property
    def claims(self) -> list[Entry]:
        """Of each claim the entry with the better evidence, in the order of the largest scale."""
        return [headline(entries) for entries in self._by_claim.values()]

    def page(self, claim: Entry, base: Path) -> str:
        """The page with a claim's better evidence, relative to ``base``."""
        return next(each for each in self.reports if each.scale == claim["scale"]).page(base)

    def card(self, claim: Entry, base: Path) -> str:
        """The card with a claim's better evidence, relative to ``base``."""
        return f"{self.page(claim, base)}#{claim['id']}"

    def row(self, claim: Entry, base: Path) -> list[str]:
        """Cells of a claim; the last says where its verdict is from, and which scales disagree or leave it open."""
        entries = self._by_claim[claim["id"]]
        against = (f"{entry['scale']} disagrees: {entry['verdict']}" for entry in entries if disagree([claim, entry]))
        undecided = (f"{entry['scale']}, on {entry['evidence']}: inconclusive" for entry in left_open(claim, entries))
        return [*verdicts.claim_row(claim, self.page(claim, base)), "; ".join([claim["scale"], *against, *undecided])]

    def links(self, base: Path) -> str:
        """The scales of its reports, each a link."""
        return ", ".join(link(report.scale, report.page(base)) for report in self.reports)

    @cached_property
    def _by_claim(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for report in reversed(self.reports):
            for name, entry in report.claims.items():
                found[name].append(entry)
        return found


def group_by_paper(reports: Sequence[Report]) -> list[Replicated]:
    """The reports of each paper together, from the smallest scale; that of the smoke scale only where it is alone."""
    papers: dict[str, list[Report]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: SCALES.index(report.scale)):
        papers[report.paper].append(report)
    order = dict.fromkeys(report.paper for report in reports)
    whole = ([report for report in papers[paper] if report.scale != TESTS] or papers[paper] for paper in order)
    return [Replicated(own) for own in whole]


def summarize(reports_dir: Path, readmes: list[Path], papers: Mapping[str, Paper] | None = None) -> None:
    """Write the main page of the reports folder, and the verdict part of READMEs.

    Everywhere the better evidence of a paper's reports is shown. A README in ``replications/<paper>/`` gets the
    verdicts of that paper's claims. Any other README gets the number of each verdict for all papers. The smoke scale
    tests the pipeline only, so only the reports folder lists it, and only of a paper that has no other report.

    Args:
        reports_dir: the folder of all reports.
        readmes: that are changed.
        papers: folder's name to the facts of a paper, in the order of the page.

    Raises:
        ReplicationError: a report cannot be read, or a README lacks the two marker lines.
    """
    papers = papers or {}
    order = {name: place for place, name in enumerate(papers)}
    folders = [path.parent for path in sorted(reports_dir.glob("*/*/claims.json"))]
    found = [Report(folder) for folder in folders if folder.name.isidentifier()]  # a killed one leaves <paper>.partial
    reports = sorted(found, key=lambda report: order.get(report.paper, len(order)))
    shutil.rmtree(reports_dir / "figures", ignore_errors=True)  # some may no longer be shown
    write_page(main_page(group_by_paper(reports), reports_dir, papers), reports_dir, title=TITLE)
    shown = group_by_paper([report for report in reports if report.scale != TESTS])
    for readme in readmes:
        if readme.parent.parent.name == "replications":
            own = [paper for paper in shown if paper.reports[0].paper == readme.parent.name]
            part = [block for paper in own for block in _of_paper(paper, readme.parent)]
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(part or [doc.Paragraph(NOTHING)], "md", title="", folder=readme.parent))


def main_page(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[doc.Block]:
    """What the main page shows: what holds, of all papers, and where to read on.

    Args:
        papers: with reports.
        folder: where the page will lie.
        facts: folder's name to the facts of a paper.
    """
    if not papers:
        return [doc.Heading(TITLE, level=1), doc.Paragraph(NOTHING)]
    claims = [claim for paper in papers for claim in paper.claims]
    count = f"{number_of(len(claims), 'claim')} of {number_of(len(papers), 'paper')} on attention"
    compare = "Directions of effects compare with the papers', scores do not."
    rows = [[paper.title, *paper.row(claim, folder)] for paper in papers for claim in paper.claims]
    return [
        doc.Heading(TITLE, level=1),
        doc.Paragraph(f"{count}. {verdicts.counts_by_sort(claims)}"),
        doc.Paragraph(f"{decided_by(claims)} {compare}".lstrip()),
        doc.Grid([
            (paper.title, paper.page(paper.claims[0], folder), [_cell(paper, claim, folder) for claim in paper.claims])
            for paper in papers
        ]),
        doc.Bullets(paragraphs("meanings")),
        doc.Heading("All claims"),
        doc.Table(("Paper", *COLUMNS, "Scale"), rows, f"l{ALIGN}l", True, ("Paper", "Verdict", "Evidence", "Scale")),
        *beside_the_papers(papers, folder),
        *across_papers([report for paper in papers for report in paper.reports], folder),
        *_timeline(papers, folder, facts),
        doc.Heading("How a verdict comes about"),
        doc.Bullets(paragraphs("rules")),
        *_made(claims),
    ]  # fmt: skip


def _cell(paper: Replicated, claim: Entry, folder: Path) -> doc.Cell:
    return doc.Cell(claim["id"], claim["verdict"], verdicts.in_short(claim), paper.card(claim, folder))


def decided_by(claims: Sequence[Entry]) -> str:
    """A sentence on how many claims are decided by which kind of evidence; empty where none is."""
    leads = [(claim["lead"] or {}, claim["evidence"]) for claim in claims if claim["verdict"] in SIDES]
    decided = Counter("identity" if lead.get("kind") == "exact" else evidence for lead, evidence in leads)
    said = []
    for how, kinds in BASES.items():
        if found := [f"{decided[kind]} by {verdicts.KINDS[kind]}" for kind in kinds if decided[kind]]:
            said.append(f"{', '.join(found)}, {how}")
    return f"Decided: {'; '.join(said)}." if said else ""


def beside_the_papers(papers: Sequence[Replicated], folder: Path) -> list[doc.Block]:
    """A forest plot and a table of the claims whose effect has the unit of the paper's; [] where there are none.

    Args:
        papers: with reports.
        folder: of the page; its ``figures`` get the plot.
    """
    rows, effects, path = list[list[str]](), list[Effect](), folder / "figures" / "beside.png"
    for paper, claim in ((each, claim) for each in papers for claim in each.claims):
        lead = claim["lead"] or {}
        if (theirs := lead.get("paper")) is None:
            continue
        cells = (
            verdicts.verdict_text(claim),
            verdicts.effect_text(lead),
            verdicts.with_unit(amount(lead, theirs), lead),
        )
        rows.append([link(claim["id"], paper.card(claim, folder)), *cells])
        unit = log if lead["scale"] == "log" else float
        if lead["effect"] is not None and (size := unit(theirs)):
            value, *ends = (unit(number) / size for number in (lead["effect"], *(lead["interval"] or ())))
            effects.append(Effect(claim["id"], claim["verdict"], value, tuple(ends)))
    if not rows:
        return []
    blocks: list[doc.Block] = [doc.Heading("Effects beside the papers' own"), doc.Paragraph(say("beside"))]
    if effects:
        draw_forest(effects, path, "Effect, as a share of the paper's")
        seen = f"Effects of {', '.join(each.claim for each in effects)} as shares of the papers' effects"
        blocks.append(doc.Figure(path, say("shares"), seen))
    return [*blocks, doc.Table(("Claim", "Verdict", "Effect here, 95 % interval", "In the paper"), rows, "llrr")]


def across_papers(reports: Sequence[Report], folder: Path) -> list[doc.Block]:
    """A table for every data set that models of several papers share; a model that papers lend stands once.

    Args:
        reports: of all papers and scales.
        folder: where the page will lie.

    Raises:
        ReplicationError: a file cannot be read.
    """
    groups: dict[tuple[str, str], dict[str, Model]] = defaultdict(dict)
    for report in reports:
        for entry in _models(report.folder / "runs.json"):
            if entry["scores"]:
                groups[report.scale, entry["data"]].setdefault(entry["weights"], (report, entry))
    blocks: list[doc.Block] = []
    for (scale, _), found in sorted(groups.items(), key=lambda group: -SCALES.index(group[0][0])):  # the best evidence
        models = [*found.values()]
        if len({report.paper for report, _ in models}) > 1:
            counted = any(entry["operations"] for _, entry in models)
            marked = any(_is_below(entry) for _, entry in models)
            dataset = models[0][1]["dataset"]
            said = say("corpus", dataset=dataset, scale=scale, counted=counted, marked=marked)
            blocks += [doc.Paragraph(said), _table(models, folder, counted)]
    return [doc.Heading("One corpus, several papers"), *blocks] if blocks else []


def _models(path: Path) -> list[dict[str, Any]]:
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its report stage again.") from None
    return entries


def _table(models: Sequence[Model], folder: Path, counted: bool) -> doc.Table:
    models = sorted(models, key=lambda each: -each[1]["scores"].get(SCORES[0], [0.0])[0])
    entries = [entry for _, entry in models]
    named = [
        f"{entry['name']}, {link(report.title, report.page(folder))} {code(entry['variant'])}"
        + f" {strong('below its floor')}" * _is_below(entry)
        for report, entry in models
    ]
    columns = [("Model", "l", named)]
    for name in SCORES:
        title = f"{measure(name).title.format(token='token')}{ARROWS[measure(name).better]}"
        columns.append((title, "r", _scores(entries, name)))
    columns.append(("Parameters", "r", [plain(entry["parameters"], 0) for entry in entries]))
    if counted:
        columns.append(("Operations", "r", [number(entry["operations"]) for entry in entries]))
        columns.append(("BLEU / 10¹⁵", "r", [_per_operation(entry) for entry in entries]))
    columns.append(("Core minutes", "r", [plain(entry["processor_seconds"] / 60.0, 1) for entry in entries]))
    columns.append(("Seeds", "r", [plain(entry["seeds"], 0) for entry in entries]))
    return doc.table_of(*columns)


def _per_operation(entry: Mapping[str, Any]) -> str:
    operations, bleu = entry["operations"], entry["scores"].get("bleu")
    return plain(bleu[0] / operations * 1e15, 0) if operations and bleu else "–"


def _is_below(entry: Mapping[str, Any]) -> bool:
    """Whether most seeds of a model have not reached the floor; entries of older reports do not know."""
    return 2 * int(entry.get("below", 0)) > int(entry["seeds"])


def _scores(entries: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Each model's score with its interval, the best one bold."""
    of, found = measure(name), [entry["scores"].get(name) for entry in entries]
    best = (min if of.better == "lower" else max)((each[0] for each in found if each), default=None)
    digits, cells = 1 if of.most == 100.0 else 2, []
    for value, low, high in (each or (None, 0.0, 0.0) for each in found):
        low, high = max(low, LEAST.get(name, 0.0)), min(high, of.most)  # Student's intervals know no bounds
        shown = plain(value, digits)
        if value is not None and low < high:  # one seed of a measure that no examples carry has no spread
            shown = doc.with_ends(shown, (plain(low, digits), plain(high, digits)))
        cells.append(strong(shown) if value is not None and value == best else shown)
    return cells


def _timeline(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[doc.Block]:
    """What each paper adds to attention, in the order of their years."""
    known = [(facts[name], each) for each in papers if (name := each.reports[0].paper) in facts]
    items = [
        f"{strong(str(paper.year))} {link(paper.short, reported.page(reported.claims[0], folder))}: {paper.mechanism}"
        for paper, reported in sorted(known, key=lambda pair: pair[0].year)
        if paper.mechanism
    ]
    return [doc.Heading("Attention, year by year"), doc.Bullets(items)] if items else []


def _made(claims: Sequence[Entry]) -> list[doc.Block]:
    """Which code the runs behind all verdicts had, and when the last of them ended."""
    commits = sorted({hash_text(commit) for claim in claims for commit in claim.get("commits", ())})
    ended = max((claim["ended"] for claim in claims if claim.get("ended")), default="")
    said = doc.Paragraph(say("made", commits=commits, ended=ended))
    return [doc.Heading("Which runs these are"), said] if commits else []


def count_blocks(papers: Sequence[Replicated], base: Path) -> list[doc.Block]:
    """How often there is each verdict, a row for each paper with links relative to ``base``; [] without reports.

    Below, what decides, and the claims that did not hold, each a link to its card.
    """
    if not papers:
        return []
    rows = []
    for paper in papers:
        count = Counter(claim["verdict"] for claim in paper.claims)
        rows.append([paper.title, paper.links(base), *(plain(count[verdict], 0) for verdict in VERDICTS)])
    table = doc.Table(("Paper", "Reports", *(v.capitalize() for v in VERDICTS)), rows, "ll" + "r" * len(VERDICTS))
    basis = decided_by([claim for paper in papers for claim in paper.claims])
    counted = BETTER if any(len(paper.reports) > 1 for paper in papers) else ""
    against = [
        f"{link(claim['id'], paper.card(claim, base))}: {verdicts.in_short(claim)} ({paper.title})"
        for paper in papers
        for claim in paper.claims
        if SIDES.get(claim["verdict"]) == "against"
    ]
    sorts = doc.Paragraph(verdicts.counts_by_sort(claim for paper in papers for claim in paper.claims))
    blocks: list[doc.Block] = [sorts, table, *(doc.Paragraph(said) for said in (basis, counted) if said)]
    return [*blocks, doc.Paragraph("These claims did not hold:"), doc.Bullets(against)] if against else blocks


def _of_paper(paper: Replicated, base: Path) -> list[doc.Block]:
    """A table of all claims of a paper, after links relative to ``base``."""
    rows = [paper.row(claim, base) for claim in paper.claims]
    at = "reports at these scales" if len(paper.reports) > 1 else "report at this scale"
    return [
        doc.Paragraph(f"{paper.title}, {at}: {paper.links(base)}."),
        doc.Table((*COLUMNS, "Scale"), rows, f"{ALIGN}l", stacked=True),
    ]


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    partial = readme.with_name(f".{readme.name}.partial")
    partial.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
    partial.replace(readme)
