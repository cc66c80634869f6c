"""Context lengths as metrics of variants, from the losses that evaluation left, and their way into a report."""

import json

import numpy as np
import pytest

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.metrics.context_length import relative_effective_context_length
from shared.tasks.language.context_lengths import context_losses, with_context_lengths

CONTEXT = np.array([10, 20, 30])
SEEDS = (1, 2)


def leave(folder, variant, nats=None, *, seeds=SEEDS, **arrays):
    """A variant with made-up losses (3, 4) for each seed, or without."""
    place = folder / variant
    place.mkdir(parents=True)
    metrics = {"bits": 2.0}
    head = {
        "variant": variant,
        "task": "text",
        "seeds": dict.fromkeys(map(str, seeds), metrics),
        "mean": metrics,
    }
    (place / "metrics.json").write_text(json.dumps(head))
    for seed in seeds if nats is not None else ():
        out = place / "evaluation" / f"seed{seed}"
        out.mkdir(parents=True)
        kept = {"context": CONTEXT, "nats": nats(seed), "places": np.arange(4)}
        np.savez_compressed(out / "contexts.npz", **(kept | arrays))
    return folder


def falling(until):
    """Losses that fall with every step up to the ``until``-th, a little less by each further seed."""
    return lambda seed: np.repeat([[4.0 - min(step, until) + seed / 10] for step in range(3)], 4, axis=1)


def test_every_seed_and_the_mean_have_the_lengths_of_their_group(tmp_path):
    nats = {"far": falling(2), "near": lambda seed: falling(seed - 1)(seed), "alone": falling(2)}
    for variant, of in nats.items():
        leave(tmp_path, variant, of)
    found = with_context_lengths(load_results(tmp_path), {"both": ["far", "near", "missing"]})
    for seed in SEEDS:
        losses = {variant: nats[variant](seed) for variant in ("far", "near")}
        for percent, r in ((10, 0.1), (50, 0.5), (100, 1.0)):
            expected = relative_effective_context_length(losses, CONTEXT, r)
            assert {v: found[v].metrics[seed][f"recl_both_{percent}"] for v in losses} == expected
    assert [found["near"].metrics[seed]["recl_both_100"] for seed in SEEDS] == [10, 20]
    assert found["near"].mean == {
        "bits": 2.0,
        "recl_both_10": 15,
        "recl_both_50": 15,
        "recl_both_100": 15,
        "recl_both_step": 10,
    }
    assert found["near"].metrics[1]["bits"] == 2.0
    assert found["alone"].mean == {"bits": 2.0}


def test_a_group_of_which_one_or_none_was_measured_has_no_lengths(tmp_path):
    leave(leave(tmp_path, "measured", falling(1)), "other")
    results = load_results(tmp_path)
    assert with_context_lengths(results, {"both": ["measured", "other"]}) == results
    assert context_losses(results, ["measured", "other"]) == {}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seeds": (1,)}, "same seeds"),
        ({"places": np.arange(1, 5)}, "other symbols or lengths"),
        ({"context": np.array([5, 10, 15])}, "other symbols or lengths"),
    ],
)
def test_losses_that_do_not_compare_are_refused(tmp_path, other, message):
    leave(leave(tmp_path, "first", falling(1)), "second", falling(2), **other)
    with pytest.raises(ReplicationError, match=message):
        with_context_lengths(load_results(tmp_path), {"both": ["first", "second"]})


def test_a_broken_file_is_named(tmp_path):
    leave(leave(tmp_path, "first", falling(1)), "second", falling(2))
    results = load_results(tmp_path)
    path = results["second"].contexts(2)
    for content in (b"nothing", path.read_bytes()[:100]):
        path.write_bytes(content)
        with pytest.raises(ReplicationError, match=r"second.*contexts\.npz cannot be read"):
            context_losses(results, ["first", "second"])
