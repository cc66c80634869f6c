"""Every network that a paper ships at the smoke scale does what every model has to do."""

import importlib

import pytest

from shared.pipeline.config import ScaleFile
from tests.checklist import ROOT, assert_variant
from tests.replications.shipped_variants import scale_file_of

PAPERS = sorted(path.parent.name for path in (ROOT / "replications").glob("*/model.py"))


def networks(paper: str) -> list[str]:
    """Variants with a network of the paper's own, one for each ``model`` section."""
    file: ScaleFile = scale_file_of(paper, "smoke")
    known = importlib.import_module(f"replications.{paper}.settings").ModelConfig.model_fields
    sections: dict[str, str] = {}
    for variant in file.built_variants:
        model = file.run(variant).model
        if model.keys() <= known.keys():
            sections.setdefault(repr(sorted(model.items())), variant)
    return list(sections.values())


@pytest.mark.parametrize(("paper", "variant"), [(paper, variant) for paper in PAPERS for variant in networks(paper)])
def test_a_shipped_network_is_a_model(paper: str, variant: str) -> None:
    assert_variant(paper, variant)
