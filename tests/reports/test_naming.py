"""Names of variants in words, with their ids beside them."""

import pytest
import yaml

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.reports.document import code, plain_text
from shared.reports.naming import called, load_names, name_of, use_names
from shared.reports.runs import score_tables
from tests.conftest import ROOT
from tests.synthetic_runs import Variant, build

PAPERS = sorted(path.parent for path in (ROOT / "replications").glob("*/variants.yaml"))


def test_without_names_ids_serve():
    assert name_of("rnnsearch-50") == "rnnsearch-50"
    assert called("rnnsearch-50") == code("rnnsearch-50")


def test_a_name_stands_beside_the_id():
    with use_names({"base": "base model"}):
        assert called("base") == f"base model {code('base')}"
        assert plain_text(called("base-ensemble")) == "base model, ensemble base-ensemble"
        assert name_of("big") == "big"
    assert name_of("base") == "base"


def test_tables_call_models_by_their_names(tmp_path):
    results = load_results(build(tmp_path, {"good": Variant("generated", 0.99)}, examples=20))
    with use_names({"good": "the good one"}):
        (table, *_) = score_tables([*results.values()])
    assert plain_text(table.rows[0][0]) == "the good one good"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_models_of_one_task_have_different_names(paper):
    names = load_names(paper)
    for path in sorted(paper.glob("*/params.yaml")):
        variants = yaml.safe_load(path.read_text(encoding="utf-8"))["variants"]
        by_task = [(entry["task"], names[variant]) for variant, entry in variants.items() if variant in names]
        assert len(by_task) == len(set(by_task)), path
        if path.parent.name in ("quick", "bench"):
            assert [variant for variant in variants if variant not in names] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bass: base model", r"names.yaml: .*variants.yaml has no variant 'bass' \(did you mean 'base'\?\)"),
        ("base: 3", "names.yaml: 'base'"),
        ("- base", "names.yaml: "),
    ],
)
def test_wrong_names_are_refused(tmp_path, text, message):
    (tmp_path / "variants.yaml").write_text("kind: translation\nvariants: {base: {}}\n")
    (tmp_path / "names.yaml").write_text(text)
    with pytest.raises(ReplicationError, match=message):
        load_names(tmp_path)


def test_a_paper_may_have_no_names(tmp_path):
    assert load_names(tmp_path) == {}
