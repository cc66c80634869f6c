"""What the claims of every paper have in common, at every scale."""

import pytest

from shared.claims.schema import load_claims
from shared.tasks.kinds import load_measures
from tests.replications.shipped_variants import REPLICATIONS, scale_file_of

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
        for variant in settings.variants.keys() & {name.removesuffix("-ensemble") for name in row.compared()}:
            run = settings.run(variant)
            assert "study" in run.model or names <= run.evaluation.swapped.keys(), row.name
