"""Numbers in a report's files: the same on every processor."""

import json
import math

import pytest

from shared.reports.report import write_report
from shared.tasks.translation.report import REPORT
from tests.made_claims import claim, compared, paper_folder
from tests.synthetic_runs import Variant, build


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [x for each in value for x in numbers(each)] if isinstance(value, list) else [value]


def test_numbers_do_not_depend_on_the_last_bits(tmp_path):
    """Sums in another order, as other processors make them, differ there."""
    variants = {"a": Variant("generated", 0.9), "b": Variant("generated", 0.8)}
    runs = build(tmp_path / "runs", variants, seeds=(1, 2, 3, 4, 5), examples=20)
    folder, made = tmp_path / "quick" / "bahdanau", claim(primary=compared("greater", "bleu", "a", "b"))
    write_report(paper_folder(tmp_path / "papers" / "bahdanau", made), runs, folder, scale="quick", kind=REPORT)
    for name in ("claims.json", "metrics.json"):
        floats = [x for x in numbers(json.loads((folder / name).read_text())) if isinstance(x, float)]
        assert floats
        assert [x for x in floats if x != float(f"{x:.10g}")] == []


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_a_diverged_training_leaves_is_null(number, tmp_path):
    variants = {"a": Variant("generated", 0.9), "b": Variant("generated", 0.8)}
    runs = build(tmp_path / "runs", variants, seeds=(1, 2, 3, 4, 5), examples=20)
    scores = json.loads((runs / "a" / "metrics.json").read_text())
    for part in (scores["mean"], scores["seeds"]["2"]):
        part |= {"nll_per_token": number, "speed": number}
    (runs / "a" / "metrics.json").write_text(json.dumps(scores))
    folder, made = tmp_path / "quick" / "bahdanau", claim(primary=compared("less", "nll_per_token", "a", "b"))
    write_report(paper_folder(tmp_path / "papers" / "bahdanau", made), runs, folder, scale="quick", kind=REPORT)
    assert json.loads((folder / "metrics.json").read_text())["variants"]["a"]["speed"] is None
