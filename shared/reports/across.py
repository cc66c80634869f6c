"""Models of several papers that were trained and tested on the same data, in one table."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.comparisons import Floor
from shared.claims.competence import below
from shared.claims.results import RunResults
from shared.claims.scales import SCALES
from shared.errors import ReplicationError
from shared.metrics.registry import measure
from shared.reports.document import SPACE, Block, Code, Heading, Link, Paragraph, Strong, Table, Text, plain
from shared.reports.estimates import estimate
from shared.reports.naming import name_of
from shared.reports.replicated import Report
from shared.reports.scales import link_to
from shared.reports.studies import number

FILE = "runs.json"
SCORES = ("bleu", "chrf", "perplexity")
LEAST = {"perplexity": 1.0}
"""The best possible score, where that is not 0."""
OPERATIONS = "training_operations"
SAID = (
    "All models have the same training and test data, cut into the same pieces, unless a name says otherwise. "
    "Intervals (95 %) cover test sentences and, where a model has several seeds, seeds. Core minutes are the processor "
    "time of a seed."
)
SAID_OF_OPERATIONS = " Operations are those of training; BLEU / 10¹⁵ is BLEU divided by their number in units of 10¹⁵."


SAID_OF_FLOORS = " Marked models did not reach the floor of their task: they have not learned enough to be compared."
BELOW = "below its floor"


def run_entries(results: Mapping[str, RunResults], floors: Mapping[str, Floor]) -> list[dict[str, Any]]:
    """What :data:`FILE` of a report has: of every trained variant its data, scores with intervals, and costs.

    Args:
        results: of all variants.
        floors: what a good model must reach, by task.
    """
    return [
        {
            "variant": run.variant,
            "name": name_of(run.variant),
            "dataset": next(iter(run.runs.values()))["parameters"]["corpus"].get("dataset", ""),
            "data": _digest([[each["data_sha256"], each["parameters"]["corpus"]] for each in run.runs.values()][:1]),
            "weights": _digest(sorted(each["fingerprint"] + str(seed) for seed, each in run.runs.items())),
            "seeds": len(run.seeds),
            "below": len(below(floors[run.task], run, run.seeds)) if run.task in floors else 0,
            "parameters": _mean(run, "parameter_count"),
            "processor_seconds": _mean(run, "processor_seconds"),
            "operations": run.mean.get(OPERATIONS),
            "scores": {name: found for name in SCORES if (found := _interval(run, name)) is not None},
        }
        for run in results.values()
        if run.runs and not run.members and all("fingerprint" in each for each in run.runs.values())
    ]


def across_papers(reports: Sequence[Report], folder: Path) -> list[Block]:
    """A table for every data set that models of several papers share; a model that papers lend stands once.

    Args:
        reports: of all papers and scales.
        folder: where the page will lie.

    Raises:
        ReplicationError: a file cannot be read.
    """
    groups: dict[tuple[str, str], dict[str, tuple[Report, Mapping[str, Any]]]] = {}
    for report in reports:
        for entry in _read(report):
            of_data = groups.setdefault((report.scale, entry["data"]), {})
            if entry["scores"]:
                of_data.setdefault(entry["weights"], (report, entry))
    blocks: list[Block] = []
    for (scale, _), models in sorted(groups.items(), key=lambda group: -SCALES.index(group[0][0])):  # the best evidence
        if len({report.paper for report, _ in models.values()}) > 1:
            dataset = next(iter(models.values()))[1]["dataset"]
            counted = any(entry["operations"] for _, entry in models.values())
            marked = any(_is_below(entry) for _, entry in models.values())
            said = SAID + SAID_OF_OPERATIONS * counted + SAID_OF_FLOORS * marked
            table = _table([*models.values()], folder, counted)
            blocks += [Paragraph((Code(dataset), f", {scale} scale. {said}")), table]
    return [Heading("One corpus, several papers"), *blocks] if blocks else []


def _table(models: Sequence[tuple[Report, Mapping[str, Any]]], folder: Path, counted: bool) -> Table:
    first = SCORES[0]
    ordered = sorted(models, key=lambda each: -each[1]["scores"].get(first, [0.0])[0])
    best = {name: _best([entry for _, entry in models], name) for name in SCORES}
    rows: list[list[Text]] = [
        [
            (
                f"{entry['name']}, ",
                Link(report.title, link_to(report.folder / "README.md", "", folder).target),
                " ",
                Code(entry["variant"]),
                *((" ", Strong(BELOW)) if _is_below(entry) else ()),
            ),
            *(_score(entry, name, best[name]) for name in SCORES),
            plain(entry["parameters"], 0),
            *((number(entry["operations"]), _per_operation(entry)) if counted else ()),
            plain(entry["processor_seconds"] / 60.0, 1),
            plain(entry["seeds"], 0),
        ]
        for report, entry in ordered
    ]
    arrows = {"higher": " ↑", "lower": " ↓", None: ""}
    titles = [f"{measure(name).title.format(token='token')}{arrows[measure(name).better]}" for name in SCORES]
    costs = ("Operations", "BLEU / 10¹⁵") if counted else ()
    columns = ("Model", *titles, "Parameters", *costs, "Core minutes", "Seeds")
    return Table(columns, rows, "l" + "r" * (len(columns) - 1))


def _is_below(entry: Mapping[str, Any]) -> bool:
    """Whether most seeds of a model have not reached the floor; entries of older reports do not know."""
    return 2 * int(entry.get("below", 0)) > int(entry["seeds"])


def _score(entry: Mapping[str, Any], name: str, best: float | None) -> Text:
    if name not in entry["scores"]:
        return "–"
    value, low, high = entry["scores"][name]
    most = measure(name).most
    digits = 1 if most == 100.0 else 2
    low, high = max(low, LEAST.get(name, 0.0)), min(high, most)  # Student's intervals know no bounds
    shown = plain(value, digits)
    if low < high:  # one seed of a measure that no examples carry has no spread
        shown = f"{shown} [{plain(low, digits)},{SPACE}{plain(high, digits)}]"
    return Strong(shown) if value == best else shown


def _best(entries: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [entry["scores"][name][0] for entry in entries if name in entry["scores"]]
    return (min if measure(name).better == "lower" else max)(values, default=None)


def _per_operation(entry: Mapping[str, Any]) -> str:
    operations, scores = entry["operations"], entry["scores"]
    return plain(scores["bleu"][0] / operations * 1e15, 0) if operations and "bleu" in scores else "–"


def _interval(run: RunResults, name: str) -> list[float] | None:
    """A score and its interval; None where the run has no such score, or not a finite one in every seed."""
    if (found := estimate(run, name)) is None:
        return None
    values = found.value, *found.interval()
    return [round(value, 6) for value in values] if all(map(math.isfinite, values)) else None


def _mean(run: RunResults, key: str) -> float:
    return round(statistics.fmean(record[key] for record in run.runs.values()), 3)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _read(report: Report) -> list[dict[str, Any]]:
    path = report.folder / FILE
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its report stage again.") from None
    return entries
