"""What a report says of models of sequences: what was measured on every split, and of the same weights elsewhere."""

import numpy as np
import pytest

from shared.reports.report import write_report
from shared.tasks.examples import write_records
from shared.tasks.sequences.report import REPORT
from tests.made_claims import claim, paper_folder
from tests.synthetic_runs import write_metrics

MODELS = {"exact": (0.3, 0.2), "relu": (0.33, 0.17)}
"""Share of letters that are predicted rightly, on either split."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, shares in MODELS.items():
        rng, splits = np.random.default_rng(1), {}
        for split, right in zip(("test", "test_families"), shares, strict=True):
            own = {"swapped": {"positive": [50 * 3.5, 7]}} if (name, split) == ("exact", "test") else {}
            splits[split] = [
                {"id": f"{split}-{number}", "split": split, "nll": 50 * (3 - 2 * share), "tokens": 50, "units": 50,
                 "unit": "residue", "length": 50, "hits": round(50 * share), "baseline": [50 * 2.9, 5], "undefined": 0,
                 **own}
                for number, share in enumerate(right + rng.normal(0, 0.01, 60))
            ]  # fmt: skip
        scores = write_records(folder / name / "evaluation/seed1", splits)
        write_metrics(folder / name, name, "proteins", {1: scores}, "residue")
    return folder


def test_reports_have_what_was_measured_on_every_split(runs, tmp_path):
    paper = paper_folder(tmp_path / "papers/bahdanau", claim())
    write_report(paper, runs, tmp_path / "quick" / "bahdanau", scale="quick", kind=REPORT)
    page = (tmp_path / "quick" / "bahdanau" / "README.md").read_text(encoding="utf-8")
    rows = [line for line in page.split("### Task `")[1].splitlines() if line[:1] == "|"]
    split = next(i for i, line in enumerate(rows) if "split test_families" in line)
    own, further = " ".join(rows[:split]), " ".join(rows[split:])
    for title in ("Perplexity per residue, same weights in positive", "Predictions that are no number"):
        assert title in own
    assert "same weights" not in further
    second = [line for line in rows[split:] if "relu" in line][1]
    assert second.split("|")[2].strip(" *").startswith("17.")
