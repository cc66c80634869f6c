"""The main page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.competence import best_value
from shared.claims.outcomes import VERDICTS
from shared.claims.rules import SCALES, TESTS
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.records import read_json
from shared.reports import annotated, verdicts
from shared.reports import document as doc
from shared.reports.document import code, hash_text, link, number, plain, strong
from shared.reports.explorer import Explored
from shared.reports.figures import Effect, draw_forest
from shared.reports.joined import Replicated, decided_by, failed, group_by_paper, relative, totals, write_paper
from shared.reports.page import DATA, Place, Target, fill, read_part, render, write_page
from shared.reports.paper import Paper
from shared.reports.runs import ARROWS, SCORES
from shared.reports.verdicts import ALIGN, COLUMNS, Entry, Report, amount, paragraphs, say

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
TITLE = "Attention, replicated"
NOTHING = "No report has been made yet."
KINDS = ("alignment", "query", "queries", "dimensionality", "multiplicity", "levels", "representations")
"""What says of which kind an attention is, beside its score."""
DOCUMENTS = {
    "How claims are decided": "docs/EVIDENCE.md", "The project": "README.md", "Licence": "LICENSE",
    "Cite it": "CITATION.cff",
}  # fmt: skip
Model = tuple[Report, Mapping[str, Any]]
"""A report, and the entry of a model in its runs.json."""


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
    reports = _reports(reports_dir, papers)
    write_papers(reports_dir, papers)
    shutil.rmtree(reports_dir / "figures", ignore_errors=True)  # some may no longer be shown
    found = group_by_paper(reports)
    place = Place(more=_documents(reports_dir, reports_dir), contents=False)
    write_page(main_page(found, reports_dir, papers), reports_dir, title=TITLE, place=place)
    write_data(found, reports_dir)
    shown = group_by_paper([report for report in reports if report.scale != TESTS])
    for readme in readmes:
        if readme.parent.parent.name == "replications":
            own = [paper for paper in shown if paper.reports[0].paper == readme.parent.name]
            part = [block for paper in own for block in _of_paper(paper, readme.parent)]
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(part or [doc.Paragraph(NOTHING)], "md", title="", folder=readme.parent))


def write_papers(reports: Path, papers: Mapping[str, Paper], only: str | None = None) -> None:
    """Write the page of every paper that has a report, or of one, in the order of ``papers``.

    Raises:
        ReplicationError: a report cannot be read.
    """
    shown = [each for each in group_by_paper(_reports(reports, papers)) if each.reports[0].paper in papers]
    for before, each, after in zip([None, *shown], shown, [*shown[1:], None], strict=False):
        name = each.reports[0].paper
        if only in (None, name):
            near = [None if one is None else (one.title, one.page(each.folder)) for one in (before, after)]
            home = reports.parent / "replications" / name
            notes = doc.relative(home / "README.md", each.folder)
            links = [("The model, line by line", annotated.NAME), ("Notes on this replication", notes)]
            links += _documents(reports, each.folder)
            place = Place((("All papers", "../README.md"),), near[0], near[1], links)
            write_paper(each, papers[name], place)
            _write_model(each, papers[name], home / "model.py", links)


def _write_model(paper: Replicated, facts: Paper, source: Path, links: Sequence[tuple[str, str]]) -> None:
    """Write the page of a paper's model, whose parts lead to the claims that are about them."""
    if not source.is_file():
        return
    of_part: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for claim in paper.claims:
        for part in facts.code.get(claim["id"], ()):
            of_part[part].append((f"{verdicts.in_short(claim)} ({claim['verdict']})", f"index.html#{claim['id']}"))
    blocks = annotated.model_page(source, source.parents[2] / "tests", of_part, paper.folder)
    if facts.diagram:
        blocks.insert(2, facts.diagram.drawing())
    trail = (("All papers", "../README.md"), (facts.short, "README.md"))
    place = Place(trail, more=links, contents=False)
    text = render(blocks, "html", title="The model", folder=paper.folder, place=place)
    (paper.folder / annotated.NAME).write_text(text, encoding="utf-8")


def _documents(reports: Path, base: Path) -> list[Target]:
    """What every page leads to, beside its own."""
    return [(words, doc.relative(reports.parent / path, base)) for words, path in DOCUMENTS.items()]


def _reports(folder: Path, papers: Mapping[str, Paper]) -> list[Report]:
    """All reports, in the order of the papers."""
    order = {name: place for place, name in enumerate(papers)}
    folders = [path.parent for path in sorted(folder.glob("*/*/claims.json"))]
    found = [Report(folder) for folder in folders if folder.name.isidentifier()]  # a killed one leaves <paper>.partial
    return sorted(found, key=lambda report: order.get(report.paper, len(order)))


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
    rows = [[paper.title, *paper.row(claim, folder)] for paper in papers for claim in paper.claims]
    return [
        doc.Heading(TITLE, level=1),
        doc.Paragraph(say("what_this_is", count=len(papers), totals=totals(claims))),
        doc.Paragraph(f"{verdicts.counts_by_sort(claims)} {say('sorts')}"),
        doc.Columns([("", [_grid(papers, folder, facts)]), ("", _aside(papers, folder))], first=2.2),
        *beside_the_papers(papers, folder),
        *across_papers([report for paper in papers for report in paper.reports], folder),
        *attentions(facts, folder),
        doc.Details("How a verdict comes about", [doc.Bullets([*paragraphs("meanings"), *paragraphs("rules")])], True),
        doc.Heading("All claims"),
        doc.Paragraph(f"{decided_by(claims)} {say('limits')}".lstrip()),
        doc.Table(("Paper", *COLUMNS, "Scale"), rows, f"l{ALIGN}l", ("Paper", "Verdict", "Evidence", "Scale")),
        doc.Paragraph(say("downloads")),
        *_made(claims),
    ]


def _grid(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> doc.Grid:
    rows = []
    for paper in papers:
        fact = facts.get(paper.reports[0].paper)
        title, said = (paper.title, "") if fact is None else (fact.title, fact.mechanism or "")
        tiles = [
            doc.Tile(claim["id"], claim["verdict"], verdicts.in_short(claim), paper.card(claim, folder))
            for claim in paper.claims
        ]
        rows.append(doc.GridRow(paper.title, title, said, paper.page(folder), tiles))
    return doc.Grid(rows)


def _aside(papers: Sequence[Replicated], folder: Path) -> list[doc.Block]:
    """The claims that did not hold, how to run the project, and a picture of attention."""
    folders = (report.folder for paper in papers for report in paper.reports)
    parts = (read_part(folder) for folder in folders if (folder / DATA).exists())
    exhibits = (block for part in parts for card in part.cards.values() for block in card.exhibits)
    picture = next((block for block in exhibits if isinstance(block, Explored)), None)
    shown = [doc.Figure(picture.path, picture.caption, picture.seen)] if picture else []
    run: list[doc.Block] = [doc.Paragraph(say("run_it")), doc.CodeBlock("python3.11 replicate.py")]
    return [*_against(papers, folder), *run, *shown]


def _against(papers: Sequence[Replicated], base: Path) -> list[doc.Block]:
    """The claims that did not hold, each a link to its card."""
    against = [f"{paper.title}: {said}" for paper in papers for said in failed(paper, base)]
    return [doc.Paragraph(strong("These claims did not hold:")), doc.Bullets(against)] if against else []


def beside_the_papers(papers: Sequence[Replicated], folder: Path) -> list[doc.Details]:
    """A section with a forest plot and a table of the claims whose effect has the unit of the paper's; [] without any.

    Args:
        papers: with reports.
        folder: of the page; its ``figures`` get the plot.
    """
    rows, effects, path = list[list[str]](), list[Effect](), folder / "figures" / "beside.png"
    for paper, claim in ((each, claim) for each in papers for claim in each.claims):
        lead = claim["lead"] or {}
        if (theirs := lead.get("paper")) is None:
            continue
        named, in_paper = link(verdicts.in_short(claim), paper.card(claim, folder)), amount(lead, theirs)
        found = verdicts.verdict_text(claim), verdicts.effect_text(lead)
        rows.append([named, *found, verdicts.with_unit(in_paper, lead)])
        effects += filter(None, [relative(claim, "paper")])
    if not rows:
        return []
    blocks: list[doc.Block] = [doc.Paragraph(say("beside"))]
    if effects:
        draw_forest(effects, path, "Effect, as a share of the paper's")
        seen = "; ".join(f"{each.claim}: {each.value:.2g} of the paper's effect" for each in effects)
        blocks.append(doc.Figure(path, say("shares"), seen))
    blocks.append(doc.Table(("Claim", "Verdict", "Effect here, 95 % interval", "In the paper"), rows, "llrr"))
    return [doc.Details("Effects beside the papers' own", blocks, section=True)]


def attentions(facts: Mapping[str, Paper], folder: Path) -> list[doc.Details]:
    """A section with all attentions by their kind, each with a link to the class that it is; [] where none is said."""
    rows = []
    for short, each in ((paper.short, each) for paper in facts.values() for each in paper.attentions):
        source, _, defined = each.code.partition(":")
        place = link(defined, doc.relative(folder.parent / source, folder))
        kinds = (getattr(each, kind) for kind in KINDS)
        rows.append([short, each.name, place, ", ".join(each.scoring), *kinds])
    heads = ("Paper", "Attention", "Class", "Score", *(key.capitalize() for key in KINDS))
    table = doc.Table(heads, rows, "l" * len(heads), filters=("Score", "Alignment", "Query", "Queries"))
    return [doc.Details("Attentions by kind", [doc.Paragraph(say("kinds")), table], section=True)] if rows else []


def across_papers(reports: Sequence[Report], folder: Path) -> list[doc.Details]:
    """A section with a table for every data set that models of several papers share; [] without any.

    A model that papers lend stands once.

    Args:
        reports: of all papers and scales.
        folder: where the page will lie.

    Raises:
        ReplicationError: a file cannot be read.
    """
    groups: dict[tuple[str, str], dict[str, Model]] = defaultdict(dict)
    for report in reports:
        path = report.folder / "runs.json"
        for entry in read_json(path, "run its report stage again", list) if path.exists() else ():
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
    return [doc.Details("One corpus, several papers", blocks, section=True)] if blocks else []


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
    least, most = best_value(name, up=False), best_value(name, up=True)
    best = (min if of.better == "lower" else max)((each[0] for each in found if each), default=None)
    digits, cells = 1 if most == 100.0 else 2, []
    for value, low, high in (each or (None, 0.0, 0.0) for each in found):
        low, high = max(low, least), min(high, most)  # Student's intervals know no bounds
        shown = plain(value, digits)
        if value is not None and low < high:  # one seed of a measure that no examples carry has no spread
            shown = doc.with_ends(shown, (plain(low, digits), plain(high, digits)))
        cells.append(strong(shown) if value is not None and value == best else shown)
    return cells


def _made(claims: Sequence[Entry]) -> list[doc.Block]:
    """Which code the runs behind all verdicts had, and when the last of them ended."""
    commits = sorted({hash_text(commit) for claim in claims for commit in claim.get("commits", ())})
    ended = max((claim["ended"] for claim in claims if claim.get("ended")), default="")
    said = doc.Paragraph(say("made", commits=commits, ended=ended))
    return [doc.Details("Which runs these are", [said], section=True)] if commits else []


def count_blocks(papers: Sequence[Replicated], base: Path) -> list[doc.Block]:
    """How often there is each verdict, a row for each paper with links relative to ``base``; [] without reports.

    Below, what decides, and the claims that did not hold, each a link to its card.
    """
    if not papers:
        return []
    rows = []
    for paper in papers:
        count = Counter(claim["verdict"] for claim in paper.claims)
        rows.append([link(paper.title, paper.page(base)), *(plain(count[verdict], 0) for verdict in VERDICTS)])
    table = doc.Table(("Paper", *(v.capitalize() for v in VERDICTS)), rows, "l" + "r" * len(VERDICTS))
    basis = decided_by([claim for paper in papers for claim in paper.claims])
    sorts = verdicts.counts_by_sort(claim for paper in papers for claim in paper.claims)
    said: list[doc.Block] = [doc.Paragraph(each) for each in (sorts, basis) if each]
    return [table, *said, *_against(papers, base)]


def _of_paper(paper: Replicated, base: Path) -> list[doc.Block]:
    """A table of all claims of a paper, after links relative to ``base``."""
    rows = [paper.row(claim, base) for claim in paper.claims]
    scales = ", ".join(report.scale for report in paper.reports)
    return [
        doc.Paragraph(f"{link('The page of this paper', paper.page(base))} has its claims at all scales ({scales})."),
        doc.Table((*COLUMNS, "Scale"), rows, f"{ALIGN}l"),
    ]


FIELDS = {
    "paper": "what the paper is cited as", "claim": "id of the claim", "statement": "the claim",
    "in_short": "the claim in a few words", "verdict": "on the claim, by the better evidence",
    "how": "kind of contradicted or inconclusive", "sort": "experiment, demonstration or identity",
    "confirmed": "by further seeds", "ours": "whether it is no claim of the paper", "scale": "of the runs that decide",
    "evidence": "their data", "seeds": "how many decide",
    "effect": "measured, above 0 (above 1 of a ratio) where it agrees with the claim", "base": "counted from it",
    "low": "lower end of its 95 % interval", "high": "upper end", "unit": "of the effect; times of a ratio",
    "matters_from": "the smallest effect that matters", "effect_in_paper": "in the same unit, where there is one",
    "page": "the card of the claim",
}  # fmt: skip
"""Columns of claims.csv, and fields of claims.json, each with what it is."""


def write_data(papers: Sequence[Replicated], folder: Path) -> None:
    """Write the verdicts on all claims as ``claims.csv`` and ``claims.json``, and the project for BibTeX."""
    rows = []
    for paper, claim in ((each, claim) for each in papers for claim in each.claims):
        lead = claim["lead"] or {}
        low, high = lead.get("interval") or (None, None)
        values = (
            paper.title, claim["id"], claim["statement"], claim.get("in_short"), claim["verdict"], claim["how"],
            claim["sort"], claim["confirmed"], claim["ours"], claim["scale"], claim["evidence"],
            len(lead.get("seeds", ())) + lead.get("pooled", 0), lead.get("effect"), lead.get("base"), low, high,
            "times" if lead.get("scale") == "log" else lead.get("unit"), lead.get("relevant"), lead.get("paper"),
            paper.card(claim, folder),
        )  # fmt: skip
        rows.append(dict(zip(FIELDS, values, strict=True)))
    with (folder / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = json.dumps({"fields": FIELDS, "claims": rows}, indent=1, ensure_ascii=False)
    (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    (folder / "attention_replicated.bib").write_text(fill("project.bib.j2") + "\n", encoding="utf-8")


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    partial = readme.with_name(f".{readme.name}.partial")  # the rest was written by hand, and is nowhere else
    partial.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
    partial.replace(readme)
