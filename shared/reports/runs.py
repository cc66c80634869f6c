"""What a report says of its runs, claim or no claim: learning, scores, costs, the paper's tables, provenance."""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.claims.comparisons import Floor
from shared.claims.competence import below, is_trained
from shared.claims.estimates import estimate
from shared.claims.outcomes import Evidence
from shared.claims.results import RunResults
from shared.metrics.registry import by_theme, known, measure
from shared.reports import document as doc
from shared.reports.curves import Size, parse_name
from shared.reports.document import SPACE, code, hash_text, number, plain, signed, strong, typeset
from shared.reports.exhibits import KindReport, Results
from shared.reports.naming import has_tokens, name_and_code, name_of, token_of
from shared.reports.paper import SOURCES, Paper, PaperTable
from shared.reports.verdicts import floor_text, paragraphs, say

Tasks = Mapping[str, list[RunResults]]
Floors = Mapping[str, Floor]
Column = tuple[str, str, Sequence[str]]
"""Of a table, as :func:`shared.reports.document.table_of` takes it."""
ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}  # what is better
SCORES = ("bleu", "chrf", "perplexity")  # that models of several papers are compared by
OPERATIONS = "training_operations"  # the metric that counts those of a run
WIDEST, WIDEST_STUDY = 5, 8
"""Measures, and sizes of a study, that fit on a page beside each other; more stand in several tables, or below."""
CONVENTION = (
    "Operations are floating-point ones: two for each multiplication with its addition, the backward pass counted "
    "as twice the forward pass, padding included."
)
PAPERS_OWN = "paper_scale"  # the scale with the paper's data and models
END = re.compile(r"_(low|high)$")  # of a band or an interval, in the name of what a study measures


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
    shown = [(task, floor, run) for task, floor in stated.items() for run in tasks[task] if is_trained(run)]
    exempt = [floor.exempt.get(run.variant, "") for _, floor, run in shown]
    columns: list[Column] = [
        ("Task", "l", [code(task) for task, *_ in shown]),
        ("Variant", "l", [name_and_code(run.variant) for *_, run in shown]),
        ("Seeds that learned", "l", [_reached(floor, run) for _, floor, run in shown]),
    ]
    columns += [("Exempt, because", "t", exempt)] if any(exempt) else []
    reasons = []
    for task, floor in stated.items():
        asked = " ".join(floor_text(floor, token_of(tasks[task])))
        reasons.append(f"{code(task)}: {strong(asked)}. {doc.sentence(floor.because)}")
    return [heading, doc.Bullets(reasons), doc.table_of(*columns)]


def _reached(floor: Floor, run: RunResults) -> str:
    if not any(floor.metric in of_seed for of_seed in run.metrics.values()):
        return "not measured"
    return f"{len(run.seeds) - len(below(floor, run, run.seeds))} of {len(run.seeds)}"


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
        measures = [f"{split}.{name}" if split else name for name in names]
        shown = [name for name in measures if any(name in run.mean for run in runs)]
        scored = [run for run in runs if any(name in run.mean for name in shown)]
        count = -(-len(shown) // WIDEST)
        size = -(-len(shown) // count) if shown else 1
        for at in range(0, len(shown), size):
            blocks.append(_scores(scored, shown[at : at + size], split, not at))
        blocks += _seeds_of(scored, "Mean ± standard deviation")
    return blocks


def _scores(runs: Sequence[RunResults], metrics: Sequence[str], split: str, first: bool) -> doc.Table:
    head = f"Variant, split {split}" if split else "Variant"
    columns: list[Column] = [(head, "l", [name_and_code(run.variant) for run in runs])]
    for title, key in (("Parameters", "parameter_count"), ("Updates", "updates")) if first else ():
        columns.append((title, "r", [plain(mean_of(run, key), 0) for run in runs]))
    for metric in metrics:
        of = measure(metric.removeprefix(f"{split}."))
        best = _best_of(runs, metric, of.better)
        cells = [(run.variant, _spread(run, metric, of.digits)) for run in runs]
        title = f"{of.title.format(token=token_of(runs))}{ARROWS[of.better]}"
        columns.append((title, "r", [strong(cell) if name == best else cell for name, cell in cells]))
    return doc.table_of(*columns)


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
    single = any(len(run.seeds) == 1 for run in runs)
    said = say("over_seeds", shown=what, sharing=sorted(sharing.items()), single=single)
    return [doc.Paragraph(said)] if sharing else []


def _notes(runs: list[RunResults]) -> list[doc.Block]:
    """Below a table: what an ensemble and a token are, and the signatures of its metrics."""
    signatures = {name: text for run in runs for name, text in run.signatures.items()}
    token, together = token_of(runs) if any(map(has_tokens, runs)) else "", any(run.members for run in runs)
    said = paragraphs("notes", token=token, together=together, signatures=sorted(signatures.items()))
    return [doc.Paragraph(each) for each in said]


def cost(tasks: Tasks) -> list[doc.Block]:
    """What training cost, per variant; operations where they were counted. What is alike in all runs is said once."""
    every = [run for group in tasks.values() for run in group]
    runs = [run for run in every if not (run.members or is_study(run))]
    counted = any(OPERATIONS in run.mean for run in every)

    def means(title: str, key: str) -> Column:
        return title, "r", [plain(mean_of(run, key), 0) for run in runs]

    columns: list[Column] = [("Variant", "l", [name_and_code(run.variant) for run in runs])]
    columns.append(means("Updates", "updates"))
    columns += [("Operations", "r", [number(run.mean.get(OPERATIONS)) for run in runs])] if counted else []
    columns += [
        means("Predicted tokens/s", "tokens_per_second"),
        ("Core minutes, all seeds", "r", [plain(_minutes(run), 1) for run in runs]),
        means("Peak memory, MiB", "peak_memory_mib"),
    ]
    alike = []
    for title, key in (("Device", "device"), ("Stopped because", "stopped_because")):
        cells = [_listed({str(record.get(key, "–")) for record in run.runs.values()}) for run in runs]
        if len({*cells}) == 1:
            alike.append(f"{title.lower()} {cells[0]}")
        else:
            columns.append((title, "l", cells))
    note = [doc.Paragraph(each) for each in paragraphs("cost", convention=CONVENTION * counted, alike=alike)]
    return [doc.Heading("Cost of training"), doc.table_of(*columns), *note]


def _minutes(run: RunResults) -> float | None:
    """Processor time of all seeds."""
    seconds = [each["processor_seconds"] for each in run.runs.values() if each.get("processor_seconds") is not None]
    return sum(seconds) / 60.0 if seconds else None


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
    said = say("ours", same_data=same_data, kinds=kinds)
    blocks: list[doc.Block] = [doc.Heading("The paper's tables beside ours"), doc.Paragraph(said)]
    for table in paper.tables:
        blocks.append(doc.Heading(f"{table.where}: {table.title}", level=3))
        blocks.append(_paper_table(table, tasks, same_data))
        if table.note:
            blocks.append(doc.Paragraph(table.note))
    return blocks


def _paper_table(table: PaperTable, tasks: Tasks, same_data: bool) -> doc.Table:
    columns: list[Column] = [("Model", "l", [row.label for row in table.rows])]
    for column in table.columns:
        printed = [row[column.key] for row in table.rows]
        metrics = [row.metric(column) for row in table.rows]
        numeric = all(value is None or isinstance(value, int | float) for value in printed)
        decimals = max((_decimals(value) for value in printed if isinstance(value, float)), default=0)
        in_paper = any(value is not None for value in printed)
        if in_paper:
            cells = [plain(value, decimals) if isinstance(value, float) else _written(value) for value in printed]
            columns.append((column.title, "r" if numeric else "l", cells))
        for task, runs in tasks.items():
            ours = [  # the first run that corresponds to the row and has a number for the column
                next((run for run in runs if run.variant in row.variants and metric in run.mean), None)
                for row, metric in zip(table.rows, metrics, strict=True)
            ]
            if found := [run for run in ours if run is not None]:
                network = any(is_trained(run) and not is_study(run) for run in found)
                whose = f"{'ours ' * in_paper}on {task}" if network else "computed here"
                cells = [
                    "–" if run is None else _ours(metric or "", run, theirs, same_data)
                    for metric, run, theirs in zip(metrics, ours, printed, strict=True)
                ]
                columns.append((f"{column.title}, {whose}{' (Δ)' * (numeric and same_data)}", "r", cells))
    return doc.table_of(*columns)


def _decimals(value: float) -> int:
    """Digits after the decimal point in the shortest form of a number, or of its mantissa in scientific notation."""
    return len(str(value).partition("e")[0].partition(".")[2])


def _written(value: object) -> str:
    """A cell of one of the paper's tables."""
    return "–" if value is None else typeset(str(value)) if isinstance(value, float) else str(value)


def _ours(metric: str, run: RunResults, theirs: object, same_data: bool) -> str:
    """The number of a run, on the same data with its distance from the paper's."""
    ours = run.mean[metric]
    shown = plain(ours, 2) if known(metric) else number(ours)
    return f"{shown}{SPACE}({signed(ours - theirs, 2)})" if same_data and isinstance(theirs, int | float) else shown


def settings(paper: Paper, scale: str, deviations: Sequence[str]) -> list[doc.Block]:
    """What deviates from the paper, the paper's settings, what its authors' program does, and its sizes."""
    blocks: list[doc.Block] = [doc.Heading("Deviations from the paper at this scale")]
    blocks.append(doc.Bullets(deviations) if deviations else doc.Paragraph(f"None are recorded for the {scale} scale."))
    if paper.hyperparameters:
        rows = [[each.item, _written(each.value), SOURCES[each.provenance]] for each in paper.hyperparameters]
        blocks += [doc.Heading("The paper's settings"), doc.Table(("Setting", "Value", "Source"), rows, "lll")]
    if paper.program:
        rows = [[each.item, each.paper or "–", each.program, each.here, each.source()] for each in paper.program]
        columns = ("What", "The paper", "Their program", "Here", "Known by")
        blocks += [doc.Heading("The paper, its authors' program, and this replication")]
        blocks += [doc.Table(columns, rows, "ltttl")]
    if counts := paper.parameter_counts:
        parts = [(each.part, each.counts) for each in counts.parts]
        rows = [[name, *(plain(of[m], 0) for m in counts.totals)] for name, of in (*parts, ("total", counts.totals))]
        blocks += [doc.Heading("The paper's model sizes"), doc.Table(("Parameters", *counts.totals), rows)]
        blocks += [doc.Paragraph(f"{counts.note} ({SOURCES[counts.provenance]}).")] if counts.note else []
    return blocks


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
    said = doc.Paragraph(say("commits", commits=sorted(map(hash_text, commits))))
    return [doc.Heading("Where the numbers come from"), said, folded]


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
            "parameters": round(mean_of(run, "parameter_count") or 0.0, 3),
            "processor_seconds": round(mean_of(run, "processor_seconds") or 0.0, 3),
            "operations": run.mean.get(OPERATIONS),
            "scores": {name: found for name in SCORES if (found := _interval(run, name)) is not None},
        }
        for run in results.values()
        if run.runs and not run.members and all("fingerprint" in each for each in run.runs.values())
    ]


def _interval(run: RunResults, name: str) -> list[float] | None:
    """A score and its interval; None where the run has no such score, or not a finite one in every seed."""
    if (found := estimate(run, name)) is None:
        return None
    values = found.value, *found.interval()
    return [round(value, 6) for value in values] if all(map(math.isfinite, values)) else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def is_study(run: RunResults) -> bool:
    """Whether none of the metrics of the run is a registered measure of a trained model."""
    return not any(known(name) for name in run.mean)


def study_tables(run: RunResults) -> list[doc.Block]:
    """A table for each quantity by size, with a row per subject; and tables of the quantities without size.

    ``<quantity>_low`` and ``<quantity>_high``, the ends of an interval, stand behind the quantity in brackets if it has
    no size; those of quantities by size are left to figures. All other numbers come last.
    """
    parsed = {name: found for name in run.mean if (found := parse_name(name)) is not None}
    quantities = {quantity for _, quantity, _ in parsed.values()}
    sized: dict[str, dict[str, dict[Size, str]]] = defaultdict(lambda: defaultdict(dict))
    alone: dict[str, dict[str, str]] = defaultdict(dict)
    for name, (subject, quantity, size) in parsed.items():
        if END.sub("", quantity) in quantities - {quantity}:
            continue
        if size is None:
            ends = [number(run.mean[end]) for end in (f"{name}_low", f"{name}_high") if end in run.mean]
            value = number(run.mean[name])
            alone[quantity][subject] = doc.with_ends(value, ends) if ends else value
        else:
            sized[quantity][subject][size] = number(run.mean[name])
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for quantity, cells in alone.items():
        together[tuple(cells)].append(quantity)
    others = [[_title(name), number(value)] for name, value in run.mean.items() if name not in parsed]
    return [
        doc.Paragraph(f"Measurements of {name_and_code(run.variant)}; nothing is trained:"),
        *(_by_size(quantity, rows) for quantity, rows in sized.items()),
        *(
            doc.Table(["", *map(_title, names)], [[_spoken(s), *(alone[name][s] for name in names)] for s in subjects])
            for subjects, names in together.items()
        ),
        *([doc.Table(("Number", "Value"), others)] if others else []),
    ]


def _by_size(quantity: str, rows: Mapping[str, Mapping[Size, str]]) -> doc.Table:
    sizes = sorted({size for row in rows.values() for size in row})
    titles = [f"at {size}" if letter == "at" else f"{letter} = {size}" for letter, size in sizes]
    cells = [[row.get(size, "–") for size in sizes] for row in rows.values()]
    heads, subjects = titles, [_spoken(subject) for subject in rows]
    if len(sizes) > WIDEST_STUDY:
        heads, subjects, cells = subjects, titles, [list(column) for column in zip(*cells, strict=True)]
    body = [[head, *row] for head, row in zip(subjects, cells, strict=True)]
    return doc.Table((_title(quantity), *heads), body)


def _title(name: str) -> str:
    spoken = _spoken(name)
    return f"{spoken[0].upper()}{spoken[1:]}"


def _spoken(name: str) -> str:
    return name.replace("_", " ").replace("mse", "MSE")
