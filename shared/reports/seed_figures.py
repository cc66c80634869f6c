"""A small figure for each claim: the effect of every seed, their mean with its interval, no effect, what matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from shared.claims.comparisons import Floor
from shared.claims.competence import below, is_trained
from shared.claims.outcomes import Outcome
from shared.claims.results import RunResults
from shared.claims.schema import Claim
from shared.claims.words import number_of
from shared.reports.document import Figure
from shared.reports.verdicts import effect_text, matters

HEIGHT = 2.1
LETTERS = 13  # points: a phone shows the figure at half of its size
SEED, FAILED, MEAN, RELEVANT, PAPER = "#0072B2", "#D55E00", "#1b1f24", "#009E73", "#CC79A7"


def unlearned(lead: Outcome, floors: Mapping[str, Floor], results: Mapping[str, RunResults]) -> frozenset[int]:
    """The seeds in which a variant that is meant to be good does not reach the floor of its task."""
    asked = [
        (floor, run)
        for run in (results[variant] for variant in lead.variants)
        if (floor := floors.get(run.task)) is not None and run.variant not in floor.exempt and is_trained(run)
    ]
    return frozenset(seed for floor, run in asked for seed in below(floor, run, lead.seeds))


def seed_figure(
    claim: Claim, lead: Outcome, floors: Mapping[str, Floor], results: Mapping[str, RunResults], path: Path
) -> Figure:
    """Draw the primary comparison of a claim to ``path``.

    Every seed is a point, a cross where a model did not learn its task. The mean stands below them with its 95 %
    interval, and the paper's effect where it is the same quantity.
    """
    failed = unlearned(lead, floors, results)
    _draw(lead, failed, path)
    said = [
        f"{claim.id}: every seed (points) and their mean with its 95 % interval (black)",
        f"grey line: no {'difference' if lead.kind == 'equal' else 'effect'}",
        f"green line{'s' if lead.kind == 'equal' else ''}: the smallest that matters",
    ]
    if failed:
        said.append("crosses: seeds in which a model did not learn its task")
    if lead.paper is not None:
        said.append("diamond: the paper's effect")
    seeds = number_of(len(lead.seeds), "seed")
    seen = f"{seeds}: mean effect {effect_text(asdict(lead))}; the smallest that matters is {matters(asdict(lead))}"
    return Figure(path, f"{'; '.join(said)}.", seen)


def _draw(lead: Outcome, failed: frozenset[int], path: Path) -> None:
    from matplotlib.ticker import MaxNLocator

    from shared.reports.figures import drawing, plain_powers

    assert lead.effect is not None, "a comparison of runs that were judged has an effect"
    assert lead.relevant is not None, "and a size that matters"
    outcome, ratio = asdict(lead), lead.scale == "log"
    with drawing(path, height=HEIGHT) as canvas:
        axes = canvas.subplots()
        if ratio:
            axes.set_xscale("log")
        axes.axvline(1.0 if ratio else 0.0, color="#666666", linewidth=1.6)
        ends = (-lead.relevant, lead.relevant) if lead.kind == "equal" and not ratio else (lead.relevant,)
        if lead.kind == "equal" and ratio:
            ends = (1.0 / lead.relevant, lead.relevant)
        for end in ends:
            axes.axvline(end, color=RELEVANT, linewidth=1.6, linestyle="--")
        count = len(lead.seeds)
        for place, (seed, value) in enumerate(zip(lead.seeds, lead.per_seed, strict=True)):
            height = 1.0 + (place + 0.5) / count
            mark, colour = ("X", FAILED) if seed in failed else ("o", SEED)
            axes.plot([value], [height], mark, color=colour, markersize=8, alpha=0.85)
        if lead.interval is not None:
            axes.plot(lead.interval, [0.5, 0.5], color=MEAN, linewidth=3)
        axes.plot([lead.effect], [0.5], "|", color=MEAN, markersize=18, markeredgewidth=3)
        if lead.paper is not None:
            axes.plot([lead.paper], [0.5], "D", color=PAPER, markersize=9)
        axes.set_ylim(0.0, 2.05)
        axes.set_yticks([0.5, 1.5], ["mean", "seeds"])
        axes.grid(False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        axes.tick_params(labelsize=LETTERS, length=0)
        axes.set_xlabel(f"Effect; the smallest that matters is {matters(outcome)}", fontsize=LETTERS)
        if ratio:
            plain_powers(axes.xaxis)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6))
