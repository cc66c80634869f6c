"""Which variants share a figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.claims.results import RunResults
from shared.errors import ReplicationError

LINES = 7  # as many as the palette of the figures tells apart


@dataclass(frozen=True)
class Panel:
    """Variants of one task that share a figure.

    Attributes:
        name: for the figure's file.
        title: what the figure's caption begins with.
        runs: 1 to :data:`LINES` of them.
    """

    name: str
    title: str
    runs: list[RunResults]

    @property
    def task(self) -> str:
        """What all of them are trained on."""
        return self.runs[0].task


def by_task(results: Mapping[str, RunResults]) -> dict[str, list[RunResults]]:
    """The variants that were run, grouped by task, in order of name."""
    groups: dict[str, list[RunResults]] = defaultdict(list)
    for name in sorted(results):
        if results[name].not_run is None:
            groups[results[name].task].append(results[name])
    return dict(groups)


def panels(results: Mapping[str, RunResults], chosen: Mapping[str, Sequence[str]]) -> list[Panel]:
    """Few enough variants per figure to tell their lines apart, ordered by task.

    As :func:`chosen_panels`; a task that none of the chosen variants belongs to is shown whole, by name, in as many
    figures as it takes.
    """
    found = chosen_panels(results, chosen)
    shown = {panel.task for panel in found}
    for task, runs in by_task(results).items():
        if task not in shown:
            found += [Panel("", f"Task {task}", runs[i : i + LINES]) for i in range(0, len(runs), LINES)]
    return _named(found)


def chosen_panels(results: Mapping[str, RunResults], chosen: Mapping[str, Sequence[str]]) -> list[Panel]:
    """The panels asked for and no others, ordered by task.

    Args:
        results: all variants.
        chosen: title to variants. Variants that were not run are left out, and so is a panel of several variants of
            which only one was run, or which another panel shows all together.

    Raises:
        ReplicationError: a chosen panel has too many variants, or those of several tasks.
    """
    found = []
    for title, names in chosen.items():
        runs = [results[name] for name in names if name in results and results[name].not_run is None]
        if len(runs) > LINES or len({run.task for run in runs}) > 1:
            raise ReplicationError(
                f"the panel '{title}' needs variants of one task, at most {LINES}; change it in the paper's report.py."
            )
        if len(runs) > 1 or len(names) == len(runs) == 1:
            found.append(Panel("", f"Task {runs[0].task}, {title}", runs))
    return _named([panel for i, panel in enumerate(found) if not _shown(panel, found[:i], found[i + 1 :])])


def _shown(panel: Panel, before: Sequence[Panel], after: Sequence[Panel]) -> bool:
    """Whether another panel has all of its variants; of two with the same variants the first stays."""
    own = _variants(panel)
    return any(own <= _variants(other) for other in before) or any(own < _variants(other) for other in after)


def _variants(panel: Panel) -> set[str]:
    return {run.variant for run in panel.runs}


def _named(found: Sequence[Panel]) -> list[Panel]:
    """Ordered by task, with the task's name, and a number where it has several panels."""
    found = sorted(found, key=lambda panel: panel.task)
    several = Counter(panel.task for panel in found)
    place: Counter[str] = Counter()
    named = []
    for panel in found:
        place[panel.task] += 1
        number = f"_{place[panel.task]}" if several[panel.task] > 1 else ""
        named.append(Panel(f"{panel.task}{number}", panel.title, panel.runs))
    return named
