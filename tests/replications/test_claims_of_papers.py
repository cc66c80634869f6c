"""What the claims of every paper have in common, at every scale."""

import pytest

from shared.claims.schema import load_claims
from shared.pipeline.config import SCALES
from tests.replications.shipped_variants import REPLICATIONS, scale_file_of

PAPERS = sorted(path.parent.name for path in REPLICATIONS.glob("*/claims.yaml"))
pairs = pytest.mark.parametrize(("paper", "scale"), [(paper, scale) for paper in PAPERS for scale in SCALES])


@pairs
def test_comparisons_are_of_one_task(paper: str, scale: str) -> None:
    settings = scale_file_of(paper, scale)
    built = settings.buildable()
    for claim in load_claims(REPLICATIONS / paper / "claims.yaml", scale):
        for comparison in (*claim.deciding, *claim.also):
            variants = [name.removesuffix("-ensemble") for name in comparison.compared()]
            assert len({settings.task_of(name) for name in variants if name in built}) <= 1, comparison.name


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_are_numbered_and_the_same_at_every_scale(paper: str) -> None:
    identifiers = [[claim.id for claim in load_claims(REPLICATIONS / paper / "claims.yaml", scale)] for scale in SCALES]
    assert identifiers == [identifiers[0]] * len(SCALES)
    prefix = identifiers[0][0].removesuffix("1")
    assert identifiers[0] == [f"{prefix}{number}" for number in range(1, len(identifiers[0]) + 1)]


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if scale_file_of(paper, "smoke").kind == "sequences"])
@pytest.mark.parametrize("scale", SCALES)
def test_weights_are_judged_swapped_where_a_claim_asks_for_it(paper: str, scale: str) -> None:
    """A measure ``accuracy@name`` is of the model that ``evaluation.swapped`` calls by that name."""
    settings = scale_file_of(paper, scale)
    for claim in load_claims(REPLICATIONS / paper / "claims.yaml", scale):
        for comparison in (*claim.deciding, *claim.also):
            names = {metric.partition("@")[2] for metric in comparison.metrics()} - {""}
            for variant in settings.variants.keys() & set(comparison.compared()):
                run = settings.run(variant)
                assert "study" in run.model or names <= run.evaluation.swapped.keys(), comparison.name
