"""What a report says first, and of each kind of comparison."""

import re
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, log

import pytest

from shared.claims.results import load_results
from shared.claims.schema import Claims, load_claims
from shared.claims.verdicts import decide
from shared.reports import figures
from shared.reports.document import Figure
from shared.reports.joined import relative
from shared.reports.page import render
from shared.reports.report import Findings, claim_cards, whole_cards
from shared.reports.verdicts import claim_row, effect_text, seeds_needed
from tests.conftest import ROOT
from tests.made_claims import REPLICATIONS, claim, compared, entry
from tests.synthetic_runs import Variant, build, study

NAMES = ("a", "b", "c", "d", "e", "f")
SEEDS = (1, 2, 3, 4, 5)
COUNTS = {"difference": 6.25e-7, "operations": 100_663_296.0, "broken": float("nan")}
OPERATIONS = compared("greater", "operations", "counts", than=3.0, relevant=1.0, called="steps of a second")
NOT_EITHER = "**Not decided at bench scale, either:** x."
CORRELATION = compared("correlation", "perplexity", *NAMES, other="bleu", sign="negative", relevant=0.1, than=0.5)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Six variants, each better than the one before, and a study."""
    better = {name: Variant("generated", 0.7 + 0.05 * place, 0.001) for place, name in enumerate(NAMES)}
    folder = build(tmp_path_factory.mktemp("runs"), better, examples=40, seeds=SEEDS)
    study(folder, "counts", "generated", COUNTS)
    return load_results(folder)


def cards(results, folder, one, *, scale="quick", larger=None):
    """The card of a claim as Markdown, its pictures, and its entry of claims.json."""
    claims = Claims.model_validate({"claims": [one]})
    entries = [each.to_json() | {"plan": "none", "paper": "P"} for each in decide(claims, results, scale)]
    found = Findings("p", scale, results, claims, entries, folder, larger and (*larger, claims))
    heading, card = whole_cards(found, claim_cards(found))
    text = render([heading, card], "md", title="", folder=folder).replace("\N{NO-BREAK SPACE}", " ")
    return text, [block for block in card.blocks if isinstance(block, Figure)], entries[0]


@pytest.mark.parametrize(("primary", "expected"), [
    (compared("greater", "bleu", "f", "a"), ["BLEU is higher for `f` than for `a`."]),
    (OPERATIONS, [": steps of a second: 100,663,296 (`counts`);", "(`counts`) is higher than 3."]),
    (compared("equal", "bleu", "f", "a", relevant=99.0), ["are ± 99 BLEU.", "lies within ± 99 BLEU: p < 0.001"]),
    (compared("rises", "bleu", *NAMES), ["BLEU rises along `a`, `b`, `c`, `d`, `e`, `f`."]),
    (compared("less", "nll_per_token", "f", "a", where={"source_length": [3, 9]}), ["(source length 3 to 9)"]),
    (compared("less", "nll_per_token", "f", "a", over={"bins": 2}), ["NLL per word per source word than `a`."]),
    (CORRELATION, ["Spearman's correlation is above 0.5.", "; correlation **0.97 ["]),
    (compared("less", "perplexity", "f", "a", scale="log", relevant=1.1), ["the effect is above 1: p < 0.001"]),
    (compared("less", "nll_per_token", "f", "a", learned={"exempt": "a reason"}), ["not checked: a reason; "]),
])  # fmt: skip
def test_every_kind_of_comparison_is_said_in_words(results, tmp_path, primary, expected):
    text, pictures, _ = cards(results, tmp_path, claim(primary=primary))
    assert [said for said in expected if said not in text] == []
    assert pictures[0].path.exists()


def test_a_claim_in_part_says_what_is_not_shown_and_why_the_size_of_each_part_matters(results, tmp_path):
    worse, better = (compared(kind, "bleu", "f", "a", relevant=1.0) | {"name": kind} for kind in ("less", "greater"))
    parts = [{"says": "it is worse", "by": "primary"}, {"says": "it is better", "by": "greater"}]
    text, _, found = cards(results, tmp_path, claim(primary=worse, supporting=[better], parts=parts))
    assert claim_row(found)[2].endswith(": not shown: it is worse")
    assert "it is better: ✔ **reproduced** (greater: +" in text
    assert "**Greater:** The smallest effect that matters is 1 BLEU. Reason: " in text


def test_seeds_that_would_decide_are_those_at_which_the_same_error_is_small_enough(results, tmp_path):
    one = compared("less", "bleu", "f", "a", relevant=1.0)
    *_, found = cards(results, tmp_path, claim(primary=one))
    tests = found["lead"]["tests"] | {"above": 0.1587, "below": 0.9, "above_holm": None, "matters": True}
    lead = found["lead"] | {"verdict": "inconclusive", "tests": tests}  # one error from 0, and 1.96 are needed
    assert seeds_needed(lead) == 20 == ceil(len(SEEDS) * 1.96**2)
    assert seeds_needed(lead | {"tests": tests | {"above_holm": 0.3174}}) == ceil(len(SEEDS) * 2.2414**2)
    assert seeds_needed(lead | {"tests": tests | {"above": 0.45}}) is None
    assert seeds_needed(found["lead"]) is None


def test_identities_have_numbers_and_no_figure(results, tmp_path):
    exact = [{"name": "difference", "variant": "counts", "metric": "difference", "value": 0.0, "tolerance": 1e-5},
             {"name": "operations", "variant": "counts", "metric": "operations", "value": 100_663_295}]  # fmt: skip
    text, pictures, _ = cards(results, tmp_path, claim(identities=exact))
    assert "| 6.25×10⁻⁷ | exactly 0 ± 1×10⁻⁵ |" in text
    assert "| 100,663,296 | exactly 100,663,295 |" in text
    assert not pictures


def test_an_effect_that_is_undefined_is_said_and_not_drawn(results, tmp_path):
    text, pictures, _ = cards(results, tmp_path, claim(primary=compared("greater", "broken", "counts", than=1.0)))
    assert "**Why:** broken is undefined in seed 1." in text
    assert not pictures


@pytest.mark.parametrize(("relevant", "scale", "interval", "effect"), [
    (0.05, "plain", None, "+0.312"),
    (2.0, "plain", None, "+0.3"),
    (30.0, "plain", None, "+0"),
    (2.0, "plain", (0.31, 0.314), "+0.31"),
    (30.0, "plain", (0.31, 0.314), "+0.3"),
    (1.1, "log", None, "0.31"),
])  # fmt: skip
def test_effects_are_as_fine_as_what_matters_and_as_their_interval(relevant, scale, interval, effect):
    row = claim_row(entry(effect=0.312, interval=interval, relevant=relevant, scale=scale, seeds=[1], unit="nats"))
    assert row[3].split(" [")[0] == f"{effect}\N{NO-BREAK SPACE}{'times' if scale == 'log' else 'nats'}"
    assert row[4] == "generated, 1 seed"


def test_the_example_in_contributing_is_a_claim(tmp_path):
    text = (REPLICATIONS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = (part for part in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "claims:" in part)
    (tmp_path / "claims.yaml").write_text(example)
    found = load_claims(tmp_path / "claims.yaml", "quick")
    assert found.claims[0].primary.variants == ("halves-general", "halves-reverse")
    assert found.floors["halves"].reached(0.6)


@pytest.mark.parametrize(("primary", "none", "ends"), [
    (compared("greater", "bleu", "f", "a", relevant=2.0, paper=7.5), 0.0, [2.0]),
    (compared("equal", "bleu", "f", "a", relevant=2.0), 0.0, [-2.0, 2.0]),
    (compared("less", "perplexity", "f", "a", scale="log", relevant=1.25), 1.0, [1.25]),
    (compared("equal", "perplexity", "f", "a", scale="log", relevant=1.25), 1.0, [0.8, 1.25]),
])  # fmt: skip
def test_a_figure_has_seeds_interval_no_effect_and_what_matters(results, tmp_path, monkeypatch, primary, none, ends):
    canvases, drawing = [], figures.drawing

    @contextmanager
    def kept(*args, **keys):
        with drawing(*args, **keys) as canvas:
            canvases.append(canvas)
            yield canvas

    monkeypatch.setattr(figures, "drawing", kept)
    *_, found = cards(results, tmp_path, claim(primary=primary))
    lead = found["lead"]
    paper = [] if lead["paper"] is None else [[lead["paper"]]]
    lines = [[float(x) for x in line.get_xdata()] for line in canvases[0].axes[0].get_lines()]
    upright = [[x, x] for x in (none, *ends)]
    assert lines == [*upright, *([x] for x in lead["per_seed"]), [*lead["interval"]], [lead["effect"]], *paper]


@pytest.mark.parametrize(("primary", "later", "expected"), [
    (compared("greater", "bleu", "f", "nowhere"), {}, []),  # no run of it is planned
    (compared("greater", "bleu", "f", "zz"), {}, ["**At bench scale it is decided by** BLEU of `f`, `zz`."]),
    (compared("less", "bleu", "f", "zz"), {"not_decided": {"bench": "x"}}, [NOT_EITHER]),
    (compared("greater", "bleu", "f", "a"), {}, []),  # it was reproduced
    (None, {}, []),  # no scale decides it, as was said
])  # fmt: skip
def test_what_was_not_decided_is_planned_for_a_larger_scale_or_not(results, tmp_path, primary, later, expected):
    text, *_ = cards(results, tmp_path, claim(primary=primary, **later), larger=("bench", ("f", "a", "zz")))
    assert [line.removeprefix("* ") for line in text.splitlines() if "at bench" in line.lower()] == expected


@pytest.mark.parametrize(("scale", "first"), [("quick", ""), ("bench", "python -m shared.pipeline use bench\n")])
def test_the_command_makes_the_runs_behind_a_verdict_those_of_another_paper_there(results, tmp_path, scale, first):
    found = results | {"other/a": replace(results["a"], variant="other/a")}
    supporting = [{"name": "not run"} | compared("greater", "bleu", "f", "zz")]
    one = claim(primary=compared("greater", "bleu", "f", "other/a"), supporting=supporting)
    text, *_ = cards(found, tmp_path, one, scale=scale)
    runs = f"replications/p/{scale}/dvc.yaml:evaluate@f \\\n  replications/other/{scale}/dvc.yaml:evaluate@a\n"
    assert f"{first}dvc repro {runs}" in text
    assert [line for line in text.splitlines() if line.startswith("| not run | ")] == []


def test_effects_are_in_units_of_the_smallest_that_matters():
    plain = relative(entry())
    assert (plain.value, plain.interval) == (3.0, (2.0, 4.0))
    ratio = relative(entry(scale="log", effect=1.21, relevant=1.1, interval=(1.0, 1.331)))
    assert (ratio.value, *ratio.interval) == pytest.approx((2.0, 0.0, log(1.331) / log(1.1)))


@pytest.mark.parametrize("missing", ["effect", "relevant", "interval"])
def test_what_has_no_effect_is_not_drawn(missing):
    assert relative(entry(**{missing: None})) is None


def test_an_effect_that_is_counted_from_a_threshold_is_said_as_measured():
    above = entry(effect=0.1, interval=(0.0, 0.2), relevant=0.05, unit="", base="above 0.77")
    below = entry(effect=0.45, interval=(0.4, 0.5), relevant=0.05, unit="", base="below 1.5")
    assert [effect_text(each["lead"]).replace("\N{NO-BREAK SPACE}", " ") for each in (above, below)] == [
        "0.870 [0.770, 0.970] (threshold 0.77)", "1.050 [1.000, 1.100] (threshold 1.5)"
    ]  # fmt: skip


@pytest.mark.parametrize("page", sorted((ROOT / "reports").glob("*/*/claims.json")), ids=lambda page: str(page.parent))
def test_all_claims_are_said_in_short(page):
    claims = load_claims(ROOT / "replications" / page.parent.name / "claims.yaml", page.parent.parent.name).claims
    assert [claim.id for claim in claims if claim.in_short is None] == []
