"""The effects beside the papers' own on the main page, and which runs it rests on."""

from math import log

import pytest

from shared.reports import site
from shared.reports.document import Figure, Table, plain_text
from shared.reports.scales import Replicated, Report
from shared.reports.site import beside_the_papers, main_page


def entry(name, paper, **lead):
    shown = {"kind": "greater", "effect": 1.0, "interval": [0.5, 1.5], "relevant": 0.5, "scale": "plain",
             "unit": "BLEU", "seeds": [1, 2, 3, 4, 5], "paper": paper} | lead  # fmt: skip
    return {"id": name, "statement": "s", "verdict": "reproduced", "how": "", "lead": shown, "evidence": "generated",
            "budget": "", "agreeing": 0, "supporting": 0, "scale": "quick", "paper": "P"}  # fmt: skip


def replicated(folder, *claims):
    return [Replicated((Report(folder / "quick" / "p", {claim["id"]: claim for claim in claims}),))]


def test_effects_are_drawn_as_shares_of_the_paper_s_own(tmp_path, monkeypatch):
    drawn, draw = [], site.draw_forest
    monkeypatch.setattr(site, "draw_forest", lambda effects, *more: (drawn.extend(effects), draw(effects, *more)))
    ratio = entry("T-C3", 1.2, scale="log", effect=1.1, interval=None, relevant=1.05)
    claims = [entry("T-C1", 2.0), entry("T-C2", None), ratio]
    blocks = beside_the_papers(replicated(tmp_path, *claims), tmp_path)
    (figure,) = (block for block in blocks if isinstance(block, Figure))
    assert figure.path == tmp_path / "figures" / "beside.png"
    assert figure.path.is_file()
    assert figure.seen == "Effects of T-C1, T-C3 as shares of the papers' effects"
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert [plain_text(row[0]) for row in table.rows] == ["T-C1", "T-C3"]
    assert (drawn[0].value, drawn[0].interval) == (0.5, (0.25, 0.75))
    assert (drawn[1].value, drawn[1].interval) == (pytest.approx(log(1.1) / log(1.2)), ())


def test_an_effect_of_nothing_has_no_shares(tmp_path):
    *_, table = beside_the_papers(replicated(tmp_path, entry("T-C1", 0.0)), tmp_path)
    assert isinstance(table, Table)
    assert beside_the_papers(replicated(tmp_path, entry("T-C1", None)), tmp_path) == []


def test_the_page_says_of_which_commits_its_runs_are(tmp_path):
    first = entry("T-C1", None) | {"commits": ["c" * 40, "d" * 40 + " with changes"], "ended": "2026-02-01T10:00:00"}
    claims = [first, entry("T-C2", None) | {"commits": ["c" * 40], "ended": "2026-03-01T10:00:00"}]
    said = [plain_text(block.text) for block in main_page(replicated(tmp_path, *claims), tmp_path, {})
            if hasattr(block, "text")]  # fmt: skip
    assert f"The runs behind these verdicts are of the commits {'c' * 12}, {'d' * 12} with changes. The last one " \
        "ended on 2026-03-01." in said  # fmt: skip
