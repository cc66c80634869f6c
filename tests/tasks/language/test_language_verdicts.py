"""Claims on language models: their blocks are resampled, and context lengths are known before anything is judged."""

import json
import math

import numpy as np
import pytest

from replications.transformer_xl.figures import ContextLengths
from shared.claims.results import load_results
from shared.claims.schema import Claims
from shared.claims.verdicts import decide
from shared.metrics.registry import corpus_values
from tests.made_claims import claim, compared
from tests.synthetic_runs import write_examples

SEEDS, BLOCKS = (1, 2, 3, 4, 5), 60
MODELS = {"far": (2.0, 3), "near": (2.3, 0)}
"""Bits per unit, and how many times twice the context still helps."""


def blocks(bits, steps, unit, rng):
    """Blocks of 50 units and 100 symbols; some are harder than others for every model."""
    hard = np.random.default_rng(0).normal(0, 0.3, BLOCKS)
    for number, of in enumerate(bits + hard + rng.normal(0, 0.02, BLOCKS)):
        nats = 50 * math.log(2) * of
        memories = {str(16 * 2**k): nats * (1.2 - 0.05 * min(k, steps)) for k in range(4)}
        positions = [[nats * (1 + (part == 0)) / 9, 100 / 8] for part in range(8)]
        yield {"id": f"test-{number}", "split": "test", "nll": nats, "tokens": 100, "unit": unit, "units": 50.0,
               "memories": memories, "positions": positions, "recalls": {"8": [1.0, 4, 3]}}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for task, unit in (("characters", "character"), ("words", "word")):
        for name, (bits, steps) in MODELS.items():
            variant, scores = f"{task}-{name}", {}
            for seed in SEEDS:
                rng = np.random.default_rng(seed)
                place = folder / variant / f"evaluation/seed{seed}"
                rows = list(blocks(bits, steps, unit, rng))
                write_examples(place / "examples.jsonl.gz", rows)
                scores[str(seed)] = corpus_values(rows)
                nats = np.stack([np.full(20, 5.0 - 0.1 * min(k, steps)) for k in range(6)])
                np.savez(place / "contexts.npz", context=10 * np.arange(1, 7), nats=nats, places=np.arange(20))
            head = {"variant": variant, "task": task, "seeds": scores, "mean": scores["1"], "token": unit}
            (folder / variant / "metrics.json").write_text(json.dumps(head))
    return folder


CONTEXTS = ContextLengths({"words": ["words-far", "words-near"]})


def less(task, metric):
    return compared("less", metric, f"{task}-far", f"{task}-near", relevant=0.02)


@pytest.mark.parametrize(
    ("primary", "effect"),
    [
        (less("characters", "bits"), 0.3),
        (compared("less", "word_perplexity", "words-far", "words-near", scale="log", relevant=1.02), None),
        (less("words", "bits_start"), 0.3 * 16 / 9),
        (less("words", "start_excess"), 0.3 * 8 / 9),
        (compared("greater", "bits_saved@32-64", "characters-far", than=0.05, relevant=0.02), 0.05),
        (compared("less", "bits_saved@32-64", "words-near", "words-far", relevant=0.02), 0.1),
        (compared("equal", "recalled@8", "words-near", "words-far", relevant=1.0), 0.0),
        (compared("greater", "recl_words_100", "words-far", "words-near", scale="log", relevant=1.8), 4.0),
    ],
)
def test_every_kind_of_measure_can_decide_a_claim(runs, primary, effect):
    claims = Claims.model_validate({"claims": [claim(primary=primary)]})
    (decision,) = decide(claims, CONTEXTS.completed(load_results(runs)), "quick")
    assert decision.lead.verdict == "reproduced"
    assert decision.how == ("there is no positive control" if primary["kind"] == "equal" else "")
    assert decision.verdict == ("inconclusive" if decision.how else "reproduced")
    assert decision.lead.seeds == SEEDS
    blocks_count = decision.lead.metric != "recl_words_100"
    assert decision.lead.n == (BLOCKS if blocks_count else None)
    if effect is not None:
        assert decision.lead.effect == pytest.approx(effect, abs=0.03)
