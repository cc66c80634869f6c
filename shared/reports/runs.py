"""What a report says of its runs, claim or no claim: learning, scores, costs, the paper's tables, provenance."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.claims.comparisons import Floor
from shared.claims.competence import below, is_trained
from shared.claims.estimates import estimate
from shared.claims.outcomes import Evidence
from shared.claims.results import RunResults
from shared.metrics.quantities import Measure
from shared.metrics.registry import by_theme, known, measure
from shared.reports import document as doc
from shared.reports.document import SPACE, code, hash_text, number, plain, sentence, signed, strong, typeset
from shared.reports.exhibits import KindReport, Results
from shared.reports.naming import has_tokens, name_and_code, name_of, token_of
from shared.reports.paper import Column, Paper, PaperTable
from shared.reports.studies import is_study, study_tables
from shared.reports.verdicts import metric_title, value_text

Tasks = Mapping[str, list[RunResults]]
Floors = Mapping[str, Floor]
ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}  # what is better
SCORES = ("bleu", "chrf", "perplexity")  # that models of several papers are compared by
OPERATIONS = "training_operations"  # the metric that counts those of a run
WIDEST = 5
"""Measures that fit on a page beside each other; more stand in several tables."""
CONVENTION = (
    "Operations are floating-point ones: two for each multiplication with its addition, the backward pass counted "
    "as twice the forward pass, padding included."
)
PAPERS_OWN = "paper_scale"  # the scale with the paper's data and models
ELSEWHERE = (
    "Ours come from {data} and smaller models: compare the order of the rows, not the numbers. Differences stand "
    "beside them only at the scale that has the paper's models, too."
)
SOURCES = (
    "Sources: C:paper is read in the paper, C:code in its authors' code, C:note in a note on it; D is derived by "
    "arithmetic, M from memory."
)


def learned_blocks(floors: Floors, tasks: Tasks) -> list[doc.Block]:
    """Have the models learned: the floor of every task with its reason, then a row per variant.

    Args:
        floors: task to what its models must reach.
        tasks: to the variants that were run.
    """
    heading = doc.Heading("Have the models learned?")
    stated = {task: floors[task] for task in tasks if task in floors}
    if not stated:
        said = "No floor is stated for any task of these runs: that the models have learned was not checked."
        return [heading, doc.Paragraph(said)]
    rows: list[list[doc.Text]] = []
    for task, floor in stated.items():
        for run in filter(is_trained, tasks[task]):
            seeds = run.seeds
            measured = any(floor.metric in run.metrics[seed] for seed in seeds)
            reached = f"{len(seeds) - len(below(floor, run, seeds))} of {len(seeds)}" if measured else "not measured"
            rows.append([code(task), name_and_code(run.variant), reached, floor.exempt.get(run.variant, "")])
    shown = 4 if any(row[-1] for row in rows) else 3
    columns = ("Task", "Variant", "Seeds that learned", "Exempt, because")[:shown]
    reasons: list[doc.Text] = [
        f"{code(task)}: {strong(_floor_text(floor, tasks[task]))}. {sentence(floor.because)}"
        for task, floor in stated.items()
    ]
    return [heading, doc.Bullets(reasons), doc.Table(columns, [row[:shown] for row in rows], "lllt"[:shown])]


def _floor_text(floor: Floor, runs: list[RunResults]) -> str:
    title, bound = metric_title(floor.metric, token_of(runs)), floor.at_most
    most = "at least" if bound is None else "at most"
    return f"{title} {most} {value_text(floor.metric, (floor.at_least or 0.0) if bound is None else bound)}"


def our_results(
    tasks: Tasks, results: Results, kind: KindReport, data: Mapping[str, Sequence[doc.Block]] | None = None
) -> list[doc.Block]:
    """The tables of scores of every task, with what its kind adds, and the variants that were not run.

    Args:
        tasks: to the variants that were run.
        results: of all variants.
        kind: what reports of the paper's kind of task show.
        data: task to what is said of its data.
    """
    blocks: list[doc.Block] = [doc.Heading("Results of every variant")]
    for task, runs in tasks.items():
        blocks += [doc.Heading(f"Task {code(task)}", level=3), *(data or {}).get(task, ()), *score_tables(runs)]
        blocks += [block for run in runs if is_study(run) for block in (*study_tables(run), *_seeds_of([run], "Mean"))]
        blocks += [*_notes(runs), *kind.tables(runs)]
    skipped: dict[str, list[str]] = defaultdict(list)
    for run in results.values():
        if run.not_run is not None:
            skipped[run.not_run].append(name_and_code(run.variant))
    if skipped:
        lines = [f"{', '.join(names)}: {reason}" for reason, names in skipped.items()]
        blocks += [doc.Paragraph("Not run at this scale:"), doc.Bullets(lines)]
    return blocks


def score_tables(runs: Sequence[RunResults], split: str = "") -> list[doc.Block]:
    """Tables of a theme's measures each, with the variants and metrics that have any, and below them their seeds.

    Arrows say which way is better, and the best mean of a column is bold, whether or not it is surely the best. The
    first table of a theme also says how large and how long trained the models are.

    Args:
        runs: of one task.
        split: a further test split, whose metrics have its name before them; without one the first split.
    """
    blocks: list[doc.Block] = []
    for names in by_theme({name for run in runs for name in run.mean}):
        measures = {f"{split}.{name}" if split else name: measure(name) for name in names}
        shown = [name for name in measures if any(name in run.mean for run in runs)]
        scored = [run for run in runs if any(name in run.mean for name in shown)]
        count = -(-len(shown) // WIDEST)
        size = -(-len(shown) // count) if shown else 1
        for at in range(0, len(shown), size):
            blocks.append(_scores(scored, {name: measures[name] for name in shown[at : at + size]}, split, not at))
        blocks += _seeds_of(scored, "Mean ± standard deviation")
    return blocks


def _scores(runs: Sequence[RunResults], measures: Mapping[str, Measure], split: str, first: bool) -> doc.Table:
    best = {name: _best_of(runs, name, of.better) for name, of in measures.items()}
    titles = [f"{of.title.format(token=token_of(runs))}{ARROWS[of.better]}" for of in measures.values()]
    rows: list[list[doc.Text]] = []
    for run in runs:
        sizes = [plain(mean_of(run, key), 0) for key in ("parameter_count", "updates")] if first else []
        shown = {name: _spread(run, name, of.digits) for name, of in measures.items()}
        marked = (strong(cell) if best[name] == run.variant else cell for name, cell in shown.items())
        rows.append([name_and_code(run.variant), *sizes, *marked])
    heads = ("Parameters", "Updates") if first else ()
    return doc.Table((f"Variant, split {split}" if split else "Variant", *heads, *titles), rows)


def _spread(run: RunResults, metric: str, digits: int) -> str:
    """Mean over the seeds, with their standard deviation if there are several and all are finite."""
    values = [metrics[metric] for metrics in run.metrics.values() if metric in metrics]
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return plain(run.mean.get(metric), digits)
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return f"{plain(mean, digits)}{SPACE}±{SPACE}{plain(deviation, digits)}"


def _best_of(runs: Sequence[RunResults], metric: str, better: str | None) -> str | None:
    """The variant with the best mean; None where there is no best one."""
    means = {run.variant: run.mean[metric] for run in runs if math.isfinite(run.mean.get(metric, math.nan))}
    if better is None or len(set(means.values())) < 2:
        return None
    return (max if better == "higher" else min)(means, key=means.__getitem__)


def _seeds_of(runs: Sequence[RunResults], what: str) -> list[doc.Block]:
    """A sentence with the seeds that the numbers of a table summarise; it names the variants if their seeds differ."""
    sharing: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for run in runs:
        if len(run.seeds) > 1:
            sharing[tuple(run.seeds)].append(code(run.variant))
    if not sharing:
        return []
    said = "; ".join(
        ", ".join(map(str, seeds)) + (f" ({', '.join(variants)})" if len(sharing) > 1 else "")
        for seeds, variants in sorted(sharing.items())
    )
    single = "; those without ± are of one seed" if any(len(run.seeds) == 1 for run in runs) else ""
    return [doc.Paragraph(f"{what} over seeds {said}{single}.")]


def _notes(runs: list[RunResults]) -> list[doc.Block]:
    """Below a table: what an ensemble and a token are, and the signatures of its metrics."""
    said = []
    if any(run.members for run in runs):
        said.append("An ensemble is the models of all seeds, judged once as one.")
    if any(map(has_tokens, runs)):
        said.append(f"One token is one {token_of(runs)}.")
    signatures = {name: text for run in runs for name, text in run.signatures.items()}
    lines = [" ".join(said)] if said else []
    lines += [f"{measure(name).title}: {code(text)}" for name, text in sorted(signatures.items())]
    return [doc.Paragraph(line) for line in lines]


def cost(tasks: Tasks) -> list[doc.Block]:
    """What training cost, per variant; operations where they were counted. What is alike in all runs is said once."""
    counted = any(OPERATIONS in run.mean for runs in tasks.values() for run in runs)
    trained = [run for runs in tasks.values() for run in runs if not (run.members or is_study(run))]
    columns = ["Variant", "Updates", "Predicted tokens/s", "Core minutes, all seeds", "Peak memory, MiB"]
    rows: list[list[doc.Text]] = []
    for run in trained:
        seconds = [each["processor_seconds"] for each in run.runs.values() if each.get("processor_seconds") is not None]
        rows.append([
            name_and_code(run.variant), plain(mean_of(run, "updates"), 0), plain(mean_of(run, "tokens_per_second"), 0),
            plain(sum(seconds) / 60.0 if seconds else None, 1), plain(mean_of(run, "peak_memory_mib"), 0),
        ])  # fmt: skip
    if counted:
        columns.insert(2, "Operations")
        for run, row in zip(trained, rows, strict=True):
            row.insert(2, number(run.mean.get(OPERATIONS)))
    align = "lrrrr" + "r" * counted
    alike = list[str]()
    for title, key in (("Device", "device"), ("Stopped because", "stopped_because")):
        cells = [_listed({str(record.get(key, "–")) for record in run.runs.values()}) for run in trained]
        if len(set(cells)) == 1:
            alike.append(f"{title.lower()} {cells[0]}")
            continue
        columns.append(title)
        align += "l"
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    said = [f"{CONVENTION} The mean over the seeds."] if counted else []
    said += [f"All runs: {'; '.join(alike)}."] if alike else []
    note = [doc.Paragraph(" ".join(said))] if said else []
    return [doc.Heading("Cost of training"), doc.Table(columns, rows, align), *note]


def mean_of(run: RunResults, key: str) -> float | None:
    """A number of the run records, mean over the seeds that have it."""
    values = [record[key] for record in run.runs.values() if record.get(key) is not None]
    return statistics.fmean(values) if values else None


def beside_the_paper(
    paper: Paper, tasks: Tasks, scale: str, evidence: Mapping[str, Evidence] | None = None
) -> list[doc.Block]:
    """The paper's tables with our number where a variant corresponds; at paper_scale with its distance.

    Args:
        paper: its facts.
        tasks: task to the runs of its variants.
        scale: of these runs.
        evidence: variant to what its data are.
    """
    same_data, kinds = scale == PAPERS_OWN, {*(evidence or {}).values()} - {"measured"}
    own = "paper's data"
    data = "other data" if own not in kinds else "the paper's data" if kinds == {own} else "the paper's and other data"
    said = "Ours come from the paper's data; Δ is ours minus the paper's." if same_data else ELSEWHERE
    blocks: list[doc.Block] = [doc.Heading("The paper's tables beside ours"), doc.Paragraph(said.format(data=data))]
    for table in paper.tables:
        blocks.append(doc.Heading(f"{table.where}: {table.title}", level=3))
        blocks.append(_paper_table(table, tasks, same_data))
        if table.note:
            blocks.append(doc.Paragraph(table.note))
    return blocks


def _paper_table(table: PaperTable, tasks: Tasks, same_data: bool) -> doc.Table:
    columns, align = ["Model"], "l"
    cells = [[str(row["label"])] for row in table.rows]
    for column in table.columns:
        printed = [row[column.key] for row in table.rows]
        numeric = all(value is None or isinstance(value, int | float) for value in printed)
        decimals = max((_decimals(value) for value in printed if isinstance(value, float)), default=0)
        in_paper = any(value is not None for value in printed)
        if in_paper:
            columns.append(column.title)
            align += "r" if numeric else "l"
            for cell, value in zip(cells, printed, strict=True):
                cell.append(plain(value, decimals) if isinstance(value, float) else _written(value))
        for task, runs in tasks.items():
            ours = [_counterpart(table, row, column, runs) for row in range(len(table.rows))]
            if found := [run for run in ours if run is not None]:
                network = any(is_trained(run) and not is_study(run) for run in found)
                whose = f"{'ours ' * in_paper}on {task}" if network else "computed here"
                columns.append(f"{column.title}, {whose}{' (Δ)' * (numeric and same_data)}")
                align += "r"
                for row, (cell, run) in enumerate(zip(cells, ours, strict=True)):
                    cell.append("–" if run is None else _ours(table, row, column, run, same_data))
    return doc.Table(columns, cells, align)


def _decimals(value: float) -> int:
    """Digits after the decimal point in the shortest form of a number, or of its mantissa in scientific notation."""
    return len(str(value).partition("e")[0].partition(".")[2])


def _written(value: object) -> str:
    """A cell of one of the paper's tables."""
    return "–" if value is None else typeset(str(value)) if isinstance(value, float) else str(value)


def _counterpart(table: PaperTable, row: int, column: Column, runs: list[RunResults]) -> RunResults | None:
    """The first run that corresponds to a row and has a number for the column."""
    wanted, metric = table.variants(row), table.metric(row, column)
    return next((run for run in runs if run.variant in wanted and metric in run.mean), None)


def _ours(table: PaperTable, row: int, column: Column, run: RunResults, same_data: bool) -> str:
    """The number of a run, on the same data with its distance from the paper's."""
    metric, theirs = table.metric(row, column) or "", table.rows[row][column.key]
    ours = run.mean[metric]
    shown = plain(ours, 2) if known(metric) else number(ours)
    return f"{shown}{SPACE}({signed(ours - theirs, 2)})" if same_data and isinstance(theirs, int | float) else shown


def settings(paper: Paper, scale: str, deviations: Sequence[str]) -> list[doc.Block]:
    """What deviates from the paper, the paper's settings, what its authors' program does, and its sizes."""
    blocks: list[doc.Block] = [doc.Heading("Deviations from the paper at this scale")]
    blocks.append(doc.Bullets(deviations) if deviations else doc.Paragraph(f"None are recorded for the {scale} scale."))
    if paper.hyperparameters:
        rows = [[each.item, _written(each.value), each.provenance] for each in paper.hyperparameters]
        blocks += [doc.Heading("The paper's settings"), doc.Table(("Setting", "Value", "Source"), rows, "lll")]
    if paper.program:
        rows = [[each.item, each.paper or "–", each.program, each.here, each.source()] for each in paper.program]
        columns = ("What", "The paper", "Their program", "Here", "Known by")
        blocks += [doc.Heading("The paper, its authors' program, and this replication")]
        blocks += [doc.Table(columns, rows, "ltttl")]
    if counts := paper.parameter_counts:
        models = list(counts.totals)
        rows = [[str(part["part"]), *(plain(int(part[model]), 0) for model in models)] for part in counts.parts]
        rows.append(["total", *(plain(counts.totals[model], 0) for model in models)])
        blocks += [doc.Heading("The paper's model sizes"), doc.Table(("Parameters", *models), rows)]
        blocks += [doc.Paragraph(f"{counts.note} (source: {counts.provenance}).")] if counts.note else []
    return [*blocks, doc.Paragraph(SOURCES)]


def provenance(tasks: Tasks) -> list[doc.Block]:
    """Code, data, versions and machine behind the numbers."""
    runs = [run for group in tasks.values() for run in group]
    records = [record for run in runs for record in run.runs.values()]
    commits = set(map(commit_of, records))
    facts: dict[str, Iterable[object]] = {
        "Commit": commits,
        "dvc.lock, SHA-256": {hash_text(str(record.get("dvc_lock_sha256") or "–")) for record in records},
        "Processor": {str(record.get("cpu", "–")) for record in records},
        "Threads": {str(record.get("threads", "–")) for record in records},
        "Seeds": sorted({seed for run in runs for seed in run.members or run.seeds}),
        "Last run finished": [max((str(record.get("finished", "")) for record in records), default="–")],
    }
    versions: dict[str, set[str]] = defaultdict(set)
    for record in records:
        for name, version in record.get("versions", {}).items():
            versions[name].add(str(version))
    facts |= dict(sorted(versions.items()))
    data = {(str(k), str(v)) for record in records for k, v in record.get("data_sha256", {}).items()}
    rows = [[fact, _listed(values)] for fact, values in facts.items()]
    rows += [[f"Data: {name}", f"{code(hash_text(digest))}…"] for name, digest in sorted(data)]
    folded = doc.Details("Versions, machine and hashes", [doc.Table(("What", "Value"), rows, "ll")])
    said = f"The runs are of commit {_listed(map(hash_text, commits))}."
    return [doc.Heading("Where the numbers come from"), doc.Paragraph(said), folded]


def commit_of(record: Mapping[str, Any]) -> str:
    """The commit of the code that has made a run, from its record."""
    changed = " with uncommitted changes" if record.get("git_dirty") else ""
    return f"{record.get('git_commit') or 'none'}{changed}"


def _listed(values: Iterable[object]) -> str:
    ordered = values if isinstance(values, list) else sorted(values, key=str)
    return ", ".join(str(value) for value in ordered) or "–"


def run_entries(results: Results, floors: Floors) -> list[dict[str, Any]]:
    """What runs.json of a report has: of every trained variant its data, scores with intervals, and costs.

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
            **{key: round(mean_of(run, of) or 0.0, 3) for key, of in _COSTS.items()},
            "operations": run.mean.get(OPERATIONS),
            "scores": {name: found for name in SCORES if (found := _interval(run, name)) is not None},
        }
        for run in results.values()
        if run.runs and not run.members and all("fingerprint" in each for each in run.runs.values())
    ]


_COSTS = {"parameters": "parameter_count", "processor_seconds": "processor_seconds"}


def _interval(run: RunResults, name: str) -> list[float] | None:
    """A score and its interval; None where the run has no such score, or not a finite one in every seed."""
    if (found := estimate(run, name)) is None:
        return None
    values = found.value, *found.interval()
    return [round(value, 6) for value in values] if all(map(math.isfinite, values)) else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
