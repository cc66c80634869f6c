"""The command ``list``: all papers, scales, tasks and variants, and of which there are trained and judged models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.claims.scales import SCALES
from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import run_folder
from shared.records import read_record
from shared.tasks.protocol import papers

LEFT_OUT = "–"
EXPLAINED = (
    "Seeds with a checkpoint / with metrics, of all seeds. Checkpoints lie on the machine that has trained; metrics "
    f"come with the project. {LEFT_OUT}: left out at this scale. 'list <paper>' says more."
)


class State(NamedTuple):
    """What there is of a variant at a scale.

    Attributes:
        task: its name; empty where it is left out.
        trained, judged, seeds: how many seeds have a checkpoint and metrics, and how many there are to be.
        note: whose runs it has, why it does not run, or nothing.
    """

    task: str
    trained: int
    judged: int
    seeds: int
    note: str = ""

    @property
    def counted(self) -> str:
        """In a cell of a table."""
        return f"{self.trained}/{self.judged} of {self.seeds}" if self.seeds else LEFT_OUT


def list_runs(paper: str | None = None, *, console: Console | None = None) -> None:
    """Print a table of every paper, or of one paper a table for every scale, with the reasons for what is left out.

    Raises:
        ReplicationError: there is no such paper.
    """
    console = console or Console(highlight=False)
    if paper is not None:
        if paper not in papers():
            raise ReplicationError(f"there is no paper '{paper}'{near(paper, papers())}.")
        for scale in _scales(paper):
            _print_scale(ScaleFile(paper, scale), console)
        return
    for each in papers():
        _print_paper([ScaleFile(each, scale) for scale in _scales(each)], console)
    console.print(EXPLAINED)


def state(settings: ScaleFile, variant: str) -> State:
    """What there is of a variant."""
    if variant in settings.left_out:
        return State("", 0, 0, 0, settings.left_out[variant])
    config, folder = settings.run(variant), run_folder(settings.paper, settings.scale) / variant
    lent = settings.lent.get(variant)
    own = folder if lent is None else run_folder(lent.paper, settings.scale) / lent.variant
    name = f"{config.evaluation.checkpoint}.ckpt"
    trained = sum((own / "train" / f"seed{seed}" / "checkpoints" / name).is_file() for seed in config.seeds)
    metrics = _metrics(folder / "metrics.json")
    judged = sum(str(seed) in metrics.get("seeds", {}) for seed in config.seeds)
    note = "" if lent is None else f"the runs of {lent.paper}.{lent.variant}"
    if "not_run" in metrics:
        note = f"not run: {metrics['not_run']}"
    return State(settings.task_of(variant), trained, judged, len(config.seeds), note)


def _scales(paper: str) -> list[str]:
    """Those that a paper has, from the smallest."""
    return [scale for scale in SCALES if (Path("replications") / paper / scale / "params.yaml").is_file()]


def _metrics(path: Path) -> dict[str, Any]:
    again = "run its evaluate stage again"
    return read_record(path, again, {"seeds": dict | None}) if path.exists() else {}


def _print_paper(settings: Sequence[ScaleFile], console: Console) -> None:
    """A row for each variant, a column for each scale, and the tasks of each scale below."""
    first = settings[0]
    console.print(Text(f"{first.paper} ({first.kind})", style="bold"))
    table = Table("variant", *(each.scale for each in settings), box=None, pad_edge=False)
    for variant in first.known():
        table.add_row(variant, *(state(each, variant).counted for each in settings))
    console.print(table)
    for each in settings:
        console.print(Text(f"tasks, scale {each.scale}: {', '.join(each.tasks) or 'none'}", style="dim"))
    console.print()


def _print_scale(settings: ScaleFile, console: Console) -> None:
    """A row for each variant that runs, and the reasons for the others."""
    console.print(Text(f"{settings.paper} ({settings.kind}), scale {settings.scale}", style="bold"))
    table = Table("variant", "task", "trained", "judged", "seeds", "", box=None, pad_edge=False)
    for variant in settings.judged():
        found = state(settings, variant)
        table.add_row(variant, found.task, str(found.trained), str(found.judged), str(found.seeds), Text(found.note))
    console.print(table)
    reasons: dict[str, list[str]] = {}
    for variant, reason in settings.left_out.items():
        reasons.setdefault(reason, []).append(variant)
    for reason, variants in reasons.items():
        console.print(Text(f"left out: {', '.join(variants)}: {' '.join(reason.split())}", style="dim"))
    console.print()
