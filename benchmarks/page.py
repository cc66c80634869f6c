"""The page of all records, and figures of how time and memory grow: ``reports/speed``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from shared.reports import document as doc
from shared.reports.document import link, plain
from shared.reports.figures import panels_drawn, place_ticks, plain_powers
from shared.reports.page import Place, write_page

TITLE = "Speed"
SAID = (
    "Processor milliseconds of one thread, while contenders take turns, so that other load slows all alike. "
    "A ratio is to the first contender in the same turn: the median of all turns, and in brackets between which ratios "
    "half of them lie."
)
UNITS = {"milliseconds": ("time", "Processor milliseconds"), "megabytes": ("memory", "Megabytes at most")}


def write(
    modules: Mapping[str, ModuleType], records: Mapping[str, Any], ages: Mapping[str, str], reports: Path
) -> None:
    """Write the page of the records of modules, each with what is said of its age, into ``speed`` of the reports."""
    folder = reports / "speed"
    notes = link("Peers, limits and what does not pay", "../../benchmarks/")
    blocks: list[doc.Block] = [doc.Heading(TITLE, level=1), doc.Paragraph(SAID), doc.Paragraph(notes)]
    for name, record in records.items():
        module = modules[name]
        axes = getattr(module, "AXES", {})
        blocks += [
            doc.Heading(name.replace("_", " ").capitalize()),
            doc.Paragraph((module.__doc__ or "").split("\n")[0]),
        ]
        for comparison, figures in record["comparisons"].items():
            of = module.COMPARISONS[comparison]
            sizes = (getattr(of, "func", of).__doc__ or "").split("\n")[0]
            blocks += [
                doc.Heading(comparison[0].upper() + comparison[1:], level=3),
                doc.Paragraph(sizes),
                doc.Table((axes.get(comparison, "Contender"), "ms", "Ratio"), [*_rows(figures)]),
            ]
        for comparison, label in axes.items():
            path = folder / "figures" / f"{name}_{comparison.replace(' ', '_')}.png"
            shown = _draw(record["comparisons"][comparison], path, label)
            blocks.append(doc.Figure(path, f"{comparison.capitalize()}: {' and '.join(shown)} against size."))
        commit, torch = (record.get("git_commit") or "no commit")[:8], record["torch"]
        blocks.append(doc.Paragraph(f"{ages[name].capitalize()}, at {commit}, torch {torch}, {record['cpu']}."))
    write_page(blocks, folder, title=TITLE, place=Place((("All papers", "../README.md"),)))


def _rows(figures: Mapping[str, Any]) -> Iterator[list[str]]:
    for place, (name, found) in enumerate(figures.items()):
        spread = f" [{plain(found['from'], 2)}, {plain(found['to'], 2)}]" if place else ""
        yield [name, plain(found["milliseconds"], 1), plain(found["ratio"], 2) + spread]


def _draw(figures: Mapping[str, Any], path: Path, label: str) -> list[str]:
    """Draw what was measured of each size, and name it."""
    sizes = [float(size) for size in figures]
    drawn = {key: names for key, names in UNITS.items() if all(key in found for found in figures.values())}
    with panels_drawn(path, len(drawn), height=2.6) as (_, panels):
        for axes, (key, (_, unit)) in zip(panels, drawn.items(), strict=True):
            axes.loglog(sizes, [found[key] for found in figures.values()], marker="o")
            axes.set(xlabel=label, ylabel=unit)
            place_ticks(axes, sizes, log=True)
            plain_powers(axes.yaxis)
    return [word for word, _ in drawn.values()]
