"""What a page says first: counts, what they rest on, and effects in units of what matters."""

import json
import re
from math import log
from types import SimpleNamespace

import pytest

from shared.claims.outcomes import Outcome
from shared.claims.schema import load_claims
from shared.pipeline.show import decision_of
from shared.reports.document import Figure, plain_text
from shared.reports.report import EQUALITY, WORDS, answer, in_words, relative
from tests.conftest import ROOT


def decision(name="T1-C1", verdict="reproduced", *, evidence="generated", in_short=None, identities=(), **lead):
    values = {"kind": "greater", "scale": "plain", "effect": 6.0, "relevant": 2.0, "interval": (4.0, 8.0)} | lead
    outcome = Outcome(
        "primary", verdict=verdict, metric="bleu", unit="BLEU", variants=("a", "b"), deciding=True, **values
    )
    claim = SimpleNamespace(id=name, identities=identities, in_short=in_short)
    return SimpleNamespace(claim=claim, verdict=verdict, lead=outcome, evidence=evidence, scale="quick")


def test_effects_are_in_units_of_the_smallest_that_matters():
    plain = relative(decision())
    assert (plain.value, plain.interval) == (3.0, (2.0, 4.0))
    ratio = relative(decision(scale="log", effect=1.21, relevant=1.1, interval=(1.0, 1.331)))
    assert (ratio.value, *ratio.interval) == pytest.approx((2.0, 0.0, log(1.331) / log(1.1)))


@pytest.mark.parametrize("missing", ["effect", "relevant", "interval"])
def test_what_has_no_effect_is_not_drawn(missing, tmp_path):
    without = decision(**{missing: None})
    assert relative(without) is None
    assert not [block for block in answer([without], tmp_path) if isinstance(block, Figure)]


def test_the_first_words_are_a_plain_answer(tmp_path):
    decisions = [
        decision(in_short="attention helps"), decision("T1-C2", "contradicted", effect=-1.0), decision("T1-C3"),
        decision("T1-C4", "verified", in_short="it is recurrent", kind="exact", relevant=None, identities=(1,)),
    ]  # fmt: skip
    said, limits, figure = answer(decisions, tmp_path)
    assert plain_text(said.text).replace("\N{NO-BREAK SPACE}", " ") == (
        "Of 3 claims: 2 reproduced, 1 contradicted. Of 1 identity: 1 verified. "
        "Reproduced: attention helps (+6.0 BLEU); T1-C3 (+6.0 BLEU). "
        "Contradicted: T1-C2 (\N{MINUS SIGN}1.0 BLEU). Verified: it is recurrent."
    )
    assert limits.text.startswith("The evidence: data generated for the purpose, identities of mathematics.")
    assert figure.path.exists()
    assert "hollow" not in figure.caption


def test_an_answer_of_many_claims_says_how_many_it_leaves_out():
    reproduced = [decision(f"T1-C{number}", in_short="twelve words " * 5 + f"of {number}") for number in range(9)]
    said = plain_text(in_words([*reproduced, decision("T1-C9", "contradicted", in_short="the other way")]))
    assert len(said.split()) <= WORDS
    assert "of 0 (" in said
    assert re.search(r"; \d more\. Contradicted: the other way \(", said)


@pytest.mark.parametrize("page", sorted((ROOT / "reports").glob("*/*/claims.json")), ids=lambda page: str(page.parent))
def test_the_answers_of_all_reports_are_short(page):
    entries = {entry["id"]: entry for entry in json.loads(page.read_text(encoding="utf-8"))}
    claims = load_claims(ROOT / "replications" / page.parent.name / "claims.yaml", page.parent.parent.name).claims
    assert [claim.id for claim in claims if claim.in_short is None] == []
    said = plain_text(in_words([decision_of(entries[claim.id], claim) for claim in claims if claim.id in entries]))
    assert len(said.split()) <= WORDS
    assert not re.search(r"\w-C\d", said)


def test_equalities_are_marked(tmp_path):
    *_, figure = answer([decision(kind="equal", effect=0.1, interval=(-0.5, 0.7))], tmp_path)
    assert figure.caption.endswith(EQUALITY)
