"""Runs and claims made in memory, with effects of known size."""

from pathlib import Path

import numpy as np

from shared.claims.results import RunResults
from shared.claims.schema import Claim, Claims
from shared.claims.verdicts import decide

BECAUSE = "smaller effects change nothing"


def made(variant, metrics, *, task="made", seeds=None, examples=None, folder=None):
    """A run: metric to its number for every seed; examples are seed to list, read from ``folder`` if None."""
    count = len(next(iter(metrics.values())))
    seeds = tuple(range(1, count + 1)) if seeds is None else seeds
    of_seeds = {seed: {name: float(row[i]) for name, row in metrics.items()} for i, seed in enumerate(seeds)}
    mean = {name: float(np.mean(row)) for name, row in metrics.items()}
    run = RunResults(folder or Path("made") / variant, variant, task, of_seeds, mean, {}, "token")
    if examples is not None:
        vars(run)["examples"] = examples
    return run


def by_name(*runs):
    return {run.variant: run for run in runs}


def losses(scores, *, split="test", **fields):
    """Examples with a loss each: scores (K, E), seeds from 1; other fields hold one value per example."""
    extra = [{name: values[i] for name, values in fields.items()} for i in range(scores.shape[1])]
    return {
        seed: [{"id": str(i), "split": split, "nll": float(nll), "tokens": 1, **extra[i]} for i, nll in enumerate(row)]
        for seed, row in enumerate(scores, start=1)
    }


def with_losses(variant, scores, **fields):
    """A run whose examples carry their losses; metrics.json holds the mean."""
    return made(variant, {"nll_per_token": scores.mean(axis=1)}, examples=losses(scores, **fields))


def primary(**changes):
    """The fields of a comparison of score, a against b."""
    base = {"kind": "greater", "name": "primary", "metric": "score", "relevant": 1.0, "because": BECAUSE}
    base["variants"] = ("a", "b")
    return {key: value for key, value in (base | changes).items() if value is not None}


def content(identifier="T99-C1", **changes):
    """The fields of a claim that its primary comparison decides."""
    base = {"id": identifier, "statement": "a is better", "where": "Table 1", "in_paper": {"text": "+1"}}
    return base | {"primary": primary()} | changes


def claim(identifier="T99-C1", **changes):
    return Claim.model_validate(content(identifier, **changes))


def comparison(**changes):
    """The primary comparison with these changes."""
    return claim(primary=primary(**changes)).primary


def paper(*claims, floors=None):
    return Claims(claims=claims, floors=floors or {})


UNIT = np.array([-1.26491106, -0.63245553, 0.0, 0.63245553, 1.26491106])
"""Five seeds of mean 0 and deviation 1."""


def pair(effect, spread=0.1, *, seeds=UNIT, base=4.0):
    """Two sides that differ by ``effect`` on average, and by ``spread`` from seed to seed."""
    return [made("a", {"score": base + effect + spread * seeds}), made("b", {"score": np.full(len(seeds), base)})]


def decided(runs, claims=None, *, floors=None, **changes):
    """The decision on the first claim: by default on the primary comparison with these changes."""
    return decide(claims or paper(claim(primary=primary(**changes)), floors=floors), by_name(*runs), "quick")[0]
