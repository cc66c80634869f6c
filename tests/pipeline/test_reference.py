"""docs/REFERENCE.md is what the code says."""

from shared.pipeline.reference import PATH, reference
from tests.pipeline.scratch import ROOT


def test_the_committed_reference_is_current(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert (ROOT / PATH).read_text(encoding="utf-8") == reference(), "run: python -m shared.pipeline reference"
