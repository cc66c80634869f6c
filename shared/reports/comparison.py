"""The page that compares two collections of runs, in settings, measures and verdicts; its tables are the terminal's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
Pair = tuple[str, str]
"""Two variants that are compared, one of each side."""
ABSENT = "–"


@dataclass(frozen=True)
class Side:
    """One of the two collections; a variant is called ``<paper>.<variant>``.

    Attributes:
        label: what it is called.
        runs: variant to results; all have some.
        settings: variant to settings; one whose settings cannot be found is left out.
        data: paper and task to the digest of the task's data as they were fetched.
        claims: paper to the entries of its report's claims.json; none where there is no report.
    """

    label: str
    runs: dict[str, RunResults] = field(default_factory=dict)
    settings: dict[str, Settings] = field(default_factory=dict)
    data: dict[tuple[str, str], str] = field(default_factory=dict)
    claims: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def data_of(self, variant: str) -> str | None:
        """The digest of a variant's data, if it is known."""
        return self.data.get((variant.partition(".")[0], self.runs[variant].task))


def shared_pairs(left: Side, right: Side) -> list[Pair]:
    """The variants that both sides have, but for ensembles."""
    return [(name, name) for name in _variants(left) if name in _variants(right)]


def _variants(side: Side) -> list[str]:
    return [name for name, run in side.runs.items() if not run.members]


def comparison_page(left: Side, right: Side, pairs: Sequence[Pair], folder: Path, *, whole: bool) -> list[doc.Block]:
    """What the page of a comparison shows; its figures are drawn into ``folder``.

    Args:
        left, right: the sides.
        pairs: the variants that are compared.
        folder: of the figures.
        whole: whether verdicts are compared, too, and it is said what only one side has.
    """
    changed = [pair for pair in pairs if not alike(left.runs[pair[0]], right.runs[pair[1]])]
    equal = len(pairs) - len(changed)
    compared = number_of(len(pairs), "variant is", "variants are")
    said = f"{compared} compared, {equal} of them with the same numbers in every seed."
    if len(pairs) == 1:
        said = "They have the same numbers in every seed." if equal else "Differences are the second less the first."
    blocks: list[doc.Block] = [doc.Heading(f"{left.label} and {right.label}", level=1), doc.Paragraph(said)]
    if whole:
        blocks += [*_alone(left, right), *_alone(right, left)]
    if whole and left.claims and right.claims:
        blocks += [doc.Heading("Verdicts"), _verdicts(left, right)]
    blocks += [doc.Heading("Settings"), *_settings(left, right, pairs)]
    return [*blocks, doc.Heading("Measures"), *_measures(left, right, changed), *_curves(left, right, changed, folder)]


def _named(pair: Pair) -> str:
    return pair[0] if pair[0] == pair[1] else " and ".join(pair)


def _alone(side: Side, other: Side) -> list[doc.Block]:
    there = _variants(other)
    names = [code(name) for name in _variants(side) if name not in there]
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
        ours, theirs = left.settings.get(pair[0]), right.settings.get(pair[1])
        if ours is None or theirs is None:
            known = False
            continue
        keys = sorted(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
        if keys:
            groups[tuple((key, _shown(ours.get(key)), _shown(theirs.get(key))) for key in keys)].append(_named(pair))
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
        rows = [_measure_row(each, left.runs[pair[0]].token) for each in measures]
        table = doc.Table(("Measure", left.label, right.label, "Difference, 95 %", "From"), rows, "lrrrl")
        sure = sum(each.sure for each in measures)
        said = f"{_named(pair)}: 0 lies outside of {sure} of {number_of(len(measures), 'interval')}"
        blocks.append(table if len(shown) == 1 else doc.Details(said, [table]))
    if apart := [_named(pair) for pair in changed if pair not in shown]:
        blocks.append(doc.Paragraph(f"No measure in common that is better one way: {', '.join(apart)}."))
    return blocks or [doc.Paragraph("No measure differs.")]


def _differences(left: Side, right: Side, pair: Pair) -> list[Difference]:
    ours, theirs = left.runs[pair[0]], right.runs[pair[1]]
    here, there = left.data_of(pair[0]), right.data_of(pair[1])
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
        runs = [replace(side.runs[name], variant=side.label) for side, name in zip((left, right), pair, strict=True)]
        seeds = [read_curves(run, metric=LOSS.metric, split="valid") for run in runs]
        curves = seeds if all(seeds) else [read_mean(run) for run in runs]
        path = folder / f"loss_{'--'.join(pair)}.png"
        if draw_curves(runs, curves, path, x="Updates", y=LOSS.label.format(token=runs[0].token)):
            said = SPREAD if all(seeds) else "mean over seeds."
            figures.append(doc.Figure(path, f"{_named(pair)}. {LOSS.caption}: {said}"))
    return [doc.Heading("Learning curves"), *figures] if figures else []
