"""claims.yaml: the shipped one, and what is refused."""

import math
from pathlib import Path

import pytest
import yaml

from shared.claims.schema import Claim, Difference, Equal, Exponent, Ratio, Slope, Threshold, load_claims
from shared.errors import ReplicationError

ROOT = Path(__file__).parents[2]
CLAIMS = sorted(ROOT.glob("replications/*/claims.yaml"))
BASE = {"name": "x", "metric": "bleu"}
DIFFERENCE = BASE | {"kind": "greater", "variants": ["a", "b"]}
CORRELATION = BASE | {
    "kind": "rank_correlation",
    "other": "perplexity",
    "variants": ["a", "b", "c", "d"],
    "bound": 0.8,
}
CLAIM = {
    "id": "T99-C1",
    "statement": "a is better",
    "where": "Table 1",
    "effect_in_paper": {"text": "+1"},
    "deciding": [DIFFERENCE],
}


def write(path, *claims):
    path.write_text(yaml.safe_dump({"claims": list(claims)}), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("scale", ["smoke", "quick", "bench", "paper_scale"])
def test_every_shipped_file_loads_at_every_scale(path, scale):
    claims = load_claims(path, scale)
    assert claims
    assert all(claim.deciding or claim.not_tested for claim in claims)


def test_bahdanau_has_the_six_claims():
    claims = load_claims(ROOT / "replications/bahdanau/claims.yaml", "quick")
    assert [claim.id for claim in claims] == [f"B15-C{number}" for number in range(1, 7)]
    assert [claim.id for claim in claims if claim.not_tested] == ["B15-C5"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"statment": "typo"}, "did you mean 'statement'"),
        ({"id": "first"}, "'claims.0.id'"),
        ({"deciding": []}, "give either 'deciding'"),
        ({"not_tested": "too big"}, "give either 'deciding'"),
        ({"also": [DIFFERENCE]}, "must differ"),
        ({"deciding": [DIFFERENCE | {"kind": "bigger"}]}, "bigger"),
        ({"deciding": [DIFFERENCE | {"margin": math.nan}]}, "margin"),
        ({"deciding": [BASE | {"kind": "declines", "variant": "a", "bins": 1}]}, "at least two bins"),
        (
            {"deciding": [BASE | {"kind": "no_decline", "variant": "a", "against": "b", "bins": 3}]},
            "go together",
        ),
        ({"deciding": [BASE | {"kind": "ladder", "variants": ["a"]}]}, "variants"),
        ({"deciding": [CORRELATION | {"variants": ["a", "b", "c"]}]}, "variants"),
        ({"deciding": [CORRELATION | {"variants": ["a", "b", "c", "a"]}]}, "must differ"),
        ({"deciding": [CORRELATION | {"bound": 1.0}]}, "bound"),
        ({"deciding": [CORRELATION | {"sign": "-"}]}, "sign"),
        (
            {"deciding": [BASE | {"kind": "exponent", "variant": "a", "points": {1: "p", 2: "q", 4: "r"}}]},
            "at_least",
        ),
    ],
)
def test_wrong_claims_are_refused_with_a_hint(tmp_path, change, message):
    with pytest.raises(ReplicationError, match=message):
        load_claims(write(tmp_path / "claims.yaml", CLAIM | change), "quick")


def test_two_claims_may_not_share_an_id(tmp_path):
    with pytest.raises(ReplicationError, match="id of its own"):
        load_claims(write(tmp_path / "claims.yaml", CLAIM, CLAIM), "quick")


def test_a_file_that_is_no_list_of_claims_is_refused(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text("- just a list\n", encoding="utf-8")
    with pytest.raises(ReplicationError, match=r"claims\.yaml"):
        load_claims(path, "quick")


def test_a_comparison_changes_with_the_scale(tmp_path):
    slope = BASE | {
        "kind": "declines",
        "variant": "a",
        "bins": [[3, 5], [6, 10]],
        "at": {"bench": {"bins": 6}},
    }
    path = write(tmp_path / "claims.yaml", CLAIM | {"deciding": [slope]})
    quick, bench = (load_claims(path, scale)[0].deciding[0] for scale in ("quick", "bench"))
    assert isinstance(quick, Slope)
    assert isinstance(bench, Slope)
    assert quick.bins == ((3.0, 5.0), (6.0, 10.0))
    assert bench.bins == 6


def test_examples_are_those_of_the_test_split_unless_said():
    assert Claim.model_validate(CLAIM).deciding[0].where == {"split": "test"}
    given = DIFFERENCE | {"where": {"source_length": [11, 15], "unknown": False}}
    where = Claim.model_validate(CLAIM | {"deciding": [given]}).deciding[0].where
    assert where == {"split": "test", "source_length": (11.0, 15.0), "unknown": False}


def test_claimed_regions():
    two, one = {"variants": ("a", "b")}, {"variant": "a"}
    points = {1.0: "p", 2.0: "q", 4.0: "r"}
    assert Difference(kind="less", margin=0.5, **BASE, **two).claimed() == (-math.inf, -0.5)
    assert Equal(kind="equal", margin=0.5, **BASE, **two).claimed() == (-0.5, 0.5)
    assert Ratio(kind="ratio_at_least", bound=2.0, **BASE, **two).claimed() == (2.0, math.inf)
    assert Threshold(kind="below", bound=0.2, **BASE, **one).claimed() == (-math.inf, 0.2)
    ranks = Claim.model_validate(CLAIM | {"deciding": [CORRELATION]}).deciding[0]
    assert (ranks.claimed(), ranks.metrics()) == ((0.8, math.inf), ("bleu", "perplexity"))
    assert Exponent(kind="exponent", points=points, at_most=1.2, **BASE, **one).claimed() == (-math.inf, 1.2)
