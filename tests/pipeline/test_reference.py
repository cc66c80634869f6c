"""docs/REFERENCE.md is what the code says."""

import pytest

from shared.metrics.registry import MEASURES
from shared.pipeline.reference import PATH, reference
from shared.tasks.kinds import KINDS, papers
from tests.pipeline.scratch import ROOT


@pytest.fixture(scope="module")
def text():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return reference()


def test_the_committed_reference_is_current(text):
    assert (ROOT / PATH).read_text(encoding="utf-8") == text, "run: python -m shared.pipeline reference"


def test_it_lists_all_kinds_papers_and_measures(text):
    assert all(f"\n## Kind of task: {kind}\n" in text for kind in KINDS)
    assert all(f"\n## Model sections of {paper}\n" in text for paper in papers())
    assert [name for name in MEASURES if f"\n| `{name}` |" not in text] == []


def test_links_lead_to_a_heading(text):
    headings = {line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line.startswith("#")}
    targets = {part.split(")")[0] for part in text.split("](#")[1:]}
    assert targets
    assert targets - headings == set()
