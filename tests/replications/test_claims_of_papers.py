"""What the claims of every paper have in common, at every scale."""

import re
from functools import cache
from pathlib import Path

import pytest

from shared.claims.schema import load_claims
from shared.tasks.kinds import load_measures, load_replication
from shared.tasks.replication import runner_of
from tests.replications.shipped_variants import REPLICATIONS, facts, scale_file_of

PAIRS = sorted((path.parts[-3], path.parts[-2]) for path in REPLICATIONS.glob("*/*/params.yaml"))


@pytest.fixture(autouse=True)
def _in_the_project_with_all_measures(root, monkeypatch) -> None:
    monkeypatch.chdir(root)
    load_measures()


@pytest.mark.parametrize(("paper", "scale"), [pair for pair in PAIRS if scale_file_of(*pair).kind == "sequences"])
def test_weights_are_judged_swapped_where_a_claim_asks_for_it(paper: str, scale: str) -> None:
    """A measure ``accuracy@name`` is of the model that ``evaluation.swapped`` calls by that name."""
    settings = scale_file_of(paper, scale)
    claims = load_claims(REPLICATIONS / paper / "claims.yaml", scale).claims
    for row in (row for claim in claims for row in claim.rows()):
        names = {metric.partition("@")[2] for metric in row.metrics()} - {""}
        for variant in settings.variants.keys() & {name.removesuffix("-ensemble") for name in row.variants}:
            run = settings.run(variant)
            assert "study" in run.model or names <= run.evaluation.swapped.keys(), row.name


SMALL = {
    "performer.kernels": {"draws": 8, "length": 16, "samples": 2},
    "performer.depth": {"network": {"heads": 2, "width": 8, "hidden": 8}, "draws": 2, "length": 4},
    "performer.scaling": {"width": 8, "heads": 2, "features": 4, "feed_forward": 8, "lengths": [4, 8], "longest": {},
                          "repeats": 1},
    "linear_transformer.scaling": {"width": 8, "heads": 2, "lengths": [8, 16], "longest": {}, "buckets": 4, "chunk": 4,
                                   "repeats": 1},
    "linear_transformer.exactness": {"width": 8, "heads": 2, "layers": 2, "hidden": 12, "length": 6,
                                     "lengths": [8, 16], "draws": 1},
    "linear_transformer.generation": {"width": 8, "heads": 2, "layers": 2, "hidden": 12, "length": 8, "batch": 2,
                                      "places": 2, "recomputed": 1, "buckets": 4, "chunk": 3},
}  # fmt: skip
"""What makes the studies quick and leaves the names of what claims ask for."""


@cache
def measured(paper: str, study: str) -> frozenset[str]:
    """The names of all numbers of a study."""
    run = scale_file_of(paper, "quick").run(study)
    run = run.with_model({**run.own_model, **SMALL[f"{paper}.{study}"]})
    kind, config = runner_of(load_replication(paper), run)
    return frozenset(kind.evaluate(config, prepared=Path(), trained=[Path("seed1")], out=Path()))


@pytest.mark.parametrize("paper", ["performer", "linear_transformer"])
def test_studies_measure_what_claims_and_tables_ask_of_them(paper: str) -> None:
    settings, asked = scale_file_of(paper, "quick"), set()
    for claim in load_claims(REPLICATIONS / paper / "claims.yaml", "quick").claims:
        asked |= {(variant, row.metric) for row in claim.rows() for variant in row.variants}
    for row in (row for table in facts(paper).tables for row in table.rows):
        asked |= {(each, name) for each in row.variants for name in row.metrics.values()}
    found = {(study, name) for study, name in asked if f"{paper}.{study}" in SMALL and "crossover_" not in name}
    assert len(found) > 10
    for study, name in found:
        assert study in settings.variants
        assert name in measured(paper, study), (study, name)


@pytest.mark.parametrize("scale", ["smoke", "quick", "bench", "paper_scale"])
def test_language_models_are_read_as_claims_ask(scale: str) -> None:
    settings = scale_file_of("transformer_xl", scale)
    claims = load_claims(REPLICATIONS / "transformer_xl/claims.yaml", scale).claims
    rows = [row for claim in claims for row in claim.rows()]
    asked = [(row.metric, settings.run(name)) for row in rows for name in row.variants if name in settings.variants]
    assert asked
    for metric, run in asked:
        numbers, judged = {int(number) for number in re.findall(r"\d+", metric)}, run.evaluation
        if metric.startswith(("bits_saved@", "bits@", "word_perplexity@")):
            assert judged.memories
            assert numbers <= {judged.reach.memory, *judged.memories}
        elif metric.startswith(("bits_start", "bits_rest", "start_excess")):
            assert judged.sliding is None
        elif metric.startswith("recl_"):
            assert judged.contexts is not None
        elif metric.startswith("recalled@"):
            assert run.corpus.recalls is not None
        elif "@" in metric:
            assert numbers <= {*run.model["lengths"]}
        else:
            assert metric == "nll_per_token" or (run.corpus.unit == "word") == (metric == "word_perplexity")
