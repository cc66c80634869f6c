"""Whether a comparison may decide: have the models learned, have the two sides settled, would twice the updates agree.

A model that has not learned yet says nothing of its architecture. Checks bind every verdict, for and against:

* the floor: of the seeds of a variant that is meant to be good, four in five reach what its task asks for;
* room: where no effect was found, the rival is not so good that no relevant effect was possible;
* control: there, something that is known to have the effect on these data shows it;
* tuning: before a claim is contradicted, the side of the paper has the best of several values of its settings;
* the gap: between half of the updates and their end, the difference of the sides' validation losses has not moved
  towards the other verdict by more than half;
* doubling: with twice the updates the effect keeps its side and half of its size;
* order: a correlation over variants is of their differences, and not of what chance does to both measures of a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from shared.claims.comparisons import Comparison, Correlation, Floor, Sides, Trend
from shared.claims.results import RunResults, read_curve
from shared.claims.rules import AGREE, DOUBLED_SEEDS, LEARNED, LEFT
from shared.claims.statistics import LEVEL
from shared.claims.words import number_of
from shared.metrics.quantities import Array, perplexity
from shared.metrics.registry import measure

Passed = Literal["yes", "no", "not asked", "cannot be told"]
MISSED = ("no effect that matters", "real but too small to matter")
"""Kinds of a contradiction by which there is no effect that matters."""


@dataclass(frozen=True)
class Check:
    """One of them.

    Attributes:
        name: "floor", "room", "control", "tuning", "gap", "doubling" or "order".
        passed: "not asked" where it does not apply or could not be afforded.
        said: what was found, for the report.
        verdict: what the claim's verdict says where the check failed, after "inconclusive: ".
    """

    name: str
    passed: Passed
    said: str
    verdict: str = ""


@dataclass(frozen=True)
class Learned:
    """How many seeds of a variant reach the floor of its task."""

    task: str
    variant: str
    reached: int
    seeds: int
    exempt: str = ""

    @property
    def enough(self) -> bool:
        """Whether four in five seeds reach the floor, or the variant is exempt."""
        return bool(self.exempt) or self.reached >= LEARNED * self.seeds


def count_learned(floors: Mapping[str, Floor], runs: Sequence[RunResults], seeds: Sequence[int]) -> tuple[Learned, ...]:
    """Count for every run, of a task that has a floor, the seeds that reach it.

    Args:
        floors: task to what its models must reach.
        runs: of one comparison.
        seeds: that are compared; others decide nothing.
    """
    found = []
    for run in runs:
        if (floor := floors.get(run.task)) is not None and is_trained(run):
            reached = len(seeds) - len(below(floor, run, seeds))
            found.append(Learned(run.task, run.variant, reached, len(seeds), floor.exempt.get(run.variant, "")))
    return tuple(found)


def below(floor: Floor, run: RunResults, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds of a run that do not reach the floor of its task, or lack its metric."""
    numbers = {seed: run.metrics[seed].get(floor.metric) for seed in seeds}
    return tuple(seed for seed, number in numbers.items() if number is None or not floor.reached(number))


def is_trained(run: RunResults) -> bool:
    """Whether the run made updates; studies measure untrained layers, so no floor applies to them."""
    return not run.runs or any(record.get("updates", 1) for record in run.runs.values())


def floor_check(comparison: Comparison, counts: Sequence[Learned], runs: Sequence[RunResults]) -> Check:
    """Whether the variants that are meant to be good have learned; a correlation is over models of any quality."""
    if isinstance(comparison, Correlation):
        return Check("floor", "not asked", "a correlation is over models of any quality")
    if not counts:
        trained = any(map(is_trained, runs))
        return Check("floor", "not asked", "the task has no floor" if trained else "nothing is trained")
    said = ", ".join(
        f"{each.variant}: {each.reached} of {each.seeds} learned" + (" (exempt)" if each.exempt else "")
        for each in counts
    )
    if failed := [each.variant for each in counts if not each.enough]:
        return Check("floor", "no", said, f"{' and '.join(failed)} did not learn")
    return Check("floor", "yes", said)


def best_value(metric: str, *, up: bool) -> float:
    """The largest or the least value that a measure can have; of a loss, whose least is unknown, 0."""
    of = measure(metric)
    return of.most if up else 1.0 if of.corpus is perplexity else 0.0


def room_check(comparison: Comparison, how: str, sides: Mapping[str, float]) -> Check:
    """Whether the side that is to be beaten left room for an effect that matters, where none was found.

    Args:
        comparison: what is compared.
        how: kind of the contradiction; "" if the comparison is not contradicted.
        sides: variant to its mean.
    """
    if how not in MISSED:
        return Check("room", "not asked", "no effect was missed")
    if isinstance(comparison, Correlation) or comparison.over is not None:  # whose bounds are below what is possible
        return Check("room", "not asked", "a correlation or a slope has no best value to come near to")
    if isinstance(comparison, Trend):
        rival, up, steps = comparison.variants[0], comparison.kind == "rises", len(comparison.variants) - 1
    else:
        rival, up, steps = comparison.variants[-1], comparison.kind == "greater", 1
    than = comparison.than if isinstance(comparison, Sides) else None
    value, best = sides[rival] if than is None else than, best_value(comparison.metric, up=up)
    if not math.isfinite(best) or (comparison.scale == "log" and best <= 0.0):
        return Check("room", "not asked", "there is no best value")
    ends = np.log((best, value)) if comparison.scale == "log" else np.array((best, value))
    room = float(abs(ends[0] - ends[1])) / steps
    most = "" if up or best else "at most "
    said = f"{rival if than is None else f'{than:g}'} leaves room for {most}{comparison.shown(room):.3g}"
    return Check("room", "yes", said) if room >= comparison.margin else Check("room", "no", said, "no room is left")


def control_check(missing: bool, name: str | None, verdict: str | None) -> Check:
    """Whether what is known to have the effect on these data shows it, where an effect is found missing.

    Args:
        missing: whether one is.
        name: of the comparison that must show it.
        verdict: on that comparison; None where there is none at this scale.
    """
    if not missing:
        return Check("control", "not asked", "no effect was missed")
    if verdict is None:
        return Check("control", "no", "nothing is known to show it on these data", "there is no positive control")
    if verdict in ("reproduced", "verified"):
        return Check("control", "yes", f"'{name}' shows an effect")
    if verdict == "not tested":
        return Check("control", "no", f"'{name}' was not run", "the positive control was not run")
    return Check("control", "no", f"'{name}' does not show one either", "the positive control shows no effect")


def better_side(comparison: Comparison, runs: Sequence[RunResults]) -> RunResults:
    """The side that the claim says is better: the paper's; of two that are to be equal the first."""
    up = measure(comparison.metric).better != "lower"
    first = comparison.kind == "equal" or (comparison.kind in ("greater", "falls")) == up
    return runs[0] if first else runs[-1]


def tuning_check(
    comparison: Comparison, verdict: str, runs: Sequence[RunResults], floors: Mapping[str, Floor],
    untuned: Mapping[str, str] | None,
) -> Check:  # fmt: skip
    """Whether the side of the paper was tuned as it deserves, before the claim is contradicted.

    Of a reproduced claim it is asked of the rival, and only said: no verdict follows from it.

    Args:
        comparison: what is compared.
        verdict: on it.
        runs: of its variants, in order.
        floors: task to what its models must reach.
        untuned: variant to what its search lacks; variants that lack nothing are left out. None: it is not known.
    """
    side = better_side(comparison, runs)
    if verdict == "reproduced" and len(runs) == 2:
        rival = runs[1 if side is runs[0] else 0].variant
        if lacks := (untuned or {}).get(rival):
            return Check("tuning", "cannot be told", f"{rival}: {lacks}")
    if verdict != "contradicted" or untuned is None or isinstance(comparison, Correlation) or not is_trained(side):
        return Check("tuning", "not asked", "nothing was contradicted, or nothing had to be tuned")
    lacks, floor = untuned.get(side.variant, ""), floors.get(side.task)
    if not lacks and floor is not None and floor.published is not None:
        better, found = max if floor.at_most is None else min, side.mean.get(floor.metric, math.nan)
        reached = found == better(found, floor.published)
        lacks = "" if reached else f"it does not reach the {floor.published:g} of published systems"
    if not lacks:
        return Check("tuning", "yes", f"{side.variant} has the best of several values, and is good enough")
    failed = f"{side.variant} was not tuned as the paper's side deserves"
    return Check("tuning", "no", f"{side.variant}: {lacks}", failed)


def gap_check(comparison: Comparison, verdict: str, runs: Sequence[RunResults]) -> Check:
    """Whether the sides' validation losses were still moving towards the other verdict when training ended.

    The gap counts as closing if it has moved there by more than half of what it was at half of the updates. A trend is
    judged by its two ends. Of a comparison that is exempt the gaps are said all the same.
    """
    exempt = "" if comparison.learned is None else comparison.learned.exempt
    gaps = _no_gap(comparison, verdict, runs) or _gaps(runs)
    if isinstance(gaps, str):
        return Check("gap", "not asked", exempt or gaps)
    half, end = gaps
    if _apart(half):
        said = f"at the end the gap is {float(end.mean() / half.mean()):.2f} times that at half of the updates"
    else:
        said = (
            f"the gap at half of the updates, {half.mean():.2g}, cannot be told from none; it ended at {end.mean():.2g}"
        )
    if exempt:
        return Check("gap", "not asked", f"{exempt}; {said}")
    if not _apart(half):
        return Check("gap", "cannot be told", said)
    if comparison.kind == "equal":
        away = abs(half.mean()) - abs(end.mean())
    else:
        ahead = 1.0 if better_side(comparison, runs) is runs[-1] else -1.0  # of losses, of which less is better
        away = ahead * float(half.mean() - end.mean()) * (-1.0 if verdict == "contradicted" else 1.0)
    if away <= (1.0 - LEFT) * abs(half.mean()):
        return Check("gap", "yes", said)
    return Check("gap", "no", said, "still closing")


def _no_gap(comparison: Comparison, verdict: str, runs: Sequence[RunResults]) -> str:
    """Why a gap of validation losses says nothing of a comparison; "" if it does."""
    if isinstance(comparison, Correlation) or len(runs) < 2:
        return "there are no two sides"
    if isinstance(comparison, Sides) and comparison.kind == "equal" and verdict != "contradicted":
        return "a gap that closes is no objection to equality"
    if measure(comparison.metric).theme != "score":
        return f"{measure(comparison.metric).title.format(token='token')} is not what training makes better"
    return ""


def _gaps(runs: Sequence[RunResults]) -> tuple[Array, Array] | str:
    """The sides' difference in validation loss for every seed, at half of the updates and at their end."""
    halves = [_courses(run) for run in (runs[0], runs[-1])]
    seeds = sorted(halves[0].keys() & halves[1].keys())
    if len(seeds) < 2:
        return "no two curves of validation were recorded"
    half, end = (np.array([halves[0][s][at] - halves[1][s][at] for s in seeds]) for at in (0, 1))
    return half, end


def _courses(run: RunResults) -> dict[int, tuple[float, float]]:
    """Seed to its validation loss at half of its updates and at their end."""
    found = {}
    for seed in run.seeds:
        curve = read_curve(run.curve(seed), metric="loss", split="valid")
        if len(curve) > 1:
            last = max(curve)
            half = min(curve, key=lambda step: abs(step - last / 2.0))
            found[seed] = curve[half], curve[last]
    return found


def _apart(values: Array) -> bool:
    """Whether the mean over seeds differs from 0, by Student's t."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return bool(abs(values.mean()) > stdtrit(len(values) - 1, (1.0 + LEVEL) / 2.0) * error)


def doubling_check(comparison: Comparison, effect: float, verdict: str, values: Array | None) -> Check:
    """Whether the verdict would be the same with twice the updates.

    Args:
        comparison: what is compared.
        effect: the effect with the usual number of updates.
        verdict: the verdict on that effect.
        values: the effect of every seed with twice the updates; None where there are no such runs.
    """
    if comparison.learned is not None:
        return Check("doubling", "not asked", comparison.learned.exempt)
    if values is None:
        return Check("doubling", "not asked", "nothing was trained with twice the updates")
    if len(values) < DOUBLED_SEEDS:
        return Check("doubling", "not asked", f"{number_of(len(values), 'seed')} with twice the updates: too few")
    doubled = float(values.mean())
    said = f"the effect is {comparison.shown(doubled):.3g} ({number_of(len(values), 'seed')})"
    if _agrees(comparison, effect, verdict, doubled):
        return Check("doubling", "yes", said)
    return Check("doubling", "no", said, "depends on the budget")


def order_check(comparison: Comparison, repeats: float) -> Check:
    """Whether seeds agree on the order of the variants that a correlation is over.

    Where they do not, what the measures of one run share by chance is all that correlates.

    Args:
        repeats: see :class:`shared.claims.effects.Effects`.
    """
    if not isinstance(comparison, Correlation):
        return Check("order", "not asked", "nothing is correlated")
    said = f"two seeds agree on it by {repeats:.2f}"
    return Check("order", "yes", said) if repeats >= AGREE else Check("order", "no", said, "seeds differ on the order")


def _agrees(comparison: Comparison, effect: float, verdict: str, doubled: float) -> bool:
    """Reproduced: the same side and half of the size. Contradicted: no effect that matters has come up."""
    if isinstance(comparison, Sides) and comparison.kind == "equal":
        away = {"greater": -doubled, "less": doubled, None: abs(doubled)}[comparison.may_be]
        return (away < comparison.margin) == (verdict != "contradicted")
    if verdict == "contradicted":
        return doubled < comparison.margin
    return effect * doubled > 0.0 and abs(doubled) >= LEFT * abs(effect)
