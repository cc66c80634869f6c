"""The page that compares two collections of runs; its tables are the terminal's too."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from shared.claims.differences import Difference
from shared.claims.words import number_of
from shared.metrics.registry import measure, split_of
from shared.reports.compared import Compared, Entry, Pair
from shared.reports.curves import read_curves, read_mean
from shared.reports.document import (
    SPACE,
    SPREAD,
    Badge,
    Block,
    Bullets,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Strong,
    Table,
    Text,
    plain,
    signed,
)
from shared.reports.learning_curves import LOSS
from shared.reports.verdicts import found_text, verdict_text

ABSENT = "–"


def comparison_page(result: Compared, folder: Path) -> list[Block]:
    """What the page of a comparison shows; its figures are drawn into ``folder``."""
    left, right = (side.label for side in result.sides)
    equal = len(result.equal)
    compared = number_of(len(result.pairs), "variant is", "variants are")
    said = f"{compared} compared, {equal} of them with the same numbers in every seed."
    if len(result.pairs) == 1:
        said = "They have the same numbers in every seed." if equal else "Differences are the second less the first."
    blocks: list[Block] = [
        Heading(f"{left} and {right}", level=1), Paragraph(said), *_alone(result)
    ]  # fmt: skip
    if all(side.claims for side in result.sides):
        blocks += [Heading("Verdicts"), *verdict_blocks(result)]
    blocks += [Heading("Settings"), *settings_blocks(result), Heading("Measures"), *measure_blocks(result)]
    return [*blocks, *_curves(result, folder)]


def settings_blocks(result: Compared) -> list[Block]:
    """A table of the settings that differ; variants that differ in the same way share its rows."""
    groups: dict[tuple[tuple[str, str, str], ...], list[Pair]] = defaultdict(list)
    for pair, changed in result.settings.items():
        groups[tuple((key, _shown(ours), _shown(theirs)) for key, (ours, theirs) in sorted(changed.items()))].append(
            pair
        )
    if not groups:
        at_hand = result.settings_known
        return [Paragraph("No setting differs." if at_hand else "The settings of one of the two are not at hand.")]
    left, right = (side.label for side in result.sides)
    blocks: list[Block] = []
    for changes, pairs in groups.items():
        rows = [(Code(key), Code(ours), Code(theirs)) for key, ours, theirs in changes]
        table = Table(("Setting", left, right), rows, "lll")
        blocks += [table] if len(result.pairs) == 1 else [Details(", ".join(map(str, pairs)), [table])]
    return blocks


def measure_blocks(result: Compared) -> list[Block]:
    """A table of differences for each pair whose numbers differ."""
    blocks: list[Block] = []
    for pair, measures in result.differences.items():
        run = result.sides[0].runs[pair.left.paper][pair.left.variant]
        rows = [_measure_row(each, run.token) for each in measures]
        left, right = (side.label for side in result.sides)
        table = Table(("Measure", left, right, "Difference, 95 %", "From"), rows, "lrrrl")
        few = len(result.differences) == 1
        sure = sum(each.sure for each in measures)
        blocks += (
            [table]
            if few
            else [Details(f"{pair}: 0 lies outside of {sure} of {number_of(len(measures), 'interval')}", [table])]
        )
    apart = [str(pair) for pair in result.changed if pair not in result.differences]
    if apart:
        blocks.append(Paragraph(f"No measure in common that is better one way: {', '.join(apart)}."))
    return blocks or [Paragraph("No measure differs.")]


def verdict_blocks(result: Compared) -> list[Block]:
    """A table of the claims whose verdict differs."""
    if not result.verdicts:
        return [Paragraph("No verdict differs.")]
    rows = [
        [str((ours or theirs or {})["id"]), _verdict(ours), _effect(ours), _verdict(theirs), _effect(theirs)]
        for ours, theirs in result.verdicts
    ]
    left, right = (side.label for side in result.sides)
    return [Table(("Claim", left, "Effect", right, "Effect there"), rows, "lllll")]


def _alone(result: Compared) -> list[Block]:
    return [
        Details(f"Runs in {label} alone: {number_of(len(names), 'variant')}", [Bullets([Code(name) for name in names])])
        for label, names in result.alone.items()
    ]


def _measure_row(found: Difference, token: str) -> list[Text]:
    split, name = split_of(found.metric)
    of = measure(name)
    title = of.title.format(token=token) + (f", split {split}" if split else "")
    digits = of.digits
    shown = signed(found.value, digits)
    if found.interval is not None:
        shown = f"{shown} [{f',{SPACE}'.join(signed(end, digits) for end in found.interval)}]"
    arrow = {"higher": " ↑", "lower": " ↓"}[of.better or "higher"]
    cell: Text = Strong(shown) if found.sure else shown
    return [f"{title}{arrow}", plain(found.left, digits), plain(found.right, digits), cell, found.based_on]


def _shown(value: object) -> str:
    return ABSENT if value is None else str(value)


def _verdict(entry: Entry | None) -> Text:
    return ABSENT if entry is None else verdict_text(entry) if entry["how"] else Badge(entry["verdict"])


def _effect(entry: Entry | None) -> str:
    return ABSENT if entry is None or entry["lead"] is None else found_text(entry)


def _curves(result: Compared, folder: Path) -> list[Block]:
    """Both sides' loss on validation, laid over each other, of every pair whose numbers differ."""
    from shared.reports.figures import draw_curves

    figures: list[Block] = []
    for pair in result.changed:
        runs = [
            replace(side.runs[member.paper][member.variant], variant=side.label)
            for side, member in result.members(pair)
        ]
        seeds = [read_curves(run, metric=LOSS.metric, split="valid") for run in runs]
        curves = seeds if all(seeds) else [read_mean(run) for run in runs]
        path = folder / f"loss_{pair.left}--{pair.right}.png"
        if draw_curves(runs, curves, path, x="Updates", y=LOSS.label.format(token=runs[0].token)):
            said = SPREAD if all(seeds) else "mean over seeds."
            figures.append(Figure(path, f"{pair}. {LOSS.caption}: {said}"))
    return [Heading("Learning curves"), *figures] if figures else []
