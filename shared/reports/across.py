"""Models of several papers that were trained and tested on the same data, in one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.scales import SCALES
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.reports.document import Block, Heading, Paragraph, Table, code, link, number, plain, strong, with_ends
from shared.reports.runs import ARROWS, SCORES
from shared.reports.scales import Report

LEAST = {"perplexity": 1.0}
"""The best possible score, where that is not 0."""
SAID = (
    "All models have the same training and test data, cut into the same pieces, unless a name says otherwise. "
    "Intervals (95 %) cover test sentences and, where a model has several seeds, seeds. Core minutes are the processor "
    "time of a seed."
)
SAID_OF_OPERATIONS = " Operations are those of training; BLEU / 10¹⁵ is BLEU divided by their number in units of 10¹⁵."
SAID_OF_FLOORS = " Marked models did not reach the floor of their task: they have not learned enough to be compared."
Model = tuple[Report, Mapping[str, Any]]
"""A report, and the entry of a model in its runs.json."""


def across_papers(reports: Sequence[Report], folder: Path) -> list[Block]:
    """A table for every data set that models of several papers share; a model that papers lend stands once.

    Args:
        reports: of all papers and scales.
        folder: where the page will lie.

    Raises:
        ReplicationError: a file cannot be read.
    """
    groups: dict[tuple[str, str], dict[str, Model]] = {}
    for report in reports:
        for entry in _read(report.folder / "runs.json"):
            of_data = groups.setdefault((report.scale, entry["data"]), {})
            if entry["scores"]:
                of_data.setdefault(entry["weights"], (report, entry))
    blocks: list[Block] = []
    for (scale, _), found in sorted(groups.items(), key=lambda group: -SCALES.index(group[0][0])):  # the best evidence
        models = [*found.values()]
        if len({report.paper for report, _ in models}) > 1:
            counted = any(entry["operations"] for _, entry in models)
            marked = any(_is_below(entry) for _, entry in models)
            said = SAID + SAID_OF_OPERATIONS * counted + SAID_OF_FLOORS * marked
            blocks += [
                Paragraph(f"{code(models[0][1]['dataset'])}, {scale} scale. {said}"),
                _table(models, folder, counted),
            ]
    return [Heading("One corpus, several papers"), *blocks] if blocks else []


def _table(models: Sequence[Model], folder: Path, counted: bool) -> Table:
    best = {}
    for name in SCORES:
        values = [entry["scores"][name][0] for _, entry in models if name in entry["scores"]]
        best[name] = (min if measure(name).better == "lower" else max)(values, default=None)
    rows = []
    for report, entry in sorted(models, key=lambda each: -each[1]["scores"].get(SCORES[0], [0.0])[0]):
        operations, bleu = entry["operations"], entry["scores"].get("bleu")
        per_operation = plain(bleu[0] / operations * 1e15, 0) if operations and bleu else "–"
        below = f" {strong('below its floor')}" if _is_below(entry) else ""
        rows.append([
            f"{entry['name']}, {link(report.title, report.page(folder))} {code(entry['variant'])}{below}",
            *(_score(entry, name, best[name]) for name in SCORES), plain(entry["parameters"], 0),
            *((number(operations), per_operation) if counted else ()),
            plain(entry["processor_seconds"] / 60.0, 1), plain(entry["seeds"], 0),
        ])  # fmt: skip
    titles = [f"{measure(name).title.format(token='token')}{ARROWS[measure(name).better]}" for name in SCORES]
    costs = ("Operations", "BLEU / 10¹⁵") if counted else ()
    return Table(("Model", *titles, "Parameters", *costs, "Core minutes", "Seeds"), rows)


def _is_below(entry: Mapping[str, Any]) -> bool:
    """Whether most seeds of a model have not reached the floor; entries of older reports do not know."""
    return 2 * int(entry.get("below", 0)) > int(entry["seeds"])


def _score(entry: Mapping[str, Any], name: str, best: float | None) -> str:
    if name not in entry["scores"]:
        return "–"
    value, low, high = entry["scores"][name]
    most = measure(name).most
    digits = 1 if most == 100.0 else 2
    low, high = max(low, LEAST.get(name, 0.0)), min(high, most)  # Student's intervals know no bounds
    shown = plain(value, digits)
    if low < high:  # one seed of a measure that no examples carry has no spread
        shown = with_ends(shown, (plain(low, digits), plain(high, digits)))
    return strong(shown) if value == best else shown


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its report stage again.") from None
    return entries
