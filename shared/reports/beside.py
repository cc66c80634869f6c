"""Our effects beside the papers' own, where both are of one quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

from shared.reports.document import Block, Figure, Heading, Link, Paragraph, Table, Text
from shared.reports.forest import Effect, forest
from shared.reports.replicated import Replicated
from shared.reports.verdicts import amount, effect_text, verdict_text, with_unit

CAPTION = (
    "Our effects and their 95 % intervals as shares of the paper's effect: at 1 it is the paper's, at 0 there is none, "
    "and left of 0 it is the opposite. Ratios are compared as logarithms."
)

Entry = Mapping[str, Any]


def beside_the_papers(papers: Sequence[Replicated], folder: Path) -> list[Block]:
    """A forest plot and a table of the claims whose effect has the unit of the paper's; [] where there are none.

    Args:
        papers: with reports.
        folder: of the page; its ``figures`` get the plot.
    """
    known = [
        (paper, claim)
        for paper in papers
        for claim in paper.claims
        if claim["lead"] is not None and claim["lead"].get("paper") is not None
    ]
    if not known:
        return []
    rows: list[list[Text]] = [
        [
            Link(claim["id"], f"{paper.page(claim, folder)}#{claim['id']}"),
            verdict_text(claim),
            effect_text(claim["lead"]),
            with_unit(amount(claim["lead"], claim["lead"]["paper"]), claim["lead"]),
        ]
        for paper, claim in known
    ]
    path = folder / "figures" / "beside.png"
    drawn = [claim for _, claim in known if claim["lead"]["effect"] is not None and _size(claim["lead"])]
    if drawn:
        forest([_share(claim) for claim in drawn], path, "Effect, as a share of the paper's")
    seen = f"Effects of {', '.join(claim['id'] for claim in drawn)} as shares of the papers' effects"
    return [
        Heading("Effects beside the papers' own"),
        Paragraph(
            "Where the paper's effect has the same unit. Data and models differ; an inconclusive effect says nothing "
            "about the paper's."
        ),
        *([Figure(path, CAPTION, seen)] if drawn else ()),
        Table(("Claim", "Verdict", "Effect here, 95 % interval", "In the paper"), rows, "llrr"),
    ]


def share(lead: Entry, value: float) -> float:
    """A value of our effect in units of the paper's, which is not 0."""
    return (log(value) if lead["scale"] == "log" else value) / _size(lead)


def _size(lead: Entry) -> float:
    """The paper's effect; of a ratio its logarithm."""
    return log(lead["paper"]) if lead["scale"] == "log" else float(lead["paper"])


def _share(claim: Entry) -> Effect:
    lead = claim["lead"]
    ends = None if lead["interval"] is None else (share(lead, lead["interval"][0]), share(lead, lead["interval"][1]))
    return Effect(claim["id"], claim["verdict"], share(lead, lead["effect"]), ends)
