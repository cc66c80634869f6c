"""What a page says first: counts, what they rest on, and effects in units of what matters."""

from math import log
from types import SimpleNamespace

import pytest

from shared.reports.answer import EQUALITY, answer, relative
from shared.reports.document import Figure, plain_text


def decision(name="T1-C1", verdict="reproduced", *, evidence="generated", identities=(), **lead):
    values = {"kind": "greater", "scale": "plain", "effect": 6.0, "relevant": 2.0, "interval": (4.0, 8.0)} | lead
    outcome = SimpleNamespace(**values) if lead is not None else None
    claim = SimpleNamespace(id=name, identities=identities)
    return SimpleNamespace(claim=claim, verdict=verdict, lead=outcome, evidence=evidence)


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


def test_the_first_words_count_and_name_what_does_not_hold(tmp_path):
    decisions = [decision(), decision("T1-C2", "contradicted"), decision("T1-C3", evidence="standard data")]
    paragraph, figure = answer(decisions, tmp_path)
    said = plain_text(paragraph.text)
    assert said.startswith("Of 3 claims: 2 reproduced, 1 contradicted.")
    assert "generated for the purpose, standard data and small models" in said
    assert said.endswith("undecided: T1-C2.")
    assert len(said.split()) <= 80
    assert figure.path.exists()
    assert "hollow" not in figure.caption


def test_equalities_are_marked(tmp_path):
    _, figure = answer([decision(kind="equal", effect=0.1, interval=(-0.5, 0.7))], tmp_path)
    assert figure.caption.endswith(EQUALITY)
