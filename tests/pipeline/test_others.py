"""A claim or a table names another paper's run, as `<paper>/<variant>`: its results are read where they lie."""

import json
import shutil
from pathlib import Path

import pytest

from shared.claims.results import load_results
from shared.pipeline.__main__ import main
from shared.pipeline.check import check_claims, check_settings
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import link_pipeline
from shared.pipeline.plan import content
from tests.pipeline.scratch import change_yaml
from tests.refused import assert_refused

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
