"""What the data of runs are, from their cards and the papers' facts."""

import pytest

from shared.data.cards import FolderSource, load_card
from shared.pipeline import report
from shared.pipeline.config import ScaleFile
from shared.pipeline.report import evidence_of


@pytest.mark.parametrize(("paper", "scale", "variant", "expected"), [
    ("bahdanau", "quick", "rnnsearch-50", "generated"),
    ("bahdanau", "bench", "corpus-rnnsearch", "standard data"),
    ("bahdanau", "paper_scale", "rnnsearch-50", "paper's data"),
    ("performer", "quick", "kernels", "measured"),
    ("performer", "quick", "copy-positive", "generated"),
    ("linear_transformer", "quick", "mnist-linear", "standard data"),
    ("show_attend_tell", "quick", "soft", "generated"),
    ("show_attend_tell", "bench", "flickr8k-soft", "paper's data"),
    ("linear_transformer", "paper_scale", "mnist-linear", "paper's data"),
])  # fmt: skip
def test_evidence_is_told_by_card_and_paper(paper, scale, variant, expected, root, monkeypatch):
    monkeypatch.chdir(root)
    assert evidence_of(ScaleFile(paper, scale))[variant] == expected


def test_what_nobody_else_can_fetch_is_own_data(root, monkeypatch):
    monkeypatch.chdir(root)
    whole = load_card("multi30k")
    own = whole.model_copy(update={"sources": (FolderSource(kind="folder", folder="here"),)})
    monkeypatch.setattr(report, "load_card", lambda dataset: own)
    assert evidence_of(ScaleFile("bahdanau", "bench"))["corpus-rnnsearch"] == "own data"
    better_known = own.model_copy(update={"sources": (*own.sources, *whole.sources)})
    monkeypatch.setattr(report, "load_card", lambda dataset: better_known)
    assert evidence_of(ScaleFile("bahdanau", "bench"))["corpus-rnnsearch"] == "standard data"
