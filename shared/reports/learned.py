"""Have the models learned: what every task asks for, and how many seeds of every variant reach it."""

from __future__ import annotations

from collections.abc import Mapping

from shared.claims.comparisons import Floor
from shared.claims.competence import below, is_trained
from shared.claims.results import RunResults
from shared.reports.document import Block, Bullets, Code, Heading, Paragraph, Strong, Table, Text, sentence
from shared.reports.naming import called, token_of
from shared.reports.verdicts import metric_title, value_text

Tasks = Mapping[str, list[RunResults]]
NO_FLOOR = "No floor is stated for any task of these runs: that the models have learned was not checked."


def learned_blocks(floors: Mapping[str, Floor], tasks: Tasks) -> list[Block]:
    """The floors with their reasons, then a row per variant.

    Args:
        floors: task to what its models must reach.
        tasks: to the variants that were run.
    """
    heading = Heading("Have the models learned?")
    stated = {task: floors[task] for task in tasks if task in floors}
    if not stated:
        return [heading, Paragraph(NO_FLOOR)]
    rows: list[list[Text]] = []
    for task, floor in stated.items():
        for run in filter(is_trained, tasks[task]):
            seeds = run.seeds
            measured = any(floor.metric in run.metrics[seed] for seed in seeds)
            reached = f"{len(seeds) - len(below(floor, run, seeds))} of {len(seeds)}" if measured else "not measured"
            rows.append([Code(task), called(run.variant), reached, floor.exempt.get(run.variant, "")])
    shown = 4 if any(row[-1] for row in rows) else 3
    columns = ("Task", "Variant", "Seeds that learned", "Exempt, because")[:shown]
    reasons: list[Text] = [
        (Code(task), ": ", Strong(_floor_text(floor, tasks[task])), f". {sentence(floor.because)}")
        for task, floor in stated.items()
    ]
    return [heading, Bullets(reasons), Table(columns, [row[:shown] for row in rows], "lllt"[:shown])]


def _floor_text(floor: Floor, runs: list[RunResults]) -> str:
    title = metric_title(floor.metric, token_of(runs))
    if floor.at_most is not None:
        return f"{title} at most {value_text(floor.metric, floor.at_most)}"
    assert floor.at_least is not None, "a floor has one of the two bounds"
    return f"{title} at least {value_text(floor.metric, floor.at_least)}"
