"""Claims that cannot be decided are refused before training, and a plan shows what was changed after it was frozen."""

import json
import re
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path

import pytest

from shared.claims.results import load_results
from shared.pipeline import plan
from shared.pipeline.__main__ import main
from shared.pipeline.check import check_claims, check_settings
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import link_pipeline, write_json
from shared.pipeline.plan import changes, confirming, content, ledger_of, load_plan, plan_path, with_history
from tests.pipeline.scratch import change_yaml, commit, refusal
from tests.refused import assert_refused

PAPER = "toy_sequences"


@pytest.fixture
def home(toys):
    """The folder of a toy paper with a quick scale of five seeds, and a variant of twice the updates."""
    folder = toys / "replications" / PAPER
    change_yaml(folder / "claims.yaml", lambda content: floor_of(content, at_most=9.0))
    for scale in ("quick", "bench", "paper_scale"):
        shutil.copytree(folder / "smoke", folder / scale)
        change_yaml(folder / scale / "params.yaml", lambda content, scale=scale: at_scale(content, scale))
    for scale in ("smoke", "quick", "bench", "paper_scale"):
        shutil.copy("shared/pipeline/templates/pipeline.yaml", folder / scale / "dvc.yaml")
    return folder


def floor_of(content, **fields):
    content.update(floors={"task": {"metric": "perplexity", "at_most": 3.0, "because": "a test"} | fields})


def at_scale(content, scale):
    content["scale"] = scale
    content["tasks"]["task"]["seeds"] = [1, 2, 3, 4, 5]
    content["variants"]["elsewhere"] = {"task": "task", "training": {"updates": 80}, "seeds": [1, 2, 3]}


def primary(home, **fields):
    change_yaml(home / "claims.yaml", lambda content: content["claims"][0]["primary"].update(fields))


def check(scale="quick"):
    return check_claims(ScaleFile(PAPER, scale), {"task"}, ())


def doubled(home):
    """Both sides make 40 updates, and 80 where they are doubled."""
    change_yaml(home / "quick/params.yaml", lambda content: content["variants"]["short"].pop("training"))
    primary(home, doubled=["elsewhere", "elsewhere"])


def settings():
    return ScaleFile(PAPER, "quick")


def test_a_claim_of_five_paired_seeds_is_accepted(home):
    assert check() == ["T-C1"]
    doubled(home)
    assert check() == ["T-C1"]


@pytest.mark.parametrize(("fields", "message"), [
    ({"variants": ["lang", "short"]}, r"variants.yaml has no variant 'lang' \(did you mean 'long'"),
    ({"metric": "perplexty"}, "there is no measure 'perplexty'"),
    ({"metric": "test_long.token_accuracy"}, "give 'metric: token_accuracy' and 'where: {split: test_long}'"),
    ({"scale": "plain", "relevant": 1.0}, "compare nats or bits, or give 'scale: log'"),
    ({"metric": "token_accuracy", "scale": "plain", "relevant": 100.0}, "no two values of token_accuracy differ"),
    ({"metric": "token_accuracy", "scale": "plain", "kind": "greater", "variants": ["long"], "than": 95.0,
      "relevant": 6.0}, "relevant: token_accuracy is at most 100, never 101"),
    ({"doubled": ["short", "short"]}, "doubled: short makes 2 updates, not twice 40 of long"),
])  # fmt: skip
def test_what_cannot_be_decided_is_refused(fields, message, home):
    primary(home, **fields)
    assert assert_refused(message, check).startswith(f"replications/{PAPER}/claims.yaml: T-C1")


def test_fewer_than_five_paired_seeds_decide_nothing_but_at_smoke_scale(home):
    change_yaml(home / "quick/params.yaml", lambda content: content["variants"]["short"].update(seeds=[1]))
    assert_refused(r"long and short share 1 seed in .*quick/params.yaml and need 5; give more", check)
    check("smoke")
    change_yaml(home / "claims.yaml", lambda content: content["claims"][0].update(not_decided={"quick": "one run"}))
    check()


def test_a_doubling_of_too_few_seeds_is_refused(home):
    doubled(home)
    change_yaml(home / "quick/params.yaml", lambda content: content["variants"]["elsewhere"].update(seeds=[1, 2]))
    assert_refused("doubled: elsewhere needs 3 or more seeds", check)


def test_variants_of_different_data_are_refused(home):
    def second_task(content):
        task = content["tasks"]["task"]
        content["tasks"]["other"] = task | {"corpus": task["corpus"] | {"shortest": 3}}
        content["variants"]["short"]["task"] = "other"

    change_yaml(home / "quick/params.yaml", second_task)
    assert_refused("long and short are of the tasks 'task' and 'other', which have different data", check)


@pytest.mark.parametrize(("task", "floor", "message"), [
    ("tusk", {"metric": "perplexity", "at_most": 3.0}, r"no scale of toy_sequences has the task 'tusk' \(did you"),
    ("task", {"metric": "perplexty", "at_most": 3.0}, "there is no measure 'perplexty'"),
    ("task", {"metric": "token_accuracy", "at_least": 101.0}, "at_least: token_accuracy is never 101"),
    ("task", {"metric": "long.token_accuracy", "at_least": 101.0}, "at_least: long.token_accuracy is never 101"),
    ("task", {"metric": "perplexity", "at_most": 3.0, "exempt": {"lang": "x"}}, "has no variant 'lang'"),
])  # fmt: skip
def test_a_floor_that_nothing_can_reach_or_have_is_refused(task, floor, message, home):
    change_yaml(home / "claims.yaml", lambda content: content.update(floors={task: floor | {"because": "a test"}}))
    assert re.match(rf"replications/{PAPER}/claims\.yaml: '?floors\.{task}", assert_refused(message, check))


DAYS = [{"commit": name, "date": f"2026-0{name}-01"} for name in "123"]


@pytest.fixture
def frozen(home):
    commit(home.parent.parent)
    assert main(["freeze", PAPER, "--scale", "quick"]) == 0
    return home


def test_a_plan_holds_the_commit_and_a_hash_of_what_decides(frozen):
    plan = json.loads((frozen / "quick/plan.json").read_text())
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert plan["commit"] == head
    assert plan["variants"].keys() == {"long", "short"}
    assert plan["claims"]["T-C1"]["variants"] == ["long", "short"]
    assert plan["rules"]["fewest_seeds"] == 5
    assert changes(settings()) == {"T-C1": ()}


def test_a_claim_keeps_the_date_of_its_plan_until_something_changes_for_it(frozen):
    (first, second, third), now = DAYS, content(settings())
    plan = with_history(first | now, None)
    assert plan["claims"]["T-C1"]["frozen"] == [first]
    plan = with_history(second | now, plan)
    assert plan["claims"]["T-C1"]["frozen"] == [first]
    more = third | now | {"variants": now["variants"] | {"short": "0"}}  # seeds that another claim asks for
    assert with_history(more, plan)["claims"]["T-C1"]["frozen"] == [first]
    own = {"T-C1": now["claims"]["T-C1"] | {"seeds": [1, 2, 3, 4, 5, 6]}}
    assert with_history(more | {"claims": own}, plan)["claims"]["T-C1"]["frozen"] == [first, third]
    undecided = {"T-C1": now["claims"]["T-C1"] | {"variants": []}}
    plan = with_history(first | now | {"claims": undecided}, None)
    assert plan["claims"]["T-C1"]["frozen"] == []
    assert with_history(second | now, plan)["claims"]["T-C1"]["frozen"] == [second]
    assert load_plan(settings())["claims"]["T-C1"]["frozen"][0].keys() == {"commit", "date"}


def test_a_changed_rule_dates_every_plan_anew(frozen, monkeypatch):
    first, second, _ = DAYS
    before = with_history(first | content(settings()), None)
    monkeypatch.setitem(plan.RULES, "learned", 0.9)
    assert changes(settings()) == {"T-C1": ("the rule 'learned'",)}
    now = second | content(settings())
    assert with_history(now, before)["claims"]["T-C1"]["frozen"] == [first, second]
    before["rules"].pop("learned")  # a plan of before there was this rule
    assert with_history(now, before)["claims"]["T-C1"]["frozen"] == [first]


def test_the_earlier_plans_of_a_claim_stay_while_no_run_decides_it_and_while_it_is_dropped(frozen):
    (first, second, third), now = DAYS, content(settings())
    before = with_history(first | now, None)
    none = now["claims"]["T-C1"] | {"decided by": "no run", "variants": []}
    undecided = with_history(second | now | {"claims": {"T-C1": none}}, before)
    assert undecided["claims"]["T-C1"]["frozen"] == [first]
    assert with_history(third | now, undecided)["claims"]["T-C1"]["frozen"] == [first, third]
    dropped = with_history(second | now | {"claims": {}}, before)
    assert (dropped["claims"], dropped["dropped"]) == ({}, {"T-C1": [first]})
    assert with_history(third | now | {"claims": {}}, dropped)["dropped"] == {"T-C1": [first]}
    again = with_history(third | now, dropped)
    assert (again["claims"]["T-C1"]["frozen"], again["dropped"]) == ([first, third], {})


def test_a_plan_that_is_replaced_keeps_the_verdict_that_it_came_to(frozen):
    (first, second, _), now = DAYS, content(settings())
    changed = second | now | {"claims": {"T-C1": now["claims"]["T-C1"] | {"floor": "0"}}}
    plan = with_history(first | now, None)
    entry = {"id": "T-C1", "verdict": "inconclusive", "ended": "2026-01-02"}
    came = with_history(changed, plan, [entry])["claims"]["T-C1"]["frozen"]
    assert came == [first | {"verdict": "inconclusive"}, second]
    for unjudged in ({"ended": "2025-12-31"}, {"ended": None}):  # the report is of an earlier plan
        assert with_history(changed, plan, [entry | unjudged])["claims"]["T-C1"]["frozen"] == [first, second]


ROW = {"name": "more", "kind": "less", "metric": "bits", "variants": ["long", "short"], "relevant": 0.1, "because": "x"}
CHANGED = [
    ("quick/params.yaml", lambda c: c["variants"]["short"]["training"].update(updates=4), ("the settings of short",)),
    ("quick/params.yaml", lambda c: c["variants"]["elsewhere"].update(seeds=[1]), ()),
    ("quick/params.yaml", lambda c: c["variants"]["short"].update(seeds=[1, 2, 3, 4, 5, 6, 1001]), ()),  # 6 is no pair
    ("claims.yaml", lambda c: c["claims"][0]["primary"].update(relevant=1.1), ("what decides the claim",)),
    ("claims.yaml", lambda c: c["claims"][0]["primary"].update(called="surprise", because="better", paper=1.5), ()),
    ("claims.yaml", lambda c: c["claims"][0].update(supporting=[ROW], different_here="A toy."), ()),
    ("claims.yaml", floor_of, ("the floor of its task",)),
    ("claims.yaml", lambda c: c["claims"][0].update(
        supporting=[ROW], parts=[{"says": "so", "by": "primary"}, {"says": "more", "by": "more"}]),
     ("what decides further parts of the claim, or must show an effect",)),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "found"), CHANGED)
def test_what_has_changed_since_is_named_for_each_claim(file, change, found, frozen, capsys):
    change_yaml(frozen / file, change)
    assert changes(settings()) == {"T-C1": found}
    assert main(["check", PAPER, "--scale", "quick"]) == 0
    said = capsys.readouterr().out
    assert ("plan.json: T-C1: since the plan was frozen, this has changed: " in said) == bool(found)
    change_yaml(frozen / "claims.yaml", lambda c: c["claims"].append(c["claims"][0] | {"id": "T-C2"}))
    assert changes(settings())["T-C2"] == ("the claim was not in the plan",)


def test_another_search_and_who_is_exempt_are_changes_but_the_words_of_a_floor_are_none(frozen):
    def floor(**fields):
        change_yaml(frozen / "claims.yaml", lambda content: floor_of(content, **fields))
        return content(settings())["claims"]["T-C1"]["floor"]

    before = floor(exempt={"short": "meant to fail"})
    assert floor(because="said better", exempt={"short": "is meant to fail"}) == before
    assert floor(exempt={}) != before
    (frozen / "quick/search.json").write_text('{"seeds": [101], "groups": []}')
    assert "what the search found" in changes(settings())["T-C1"]


def test_what_no_run_of_the_scale_decides_may_change_until_a_run_does(frozen):
    def undecided(claims):
        claims["claims"].append(deepcopy(claims["claims"][0]) | {"id": "T-C2", "not_decided": {"quick": "bench does"}})

    change_yaml(frozen / "claims.yaml", undecided)
    write_json(plan_path(settings()), load_plan(settings()) | content(settings()))
    assert changes(settings()) == {"T-C1": (), "T-C2": ()}
    change_yaml(frozen / "claims.yaml", lambda content: content["claims"][1]["primary"].update(relevant=1.1))
    assert changes(settings()) == {"T-C1": (), "T-C2": ()}
    change_yaml(frozen / "claims.yaml", lambda content: content["claims"][1].pop("not_decided"))
    assert changes(settings()) == {"T-C1": (), "T-C2": ("what decides the claim", "the floor of its task")}


def test_a_plan_is_frozen_from_a_clean_commit(home, capsys):
    said = "is frozen from a clean commit; commit what has changed first"
    assert said in refusal(capsys, "freeze", PAPER, "--scale", "quick")
    assert load_plan(settings()) is changes(settings()) is None
    commit(home.parent.parent)
    primary(home, relevant=1.1)
    assert said in refusal(capsys, "freeze", PAPER, "--scale", "quick")


def test_seeds_that_confirm_are_drawn_from_the_commit_of_the_plan(frozen):
    of = load_plan(settings())
    seeds = of["claims"]["T-C1"]["confirming"]
    assert len({*seeds}) == 5
    assert min(seeds) >= 1000
    assert confirming(of) == {"T-C1": seeds}
    assert plan.draw_seeds("another commit") != seeds == plan.draw_seeds(of["commit"])


def test_a_design_is_a_plan_without_its_seeds(frozen):
    def digests():
        ledger = ledger_of(settings())
        return ledger.designs["T-C1"], ledger.plans["T-C1"]

    before = digests()
    change_yaml(frozen / "quick/params.yaml", lambda content: content["tasks"]["task"].update(seeds=[6, 7, 8, 9, 10]))
    other_seeds = digests()
    assert (other_seeds[0] == before[0], other_seeds[1] == before[1]) == (True, False)
    change_yaml(frozen / "quick/params.yaml", lambda c: c["variants"]["short"]["training"].update(updates=4))
    assert digests()[0] != before[0]


TRAINED, NAMING = "toy_sequences", "toy_naming"
OTHER = f"{TRAINED}/short"


@pytest.fixture
def project(toys):
    """Two toy papers; the claim of the second compares with the first one's `short`."""
    shutil.copytree(toys / "replications" / TRAINED, toys / "replications" / NAMING)
    change_yaml(toys / "params.yaml", lambda content: content["papers"].append(NAMING))
    for paper in (TRAINED, NAMING):
        link_pipeline(toys / "replications" / paper / "smoke")
    change(lambda content: content.update(paper=NAMING, others=[OTHER]))
    claims = toys / "replications" / NAMING / "claims.yaml"
    change_yaml(claims, lambda content: content["claims"][0]["primary"].update(variants=["long", OTHER]))
    return toys


def change(mend):
    change_yaml(Path(f"replications/{NAMING}/smoke/params.yaml"), mend)


def test_claims_and_plans_take_another_papers_run_with_its_settings(project):
    settings = ScaleFile(NAMING, "smoke")
    check_settings(settings)
    check_claims(settings, {"task"}, ())
    assert settings.run(OTHER) == ScaleFile(TRAINED, "smoke").run("short")
    assert settings.judged() == ["long", "short", "elsewhere", OTHER]
    frozen = content(settings)["variants"]
    assert frozen[OTHER] == content(ScaleFile(TRAINED, "smoke"))["variants"]["short"]


def test_results_are_read_where_they_lie_and_a_report_says_what_is_missing(project, capsys):
    for paper, variant in ((TRAINED, "short"), (NAMING, "long")):
        folder = Path("runs", "smoke", paper, variant)
        (folder / "evaluation").mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps({"variant": variant, "task": "task", "not_run": "a test"}))
    runs = Path("runs", "smoke", NAMING)
    results = load_results(runs, {}, [*ScaleFile(NAMING, "smoke").judged(), "unknown"])
    assert results[OTHER].folder == Path("runs", "smoke", TRAINED, "short")
    assert results[OTHER].variant == OTHER
    Path("runs", "smoke", TRAINED, "short", "metrics.json").unlink()
    assert main(["report", NAMING, "--scale", "smoke"]) == 0
    assert "not trained yet" in (project / "reports" / "smoke" / NAMING / "README.md").read_text()


@pytest.mark.parametrize(("mend", "message"), [
    (lambda c: c.update(others=["toy_sequence/short"]), r"others: .* paper 'toy_sequence' \(did you mean"),
    (lambda c: c.update(others=[f"{NAMING}/short"]), "there is no other paper 'toy_naming'"),
    (lambda c: c.update(others=[f"{TRAINED}/shrt"]), "runs no 'shrt' .did you mean 'short'"),
    (lambda c: c.update(others=["short"]), "'others.0': string should match pattern"),
    (lambda c: c["tasks"]["task"]["corpus"].update(longest=5), "needs a task 'task' whose corpus is that of"),
    (lambda c: c.update(others=[]), "params.yaml: others must list 'toy_sequences/short'"),
    (lambda c: c.pop("others"), "'others': field required"),
])  # fmt: skip
def test_a_run_that_is_not_there_or_of_other_data_is_refused(project, mend, message):
    def check():
        settings = ScaleFile(NAMING, "smoke")
        check_settings(settings)
        check_claims(settings, {"task"}, ())

    check()
    change(mend)
    assert_refused(message, check)
