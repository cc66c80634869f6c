"""The page of all records, and figures of how time and memory grow: ``reports/speed``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from shared.reports import document as doc
from shared.reports.document import link, plain
from shared.reports.figures import panels_drawn, plain_powers
from shared.reports.page import Place, write_page

TITLE = "Speed"
SAID = (
    "Processor seconds of one thread, while contenders take turns, so that what else a machine does slows all alike. A "
    "ratio is to the first contender in the same turn: the median of all turns, and between which ratios half of them "
    "lie."
)
HEADS = ("Measured", "Contender", "Milliseconds", "Ratio", "Half of the turns")
UNITS = {"milliseconds": "Processor milliseconds", "megabytes": "Megabytes at most"}


def write(
    modules: Mapping[str, ModuleType], records: Mapping[str, Any], ages: Mapping[str, str], reports: Path
) -> None:
    """Write the page of the records of modules, each with what is said of its age, into ``speed`` of the reports."""
    folder = reports / "speed"
    notes = link("Peers, limits and what does not pay", "../../benchmarks/README.md")
    blocks: list[doc.Block] = [
        doc.Heading(TITLE, level=1),
        doc.Paragraph(SAID),
        doc.Paragraph(notes),
    ]
    for name, record in records.items():
        module = modules[name]
        blocks += [
            doc.Heading(name.replace("_", " ").capitalize()),
            doc.Paragraph((module.__doc__ or "").split("\n")[0]),
        ]
        rows = [row for comparison in record["comparisons"].items() for row in _rows(module, *comparison)]
        blocks.append(doc.Table(HEADS, rows, "llrrr"))
        for comparison, label in getattr(module, "AXES", {}).items():
            path = folder / "figures" / f"{name}_{comparison.replace(' ', '_')}.png"
            _draw(record["comparisons"][comparison], path, label)
            blocks.append(doc.Figure(path, f"{comparison.capitalize()}: time and memory against size."))
        commit, torch = record["git_commit"][:8], record["torch"]
        blocks.append(doc.Paragraph(f"{ages[name].capitalize()}, at {commit}, torch {torch}, {record['cpu']}."))
    write_page(blocks, folder, title=TITLE, place=Place((("All papers", "../README.md"),)))


def _rows(module: ModuleType, comparison: str, figures: Mapping[str, Any]) -> Iterator[list[str]]:
    of = module.COMPARISONS[comparison]
    sizes = (getattr(of, "func", of).__doc__ or "").split("\n")[0]
    for place, (name, found) in enumerate(figures.items()):
        said = "" if place else f"{comparison.capitalize()}. {sizes}".rstrip()
        spread = f"{plain(found['from'], 2)} to {plain(found['to'], 2)}" if place else ""
        yield [said, name, plain(found["milliseconds"], 1), plain(found["ratio"], 2), spread]


def _draw(figures: Mapping[str, Any], path: Path, label: str) -> None:
    with panels_drawn(path, len(UNITS), height=2.6) as (_, panels):
        for axes, (key, unit) in zip(panels, UNITS.items(), strict=True):
            axes.loglog([float(size) for size in figures], [found[key] for found in figures.values()], marker="o")
            axes.set(xlabel=label, ylabel=unit)
            for axis in (axes.xaxis, axes.yaxis):
                plain_powers(axis)
