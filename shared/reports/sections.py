"""The other parts of a report: our runs, cost, settings, provenance."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.claims.outcomes import Evidence
from shared.claims.results import RunResults
from shared.metrics.quantities import Direction, Measure
from shared.metrics.registry import by_theme, measure
from shared.reports.document import (
    SPACE,
    Block,
    Bullets,
    Code,
    Details,
    Heading,
    Inline,
    Link,
    Paragraph,
    Strong,
    Table,
    Text,
    hash_text,
    listed,
    plain,
)
from shared.reports.kind import KindReport
from shared.reports.naming import called, has_tokens, token_of
from shared.reports.paper import Paper
from shared.reports.paper_tables import beside_the_paper, written
from shared.reports.studies import is_study, number, study

Results = Mapping[str, RunResults]
Tasks = Mapping[str, list[RunResults]]
ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}  # what is better
OPERATIONS = "training_operations"  # the metric that counts those of a run
WIDEST = 5
"""Measures that fit on a page beside each other; more stand in several tables."""
CONVENTION = (
    "Operations are floating-point ones: two for each multiplication with its addition, the backward pass counted "
    "as twice the forward pass, padding included."
)


def our_results(
    tasks: Tasks, results: Results, kind: KindReport, data: Mapping[str, Sequence[Block]] | None = None
) -> list[Block]:
    """The tables of scores of every task, with what its kind adds, and the variants that were not run.

    Args:
        tasks: to the variants that were run.
        results: of all variants.
        kind: what reports of the paper's kind of task show.
        data: task to what is said of its data.
    """
    blocks: list[Block] = [Heading("Results of every variant")]
    for task, runs in tasks.items():
        blocks += [Heading(("Task ", Code(task)), level=3), *(data or {}).get(task, ()), *score_tables(runs)]
        blocks += [block for run in runs if is_study(run) for block in (*study(run), *_over_seeds([run], "Mean"))]
        blocks += _signatures(runs)
        blocks += kind.tables(runs)
    skipped: dict[str, list[Sequence[Inline]]] = {}
    for run in results.values():
        if run.not_run is not None:
            skipped.setdefault(run.not_run, []).append(called(run.variant))
    if skipped:
        lines: list[Text] = [(*listed(names), f": {reason}") for reason, names in skipped.items()]
        blocks += [Paragraph("Not run at this scale:"), Bullets(lines)]
    return blocks


def score_tables(runs: Sequence[RunResults], split: str = "") -> list[Block]:
    """Tables of a theme's measures each, with the variants and metrics that have any, and below them their seeds.

    Arrows say which way is better, and the best mean of a column is bold, whether or not it is surely the best.

    Args:
        runs: of one task.
        split: a further test split, whose metrics have its name before them; without one the first split.
    """
    carried = {name for run in runs for name in run.mean}
    return [block for names in by_theme(carried) for block in _score_table(runs, names, split)]


def _score_table(runs: Sequence[RunResults], metrics: Sequence[str], split: str) -> list[Block]:
    measures = {f"{split}.{name}" if split else name: measure(name) for name in metrics}
    shown = [name for name in measures if any(name in run.mean for run in runs)]
    scored = [run for run in runs if any(name in run.mean for name in shown)]
    if not scored:
        return []
    count = -(-len(shown) // WIDEST)
    size = -(-len(shown) // count)
    tables = [
        _columns(scored, shown[part * size : (part + 1) * size], measures, split, first=not part)
        for part in range(count)
    ]
    return [*tables, *_over_seeds(scored, "Mean ± standard deviation")]


def _columns(
    runs: Sequence[RunResults], shown: Sequence[str], measures: Mapping[str, Measure], split: str, *, first: bool
) -> Table:
    """The table of some measures; the ``first`` of a theme also says how large and how long trained the models are."""
    best = {name: _best_of(runs, name, measures[name].better) for name in shown}
    rows: list[list[Text]] = [
        [
            called(run.variant),
            *((plain(_mean(run, "parameter_count"), 0), plain(_mean(run, "updates"), 0)) if first else ()),
            *(_best(best[name] == run.variant, _spread(run, name, measures[name].digits)) for name in shown),
        ]
        for run in runs
    ]
    titles = [f"{measures[name].title.format(token=token_of(runs))}{ARROWS[measures[name].better]}" for name in shown]
    heads = ("Parameters", "Updates") if first else ()
    columns = (f"Variant, split {split}" if split else "Variant", *heads, *titles)
    return Table(columns, rows, "l" + "r" * (len(columns) - 1))


def _over_seeds(runs: Sequence[RunResults], what: str) -> list[Block]:
    """A sentence with the seeds that the numbers of a table summarise; it names the variants if their seeds differ."""
    sharing: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for run in runs:
        if len(run.seeds) > 1:
            sharing[tuple(run.seeds)].append(run.variant)
    said: list[Code | str] = []
    for seeds, variants in sorted(sharing.items()):
        said += ["; " if said else f"{what} over seeds ", ", ".join(map(str, seeds))]
        if len(sharing) > 1:
            named = [part for variant in variants for part in (", ", Code(variant))]
            said += [" (", *named[1:], ")"]
    if said and any(len(run.seeds) == 1 for run in runs):
        said.append("; those without ± are of one seed")
    return [Paragraph((*said, "."))] if said else []


def _spread(run: RunResults, metric: str, digits: int) -> str:
    """Mean over the seeds, with their standard deviation if there are several and all are finite."""
    values = [metrics[metric] for metrics in run.metrics.values() if metric in metrics]
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return plain(run.mean.get(metric), digits)
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return f"{plain(mean, digits)}{SPACE}±{SPACE}{plain(deviation, digits)}"


def _best_of(runs: Sequence[RunResults], metric: str, better: Direction | None) -> str | None:
    """The variant with the best mean; None where there is no best one."""
    means = {run.variant: run.mean[metric] for run in runs if math.isfinite(run.mean.get(metric, math.nan))}
    if better is None or len(set(means.values())) < 2:
        return None
    choose = max if better == "higher" else min
    return choose(means, key=means.__getitem__)


def _best(is_best: bool, shown: str) -> Text:
    return Strong(shown) if is_best else shown


def _signatures(runs: list[RunResults]) -> list[Block]:
    """Notes below a table: what an ensemble and a token are, and the signatures of its metrics."""
    said = []
    if any(run.members for run in runs):
        said.append("An ensemble is the models of all seeds, judged once as one.")
    if any(map(has_tokens, runs)):
        said.append(f"One token is one {token_of(runs)}.")
    signatures = {name: text for run in runs for name, text in run.signatures.items()}
    named = [Paragraph((f"{measure(name).title}: ", Code(text))) for name, text in sorted(signatures.items())]
    return [*([Paragraph(" ".join(said))] if said else []), *named]


def of_runs(
    paper: Paper, tasks: Tasks, scale: str, deviations: Sequence[str], evidence: Mapping[str, Evidence] | None
) -> list[Block]:
    """What training cost, the paper's tables beside ours, deviations and settings, provenance."""
    return [
        *cost(tasks),
        *beside_the_paper(paper, tasks, scale, evidence),
        *settings(paper, scale, deviations),
        *provenance(tasks),
    ]


def cost(tasks: Tasks) -> list[Block]:
    """What training cost, per variant; operations where they were counted. What is alike in all runs is said once."""
    counted = any(OPERATIONS in run.mean for runs in tasks.values() for run in runs)
    trained = [run for runs in tasks.values() for run in runs if not (run.members or is_study(run))]
    rows: list[list[Text]] = [
        [
            called(run.variant),
            plain(_mean(run, "updates"), 0),
            *([number(run.mean.get(OPERATIONS))] if counted else ()),
            plain(_mean(run, "tokens_per_second"), 0),
            plain(_minutes(run), 1),
            plain(_mean(run, "peak_memory_mib"), 0),
        ]
        for run in trained
    ]
    columns = [
        "Variant", "Updates", *(["Operations"] if counted else ()), "Predicted tokens/s", "Minutes, all seeds",
        "Peak memory, MiB",
    ]  # fmt: skip
    align = f"lr{'r' * counted}rrr"
    alike = list[str]()
    for title, field in (("Device", "device"), ("Stopped because", "stopped_because")):
        cells = [_listed({str(record.get(field, "–")) for record in run.runs.values()}) for run in trained]
        if len(set(cells)) == 1:
            alike.append(f"{title.lower()} {cells[0]}")
            continue
        columns.append(title)
        align += "l"
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    said = [f"{CONVENTION} The mean over the seeds."] if counted else []
    said += [f"All runs: {'; '.join(alike)}."] if alike else []
    note = [Paragraph(" ".join(said))] if said else []
    return [Heading("Cost of training"), Table(tuple(columns), rows, align), *note]


def settings(paper: Paper, scale: str, deviations: Sequence[str]) -> list[Block]:
    """What deviates from the paper, the paper's settings and its sizes."""
    blocks: list[Block] = [Heading("Deviations from the paper at this scale")]
    blocks.append(Bullets(deviations) if deviations else Paragraph(f"None are recorded for the {scale} scale."))
    if paper.hyperparameters:
        rows: list[list[Text]] = [[s.item, written(s.value), s.provenance] for s in paper.hyperparameters]
        blocks += [Heading("The paper's settings"), Table(("Setting", "Value", "Source"), rows, "lll")]
    counts = paper.parameter_counts
    if counts:
        models = list(counts.totals)
        rows = [[str(part["part"]), *(plain(int(part[model]), 0) for model in models)] for part in counts.parts]
        rows.append(["total", *(plain(counts.totals[model], 0) for model in models)])
        blocks += [
            Heading("The paper's model sizes"),
            Table(("Parameters", *models), rows, "l" + "r" * len(models)),
        ]
        blocks += [Paragraph(f"{counts.note} (source: {counts.provenance}).")] if counts.note else []
    blocks.append(
        Paragraph(
            "Sources: C:paper is read in the paper, C:code in its authors' code, C:note in a note on it; D "
            "is derived by arithmetic, M from memory."
        )
    )
    return blocks


def provenance(tasks: Tasks) -> list[Block]:
    """Code, data, versions and machine behind the numbers."""
    records = [record for runs in tasks.values() for run in runs for record in run.runs.values()]
    seeds = _seeds(run for runs in tasks.values() for run in runs)
    commits = set(map(commit_of, records))
    facts: list[tuple[str, Iterable[str]]] = [
        ("Commit", commits),
        ("dvc.lock, SHA-256", {hash_text(str(record.get("dvc_lock_sha256") or "–")) for record in records}),
        ("Processor", {str(record.get("cpu", "–")) for record in records}),
        ("Threads", {str(record.get("threads", "–")) for record in records}),
        ("Seeds", [str(seed) for seed in seeds]),
        ("Last run finished", [max((str(record.get("finished", "")) for record in records), default="–")]),
    ]
    versions = {(name, str(version)) for record in records for name, version in record.get("versions", {}).items()}
    facts += [(name, {v for n, v in versions if n == name}) for name in sorted({name for name, _ in versions})]
    data = {(str(k), str(v)) for record in records for k, v in record.get("data_sha256", {}).items()}
    rows: list[list[Text]] = [[fact, _listed(values)] for fact, values in facts]
    rows += [[f"Data: {name}", (Code(hash_text(digest)), "…")] for name, digest in sorted(data)]
    folded = Details("Versions, machine and hashes", [Table(("What", "Value"), rows, "ll")])
    said = f"The runs are of commit {_listed(map(hash_text, commits))}."
    return [Heading("Where the numbers come from"), Paragraph(said), folded]


def commit_of(record: Mapping[str, Any]) -> str:
    """The commit of the code that has made a run, from its record."""
    changed = " with uncommitted changes" if record.get("git_dirty") else ""
    return f"{record.get('git_commit') or 'none'}{changed}"


def citation(paper: Paper) -> Paragraph:
    """Authors, linked title, venue and year."""
    names = f"{', '.join(paper.authors[:-1])} and {paper.authors[-1]}" if len(paper.authors) > 1 else paper.authors[0]
    return Paragraph((f"{names}: ", Link(paper.title, paper.url), f". {paper.venue} {paper.year}."))


def _seeds(runs: Iterable[RunResults]) -> list[int]:
    """The seeds that were trained."""
    return sorted({seed for run in runs for seed in run.members or run.seeds})


def _mean(run: RunResults, key: str) -> float | None:
    values = [record[key] for record in run.runs.values() if record.get(key) is not None]
    return statistics.fmean(values) if values else None


def _minutes(run: RunResults) -> float | None:
    seconds = [record["wall_seconds"] for record in run.runs.values() if record.get("wall_seconds") is not None]
    return sum(seconds) / 60.0 if seconds else None


def _listed(values: Iterable[object]) -> str:
    ordered = values if isinstance(values, list) else sorted(values, key=str)
    return ", ".join(str(value) for value in ordered) or "–"
