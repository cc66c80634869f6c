"""What the reports of a paper at several scales say of the same claims, side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.claims.better import better, disagree
from shared.claims.outcomes import Decision
from shared.claims.scales import SCALES, TESTS
from shared.errors import ReplicationError
from shared.reports.document import (
    Block,
    Bullets,
    Code,
    Details,
    Heading,
    Inline,
    Link,
    Strong,
    Table,
    Text,
    hash_text,
    parts,
)
from shared.reports.verdicts import (
    ALIGN,
    COLUMNS,
    claim_row,
    evidence_text,
    found_text,
    rules,
    verdict_text,
)

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class OtherScale:
    """The verdicts of a paper's report at another scale, as they were when they were read.

    Attributes:
        scale: of that report.
        page: its README.md.
        claims: entries of its claims.json, by id.
    """

    scale: str
    page: Path
    claims: Mapping[str, Entry]

    @property
    def commits(self) -> list[str]:
        """Of the code that has made the runs behind its verdicts."""
        return sorted({commit for entry in self.claims.values() for commit in entry.get("commits", ())})


def other_scales(reports: Path, paper: str, scale: str) -> list[OtherScale]:
    """The other reports of a paper that there are, from the smallest scale to the largest.

    Args:
        reports: the folder of all reports.
        paper: its folder's name.
        scale: of the report that is to be written.

    Raises:
        ReplicationError: one cannot be read.
    """
    if scale == TESTS:
        return []
    folders = [reports / other / paper for other in SCALES if other not in (scale, TESTS)]
    return [
        OtherScale(folder.parent.name, folder / "README.md", {entry["id"]: entry for entry in entries})
        for folder in folders
        if (entries := claims_of(folder)) is not None
    ]


def claims_of(folder: Path) -> list[dict[str, Any]] | None:
    """As :func:`read_claims`; None where there is no report."""
    return read_claims(folder) if (folder / "claims.json").is_file() else None


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


def overview(decisions: Sequence[Decision], others: Sequence[OtherScale], folder: Path) -> list[Block]:
    """The table of verdicts, with a column for each other scale, and folded how verdicts come about.

    Args:
        decisions: of this report.
        others: of the same paper.
        folder: where the page will lie.
    """
    entries = [decision.to_json() for decision in decisions]
    columns = (*COLUMNS, *(f"At {other.scale} scale" for other in others))
    rows = [[*claim_row(entry), *(cell(other, entry["id"]) for other in others)] for entry in entries]
    return [
        Heading("Verdicts"),
        Table(columns, rows, ALIGN + "l" * len(others), stacked=True),
        *side_by_side(entries, others, folder),
        Details("How a verdict comes about", [rules()]),
    ]


def cell(other: OtherScale, claim: str) -> Text:
    """Another scale's verdict on a claim, with effect and evidence; narrow pages show no heads, so it says which."""
    entry = other.claims.get(claim)
    if entry is None:
        return f"{other.scale}: no such claim"
    said: list[Inline] = [f"{other.scale}: ", *parts(verdict_text(entry))]
    if (lead := entry["lead"]) is not None:
        said.append(f"; {found_text(entry)}; {evidence_text(entry, lead)}")
    return tuple(said)


def side_by_side(own: Sequence[Entry], others: Sequence[OtherScale], folder: Path) -> list[Block]:
    """Below the table of verdicts: where the others come from, which are the better evidence, and where they disagree.

    Args:
        own: the entries of this report's claims.json.
        others: of the same paper; without any nothing is said.
        folder: where the page will lie.
    """
    if not others:
        return []
    items: list[Text] = [*map(_of_other, others, [folder] * len(others)), _better_line(own, others)]
    split = [line for entry in own if (line := disagreement([entry, *_counterparts(entry, others)])) is not None]
    return [Bullets([*items, *split])]


def disagreement(entries: Sequence[Entry]) -> Text | None:
    """A sentence, if decided verdicts on a claim differ between scales."""
    if not disagree(entries):
        return None
    best = better(entries)
    said = ", ".join(f"{entry['verdict']} at {entry['scale']} scale" for entry in by_size(entries))
    return (
        Strong("The scales disagree"),
        f" on {best['id']}: {said}. Neither verdict is dropped; the better evidence is that of {best['scale']} scale.",
    )


def by_size(entries: Sequence[Entry]) -> list[Entry]:
    """From the smallest scale to the largest."""
    return sorted(entries, key=lambda entry: SCALES.index(entry["scale"]))


def link_to(page: Path, words: str, folder: Path) -> Link:
    """A link from a page in ``folder``."""
    return Link(words, Path(os.path.relpath(page, folder)).as_posix())


def _of_other(other: OtherScale, folder: Path) -> Text:
    said: list[Inline] = ["At ", link_to(other.page, f"{other.scale} scale", folder)]
    if other.commits:
        said.append(f": from runs of {'commit' if len(other.commits) == 1 else 'commits'} ")
        for number, commit in enumerate(other.commits):
            said += [", " if number else "", Code(hash_text(commit))]
    said.append("; its verdicts are as they were when this page was written.")
    return tuple(said)


def _better_line(own: Sequence[Entry], others: Sequence[OtherScale]) -> Text:
    """Which scale has the better evidence, claim by claim."""
    by_scale: dict[str, list[str]] = {}
    for entry in own:
        best = better([entry, *_counterparts(entry, others)])
        by_scale.setdefault("" if best["verdict"] == "not tested" else best["scale"], []).append(entry["id"])
    found = "; ".join(f"{scale} scale for {', '.join(by_scale[scale])}" for scale in SCALES if scale in by_scale)
    untested = f" No scale tests {', '.join(by_scale[''])}." if "" in by_scale else ""
    return (
        Strong("The better evidence"),
        f" is that of {found or 'no scale'}.{untested} A decided verdict beats an inconclusive one, and that one "
        "that was not tested; then the paper's data beat standard data, and these generated data; then the larger "
        "scale counts.",
    )


def _counterparts(entry: Entry, others: Sequence[OtherScale]) -> list[Entry]:
    return [other.claims[entry["id"]] for other in others if entry["id"] in other.claims]
