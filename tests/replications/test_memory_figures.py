"""Effective context length by hand and as appendix C has it; what the report shows of memory, position and recalls."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from replications.transformer_xl import figures
from replications.transformer_xl.figures import relative_effective_context_length
from shared.claims.results import load_results
from tests.refused import assert_refused
from tests.synthetic_runs import study
from tests.tasks.language.synthetic_language import MEMORIES, MODELS, build

MEMORY = figures.MemoryLengths({"longer memory": ["xl", "shaw", "no-memory"]})
POSITION = figures.SegmentPositions({"segments": ["xl", "no-memory"]})
RECALLS = figures.RecallDistances({"memory": ["recall-xl", "recall-no-memory"]})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs"), MODELS))


def test_the_memory_that_a_variant_is_judged_with_is_one_of_the_lengths(results):
    points = MEMORY.curve(results["xl"])
    assert sorted(points) == sorted({*MEMORIES, MODELS["xl"].memory})
    judged = [results["xl"].metrics[seed]["bits"] for seed in (1, 2, 3)]
    assert points[MODELS["xl"].memory] == pytest.approx(judged)
    assert MEMORY.curve(results["no-memory"]) == {}


def test_losses_of_other_splits_do_not_count(results):
    other, noise = replace(results["xl"]), {"split": "other", "nll": 1e9, "memories": {"7": 1e9}}
    other.__dict__["examples"] = {seed: [*rows[:-1], rows[-1] | noise] for seed, rows in other.examples.items()}
    points = MEMORY.curve(other)
    assert 7.0 not in points
    assert max(points[32.0]) < 3.0


def test_positions_are_per_unit(results):
    """A symbol in two is a word, so a loss per symbol is half that per word."""
    rows = results["recall-xl"].examples[1]
    nats = sum(row["positions"][2][0] for row in rows)
    words = sum(row["positions"][2][1] for row in rows) / 2
    assert POSITION.curve(results["recall-xl"])[3.0][0] == pytest.approx(math.exp(nats / words))
    assert sorted(POSITION.curve(results["xl"])) == [float(part) for part in range(1, 9)]


def test_recalls_are_shares_of_each_distance(results):
    rows = results["recall-xl"].examples[2]
    found, count = (sum(row["recalls"]["64"][k] for row in rows) for k in (2, 1))
    assert RECALLS.curve(results["recall-xl"])[64.0][1] == pytest.approx(100 * found / count)
    assert max(RECALLS.curve(results["recall-no-memory"])[64.0]) < 20
    assert RECALLS.curve(results["xl"]) == {}


CONTEXT = np.array([10, 20, 30])
SEEDS = (1, 2)


def leave(folder, variant, nats=None, *, seeds=SEEDS, **arrays):
    """A variant with made-up losses (3, 4) for each seed, or without."""
    metrics = {"bits": 2.0}
    study(folder, variant, "text", metrics)
    head = {"variant": variant, "task": "text", "seeds": dict.fromkeys(map(str, seeds), metrics), "mean": metrics}
    (folder / variant / "metrics.json").write_text(json.dumps(head))
    for seed in seeds if nats is not None else ():
        out = folder / variant / "evaluation" / f"seed{seed}"
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
    found = figures.ContextLengths({"both": ["far", "near", "missing"]}).completed(load_results(tmp_path))
    for seed in SEEDS:
        losses = {variant: nats[variant](seed) for variant in ("far", "near")}
        for percent, r in ((10, 0.1), (50, 0.5), (100, 1.0)):
            expected = figures.relative_effective_context_length(losses, CONTEXT, r)
            assert {v: found[v].metrics[seed][f"recl_both_{percent}"] for v in losses} == expected
    assert [found["near"].metrics[seed]["recl_both_100"] for seed in SEEDS] == [10, 20]
    mean = {"bits": 2.0, "recl_both_10": 15, "recl_both_50": 15, "recl_both_100": 15, "recl_both_step": 10}
    assert found["near"].mean == mean
    assert found["near"].metrics[1]["bits"] == 2.0
    assert found["alone"].mean == {"bits": 2.0}


def test_seeds_that_not_all_of_a_group_have_are_without_lengths(tmp_path):
    leave(leave(tmp_path, "far", falling(2)), "near", falling(1), seeds=(1,))
    found = figures.ContextLengths({"both": ["far", "near"]}).completed(load_results(tmp_path))
    assert ["recl_both_10" in found["far"].metrics[seed] for seed in SEEDS] == [True, False]
    assert found["far"].mean["recl_both_10"] == found["far"].metrics[1]["recl_both_10"]


def test_a_group_of_which_one_was_measured_has_no_lengths(tmp_path):
    results = load_results(leave(leave(tmp_path, "measured", falling(1)), "other"))
    both = figures.ContextLengths({"both": ["measured", "other"]})
    assert both.completed(results) == results
    assert both.draw(results, tmp_path / "figures") == []


@pytest.mark.parametrize(("other", "message"), [
    ({"places": np.arange(1, 5)}, "other symbols or lengths"),
    ({"context": np.array([5, 10, 15])}, "other symbols or lengths"),
])  # fmt: skip
def test_losses_that_do_not_compare_are_refused(tmp_path, other, message):
    leave(leave(tmp_path, "first", falling(1)), "second", falling(2), **other)
    assert_refused(message, figures.context_losses, load_results(tmp_path), ["first", "second"])


CONTEXTS = [10, 20, 30, 40]


def as_written(losses, contexts, r, threshold=0.01):
    """Appendix C, word by word; l[i][c][t] is the loss of model i on position t with the context c."""
    models = list(losses)
    positions = range(losses[models[0]].shape[1])
    found = {}
    for i in models:
        k = 0
        while k + 1 < len(contexts):
            b = {t: min(losses[j][k][t] for j in models) for t in positions}
            top = sorted(positions, key=lambda t: -b[t])[: max(1, round(r * len(positions)))]
            f_short = sum(min(b[t], losses[i][k][t]) for t in top) / len(top)
            f_long = sum(min(b[t], losses[i][k + 1][t]) for t in top) / len(top)
            if (math.exp(f_short) - math.exp(f_long)) / math.exp(f_short) < threshold:
                break
            k += 1
        found[i] = contexts[k]
    return found


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.1, 0.5, 1.0]), st.data())
def test_it_is_what_the_paper_says(models, contexts, positions, r, data):
    tenths = arrays(np.int64, (contexts, positions), elements=st.integers(0, 60))
    losses = {f"m{i}": data.draw(tenths) / 10 for i in range(models)}
    found = relative_effective_context_length(losses, CONTEXTS[:contexts], r)
    assert found == as_written(losses, CONTEXTS[:contexts], r)
