"""The page of a paper, joined from what its reports at all scales say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from pathlib import Path

from shared.claims.outcomes import SIDES, better, headline, left_open
from shared.claims.rules import SCALES, TESTS
from shared.reports import document as doc
from shared.reports import naming, verdicts
from shared.reports.document import link, strong
from shared.reports.explorer import Explored, gather_maps
from shared.reports.figures import LINEAR, Effect, draw_forest
from shared.reports.page import Place, ScalePart, read_part, write_page
from shared.reports.paper import Paper
from shared.reports.verdicts import Entry, Report, paragraphs, say, scale_name

WARNING = "⚠"


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
    def folder(self) -> Path:
        """Of its page."""
        return self.reports[0].folder.parents[1] / self.reports[0].paper

    @property
    def claims(self) -> list[Entry]:
        """Of each claim the entry with the better evidence, in the order of the largest scale; see :func:`headline`."""
        return [headline(entries) for entries in self.by_claim.values()]

    def page(self, base: Path) -> str:
        """Its page, relative to ``base``."""
        return doc.relative(self.folder / "README.md", base)

    def card(self, claim: Entry, base: Path) -> str:
        """The card of a claim, relative to ``base``."""
        return f"{self.page(base)}#{claim['id']}"

    def row(self, claim: Entry, base: Path) -> list[str]:
        """Cells of a claim; the last says where its verdict is from, and which scales disagree or leave it open."""
        return [*verdicts.claim_row(claim, self.page(base)), "; ".join([claim["scale"], *self.others(claim)])]

    def others(self, claim: Entry) -> list[str]:
        """What is to be said of the other scales: which of them disagree, or leave a claim open on better data."""
        entries = self.by_claim[claim["id"]]
        undecided = left_open(better(entries), entries)
        return paragraphs("others", against=claim.get("against", ()), entries=entries, undecided=undecided)

    def tested(self, claim: str) -> list[Entry]:
        """The entries of a claim at the scales that have tested it, from the better evidence."""
        entries = [entry for entry in self.by_claim[claim] if entry["lead"] is not None]
        return sorted(entries, key=lambda entry: entry is not better(self.by_claim[claim]))

    @cached_property
    def by_claim(self) -> dict[str, list[Entry]]:
        """Claim to its entries, from the largest scale."""
        found: dict[str, list[Entry]] = defaultdict(list)
        with naming.use_names(naming.load_names(Path("replications", self.folder.name))):
            for report in reversed(self.reports):
                for name, entry in report.claims.items():
                    found[name].append(naming.in_words(entry))
        return found


def group_by_paper(reports: Sequence[Report]) -> list[Replicated]:
    """The reports of each paper together, from the smallest scale; that of the smoke scale only where it is alone."""
    papers: dict[str, list[Report]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: SCALES.index(report.scale)):
        papers[report.paper].append(report)
    order = dict.fromkeys(report.paper for report in reports)
    whole = ([report for report in papers[paper] if report.scale != TESTS] or papers[paper] for paper in order)
    return [Replicated(own) for own in whole]


def write_paper(paper: Replicated, facts: Paper, place: Place) -> None:
    """Write the page of a paper, and its figure; Markdown leads to the scales' own pages for what HTML has folded.

    Raises:
        ReplicationError: a file of a report cannot be read.
    """
    parts = {report.scale: read_part(report.folder) for report in paper.reports}
    said: list[doc.Block] = [*([doc.Paragraph(facts.mechanism)] if facts.mechanism else ()), *_answer(paper, parts)]
    if facts.diagram:
        said = [doc.Columns([("", said), ("", [facts.diagram.drawing()])], first=1.6)]
    top = [
        doc.Heading(f"{facts.title}, replicated", level=1),
        doc.Paragraph(say("citation", paper=facts)),
        *said,
        *_verdicts(paper),
        *_effects(paper),
        doc.Heading("Claim by claim"),
        *(_card(paper, claim, parts, facts.code) for claim in paper.claims),
        *_explorer(parts),
    ]
    own = doc.Bullets([say("whole", report=each, page=each.page(paper.folder)) for each in paper.reports])
    whole = [*top, doc.Heading("Everything else"), own]
    write_page(whole, paper.folder, title=facts.short, place=place, html=[*top, *_folded(paper, parts)])


def decided_by(claims: Sequence[Entry]) -> str:
    """On how many claims are decided by which kind of evidence, and confirmed; empty where none is."""
    leads = [(claim["lead"] or {}, claim["evidence"]) for claim in claims if claim["verdict"] in SIDES]
    decided = Counter("identity" if lead.get("kind") == "exact" else evidence for lead, evidence in leads)
    return say("decided_by", decided=decided, confirmed=Counter(claim.get("confirmed") for claim in claims))


def totals(claims: Sequence[Entry]) -> str:
    """How many claims hold, hold in part, do not hold, and are open, in words."""
    whole = {**SIDES, "in part": "part"}  # where a part is open, the claim does not hold
    sides = Counter(whole.get(claim["verdict"], claim["verdict"]) for claim in claims)
    return say("totals", count=len(claims), sides=sides)


def failed(paper: Replicated, base: Path) -> list[str]:
    """The claims of a paper that did not hold, in words, with what was found."""
    against = [claim for claim in paper.claims if SIDES.get(claim["verdict"]) == "against"]
    return [say("failed", entry=each, card=paper.card(each, base), others=paper.others(each)) for each in against]


def _answer(paper: Replicated, parts: Mapping[str, ScalePart]) -> list[doc.Block]:
    """The total in a sentence, warnings, and what did not hold and what is open in words."""
    base, claims = paper.folder, paper.claims
    sorts = verdicts.counts_by_sort(claims)
    data = {report.scale: {entry["evidence"] for entry in report.claims.values()} for report in paper.reports}
    run = say("run_paper", paper=paper.folder.name, data=data)
    blocks: list[doc.Block] = [doc.Paragraph(f"{strong(totals(claims))} {sorts} {say('limits')}"), doc.Paragraph(run)]
    for scale, part in parts.items():
        said = [each for each in part.standing if isinstance(each, doc.Paragraph) and WARNING in each.text]
        blocks += [replace(each, text=f"{scale}: {each.text}") for each in said]
    if against := failed(paper, base):
        blocks += [doc.Heading("What did not hold"), doc.Bullets(against)]
    if open_ones := [claim for claim in claims if claim["verdict"] not in SIDES]:
        told = [say("open_claim", entry=each, others=paper.others(each)) for each in open_ones]
        blocks += [doc.Heading("What is open"), doc.Bullets(told)]
    return blocks


def _verdicts(paper: Replicated) -> list[doc.Block]:
    """A table of all verdicts, where scales disagree, and the rules."""
    scales = [report.scale for report in paper.reports]
    rows = []
    for claim in paper.claims:
        tested = {entry["scale"]: entry for entry in paper.tested(claim["id"])}
        at = {scale: f"{verdicts.verdict_text(each)} {verdicts.found_text(each)}" for scale, each in tested.items()}
        cells = [at.get(scale, "–") for scale in scales]
        rows.append([link(claim["id"], f"#{claim['id']}"), doc.sentence(verdicts.in_short(claim)), *cells])
    columns = ("Claim", "What was tested", *(f"{scale.capitalize()} scale" for scale in scales))
    told = list(filter(None, (verdicts.disagreement(entries) for entries in paper.by_claim.values())))
    return [
        doc.Heading("All verdicts"),
        doc.Table(columns, rows, "lt" + "l" * len(scales)),
        *([doc.Bullets(told)] if told else []),
        doc.Details("How a verdict comes about", [doc.Bullets(paragraphs("rules"))]),
    ]


def _effects(paper: Replicated) -> list[doc.Block]:
    """A figure of the effects of the better evidence, in units of the smallest that matters."""
    ratios = [ratio for entry in paper.claims if (ratio := relative(entry)) is not None]
    if not ratios:
        return []
    path = paper.folder / "figures" / "effects.png"
    draw_forest(ratios, path, "Effect, in units of the smallest that matters", far=True)
    far = any(abs(end) > LINEAR for ratio in ratios for end in (ratio.value, *ratio.interval))
    matter = sum(ratio.value >= 1.0 for ratio in ratios if not ratio.hollow)
    caption = say("effects", ratios=ratios, matter=matter, far=LINEAR if far else 0)
    figure = doc.Figure(path, caption, say("effects_seen", ratios=ratios))
    return [doc.Details("All effects, in units of the smallest that matters", [figure])]


def relative(entry: Entry, unit: str = "relevant") -> Effect | None:
    """The effect that decides in units of the smallest that matters, or of the paper's; ratios as logarithms.

    None of identities, where none is measured, and where it is nothing in this unit. In the first one an equality is
    hollow, and an effect has an interval.
    """
    lead, matters = entry["lead"] or {"effect": None}, unit == "relevant"
    if lead["effect"] is None or lead[unit] is None or (matters and lead["interval"] is None):
        return None
    size = log if lead["scale"] == "log" else float
    if not (whole := size(lead[unit])):
        return None
    effect, *ends = (size(value) / whole for value in (lead["effect"], *(lead["interval"] or ())))
    hollow = matters and lead["kind"] == "equal"
    return Effect(verdicts.in_short(entry), entry["verdict"], effect, tuple(ends), hollow)


def _card(
    paper: Replicated, claim: Entry, parts: Mapping[str, ScalePart], code: Mapping[str, Sequence[str]]
) -> doc.Card:
    """A claim with its better evidence; how it was decided, further figures and the other scales are folded."""
    name = claim["id"]
    first, *others = paper.tested(name) or [claim]
    card = parts[first["scale"]].cards[name]
    drawn: list[doc.Block] = [each for each in card.evidence if isinstance(each, doc.Figure)]
    words, exhibits = [block for block in card.evidence if block not in drawn], [*card.exhibits]
    drawn += [exhibits.pop(0)] if exhibits and isinstance(exhibits[0], doc.Figure) else []
    columns = [(_headed(first, claim), words), *[("", drawn)] * bool(drawn)]
    said: list[doc.Block] = [*card.intro, doc.Columns(columns)]
    if names := code.get(name):
        said.append(doc.Paragraph(say("parts_of_code", names=names)))
    if exhibits:
        said.append(doc.Details(say("further", blocks=exhibits), exhibits))
    if card.decided:
        said.append(doc.Details("How it was decided", card.decided))
    for entry in others:
        of, found = parts[entry["scale"]].cards[name], f"{entry['verdict']}, {verdicts.found_text(entry)}"
        title = f"At {scale_name(entry['scale'])}: {doc.SYMBOLS[entry['verdict']]} {found}"
        said.append(doc.Details(title, [*of.evidence, *of.exhibits, *of.decided]))
    return doc.Card(name, claim["verdict"], claim["how"], doc.sentence(verdicts.in_short(claim)), said)


def _headed(entry: Entry, claim: Entry) -> str:
    """What stands above a scale's evidence; its verdict where the card has another one, of all scales."""
    if entry["lead"] is None:
        return ""
    named = strong(f"At {scale_name(entry['scale'])}")
    return named if entry["verdict"] == claim["verdict"] else f"{named} {verdicts.verdict_text(entry)}"


def _explorer(parts: Mapping[str, ScalePart]) -> list[doc.Block]:
    """The one explorer of the page, of the figures of all scales."""
    shown = [(scale, each) for scale, part in parts.items() for card in part.cards.values() for each in card.exhibits]
    shown += [(scale, each) for scale, part in parts.items() for each in part.rest]
    figures = [(scale, each) for scale, each in shown if isinstance(each, Explored)]
    several = len({scale for scale, _ in figures}) > 1
    return gather_maps([_at_scale(each, scale) if several else each for scale, each in figures])


def _at_scale(figure: Explored, scale: str) -> Explored:
    return replace(figure, maps=[replace(each, choices={"Scale": scale, **each.choices}) for each in figure.maps])


def _folded(paper: Replicated, parts: Mapping[str, ScalePart]) -> list[doc.Block]:
    """The sections of all scales; what they say alike stands once."""
    sections: dict[str, dict[str, list[doc.Block]]] = defaultdict(dict)
    folders = {report.scale: report.folder for report in paper.reports}
    for scale, part in parts.items():
        title = ""
        for block in part.rest:
            if isinstance(block, doc.Heading) and block.level == 2:
                title = doc.plain_text(block.text)
                sections[title][scale] = []
            else:
                sections[title][scale].append(block)
        at = doc.relative(folders[scale], paper.folder)
        sections[title][scale].append(doc.Bullets(paragraphs("files", at=f"{at}/")))  # the last one is on files
    blocks: list[doc.Block] = []
    plans: dict[str, list[doc.Block]] = {scale: [*part.standing] for scale, part in parts.items()}
    for title, found in {**sections, "Plans, and whether the runs are of today": plans}.items():
        first, *others = found.values()
        heads = {scale: doc.Heading(f"{scale.capitalize()} scale", level=3) for scale in found}
        apart = [block for scale, each in found.items() for block in (heads[scale], *each)]
        blocks.append(doc.Details(title, first if all(each == first for each in others) else apart, section=True))
    return blocks
