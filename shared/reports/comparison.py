"""The page that compares two collections of runs, in settings, measures and verdicts; its tables are the terminal's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from shared.claims.estimates import Difference, alike, difference, shared_metrics
from shared.claims.results import RunResults
from shared.claims.words import number_of
from shared.metrics.registry import measure, split_of
from shared.reports import document as doc
from shared.reports.curves import LOSS, draw_curves, read_curves, read_mean
from shared.reports.document import SPREAD, code, plain, signed, strong, with_ends
from shared.reports.verdicts import Entry, found_text, verdict_text

Settings = Mapping[str, Any]
"""Dotted key to value, such as ``training.updates`` to 400."""
ABSENT = "–"


class Member(NamedTuple):
    """A variant of a paper on one side."""

    paper: str
    variant: str

    def __str__(self) -> str:
        return f"{self.paper}.{self.variant}"


class Pair(NamedTuple):
    """Two variants that are compared, one of each side."""

    left: Member
    right: Member

    def __str__(self) -> str:
        return str(self.left) if self.left == self.right else f"{self.left} and {self.right}"


@dataclass(frozen=True)
class Side:
    """One of the two collections.

    Attributes:
        label: what it is called.
        runs: paper, then variant, to results.
        settings: paper, then variant, to settings; a variant whose settings cannot be found is left out.
        data: paper, then task, to the digest of its data as they were fetched.
        claims: paper to the entries of its report's claims.json.
    """

    label: str
    runs: Mapping[str, Mapping[str, RunResults]]
    settings: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    def members(self) -> list[Member]:
        """The variants that have runs, but for ensembles."""
        return [
            Member(paper, variant)
            for paper, results in self.runs.items()
            for variant, run in results.items()
            if run.seeds and not run.members
        ]

    def of(self, member: Member) -> tuple[RunResults, Settings | None]:
        """The results of a variant, and its settings if they are known."""
        return self.runs[member.paper][member.variant], self.settings.get(member.paper, {}).get(member.variant)


def shared_pairs(left: Side, right: Side) -> list[Pair]:
    """The variants that both sides have."""
    theirs = right.members()
    return [Pair(member, member) for member in left.members() if member in theirs]


def comparison_page(left: Side, right: Side, folder: Path, chosen: Pair | None = None) -> list[doc.Block]:
    """What the page of a comparison shows, of all variants that both sides have or of the ``chosen`` two.

    Its figures are drawn into ``folder``.
    """
    pairs = shared_pairs(left, right) if chosen is None else [chosen]
    changed = [pair for pair in pairs if not alike(left.of(pair.left)[0], right.of(pair.right)[0])]
    equal = len(pairs) - len(changed)
    compared = number_of(len(pairs), "variant is", "variants are")
    said = f"{compared} compared, {equal} of them with the same numbers in every seed."
    if len(pairs) == 1:
        said = "They have the same numbers in every seed." if equal else "Differences are the second less the first."
    blocks: list[doc.Block] = [doc.Heading(f"{left.label} and {right.label}", level=1), doc.Paragraph(said)]
    if chosen is None:
        blocks += [*_alone(left, right), *_alone(right, left)]
    if left.claims and right.claims:
        blocks += [doc.Heading("Verdicts"), _verdicts(left, right)]
    blocks += [doc.Heading("Settings"), *_settings(left, right, pairs)]
    return [*blocks, doc.Heading("Measures"), *_measures(left, right, changed), *_curves(left, right, changed, folder)]


def _alone(side: Side, other: Side) -> list[doc.Block]:
    there = other.members()
    names = [code(str(member)) for member in side.members() if member not in there]
    said = f"Runs in {side.label} alone: {number_of(len(names), 'variant')}"
    return [doc.Details(said, [doc.Bullets(names)])] if names else []


def _verdicts(left: Side, right: Side) -> doc.Block:
    """A table of the claims whose verdict differs, of papers that both sides have a report of."""
    rows = []
    for paper in [paper for paper in left.claims if paper in right.claims]:
        ours, theirs = ({entry["id"]: entry for entry in side.claims[paper]} for side in (left, right))
        for claim in {**ours, **theirs}:
            pair = ours.get(claim), theirs.get(claim)
            if len({entry["verdict"] if entry else None for entry in pair}) > 1:
                rows.append([claim, *(cell for entry in pair for cell in _verdict(entry))])
    columns = ("Claim", left.label, "Effect", right.label, "Effect there")
    return doc.Table(columns, rows, "lllll") if rows else doc.Paragraph("No verdict differs.")


def _verdict(entry: Entry | None) -> tuple[str, str]:
    if entry is None:
        return ABSENT, ABSENT
    return verdict_text(entry), ABSENT if entry["lead"] is None else found_text(entry)


def _settings(left: Side, right: Side, pairs: Sequence[Pair]) -> list[doc.Block]:
    """A table of the settings that differ; variants that differ in the same way share its rows."""
    groups: dict[tuple[tuple[str, str, str], ...], list[str]] = defaultdict(list)
    known = True
    for pair in pairs:
        ours, theirs = left.of(pair.left)[1], right.of(pair.right)[1]
        if ours is None or theirs is None:
            known = False
            continue
        keys = sorted(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
        if keys:
            groups[tuple((key, _shown(ours.get(key)), _shown(theirs.get(key))) for key in keys)].append(str(pair))
    if not groups:
        return [doc.Paragraph("No setting differs." if known else "The settings of one of the two are not at hand.")]
    tables = {
        ", ".join(names): doc.Table(("Setting", left.label, right.label), [[*map(code, row)] for row in rows], "lll")
        for rows, names in groups.items()
    }
    return [*tables.values()] if len(pairs) == 1 else [doc.Details(names, [table]) for names, table in tables.items()]


def _shown(value: object) -> str:
    return ABSENT if value is None else str(value)


def _measures(left: Side, right: Side, changed: Sequence[Pair]) -> list[doc.Block]:
    """A table of differences for each pair whose numbers differ; the measures that are better one way or the other."""
    found = {pair: _differences(left, right, pair) for pair in changed}
    shown = {pair: measures for pair, measures in found.items() if measures}
    blocks: list[doc.Block] = []
    for pair, measures in shown.items():
        token = left.of(pair.left)[0].token
        rows = [_measure_row(each, token) for each in measures]
        table = doc.Table(("Measure", left.label, right.label, "Difference, 95 %", "From"), rows, "lrrrl")
        sure = sum(each.sure for each in measures)
        said = f"{pair}: 0 lies outside of {sure} of {number_of(len(measures), 'interval')}"
        blocks.append(table if len(shown) == 1 else doc.Details(said, [table]))
    if apart := [str(pair) for pair in changed if pair not in shown]:
        blocks.append(doc.Paragraph(f"No measure in common that is better one way: {', '.join(apart)}."))
    return blocks or [doc.Paragraph("No measure differs.")]


def _differences(left: Side, right: Side, pair: Pair) -> list[Difference]:
    ours, theirs = left.of(pair.left)[0], right.of(pair.right)[0]
    here, there = (
        side.data.get(member.paper, {}).get(run.task)
        for side, member, run in ((left, pair.left, ours), (right, pair.right, theirs))
    )
    same = not (ours.task or theirs.task) or (here is not None and here == there)  # a study has no task and no data
    return [difference(ours, theirs, metric, same_data=same) for metric in shared_metrics(ours, theirs)]


def _measure_row(found: Difference, token: str) -> list[str]:
    split, name = split_of(found.metric)
    of = measure(name)
    title = of.title.format(token=token) + (f", split {split}" if split else "")
    shown = signed(found.value, of.digits)
    if found.interval is not None:
        shown = with_ends(shown, (signed(end, of.digits) for end in found.interval))
    return [
        f"{title}{' ↓' if of.better == 'lower' else ' ↑'}", plain(found.left, of.digits), plain(found.right, of.digits),
        strong(shown) if found.sure else shown, found.based_on,
    ]  # fmt: skip


def _curves(left: Side, right: Side, changed: Sequence[Pair], folder: Path) -> list[doc.Block]:
    """Both sides' loss on validation, laid over each other, of every pair whose numbers differ."""
    figures: list[doc.Block] = []
    for pair in changed:
        runs = [
            replace(side.of(member)[0], variant=side.label) for side, member in zip((left, right), pair, strict=True)
        ]
        seeds = [read_curves(run, metric=LOSS.metric, split="valid") for run in runs]
        curves = seeds if all(seeds) else [read_mean(run) for run in runs]
        path = folder / f"loss_{pair.left}--{pair.right}.png"
        if draw_curves(runs, curves, path, x="Updates", y=LOSS.label.format(token=runs[0].token)):
            said = SPREAD if all(seeds) else "mean over seeds."
            figures.append(doc.Figure(path, f"{pair}. {LOSS.caption}: {said}"))
    return [doc.Heading("Learning curves"), *figures] if figures else []
