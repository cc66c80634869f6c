"""A paper takes the results of another paper's runs on the same data in place of runs of its own."""

import json
import shutil
from pathlib import Path

import pytest

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.check import check_settings
from shared.pipeline.check_claims import check_claims
from shared.pipeline.config import ScaleFile
from shared.pipeline.plan import content
from shared.tasks.kinds import load_measures
from tests.pipeline.scratch import change_yaml
from tests.pipeline.toys import write_project

LENDER, BORROWER = "toy_sequences", "toy_borrower"
RECORD = {
    "parameters": {}, "updates": 2, "stopped_because": "the end", "fingerprint": "a mark", "checkpoints": [],
    "processor_seconds": 1.0,
}  # fmt: skip
SOURCE, TARGET = f"runs/smoke/{LENDER}/short", f"runs/smoke/{BORROWER}/short"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two toy papers; the second has the first one's `short`."""
    root = write_project(tmp_path / "project")
    monkeypatch.chdir(root)
    monkeypatch.setattr("replications.__path__", [str(root / "replications")])  # first, or the toys' package is kept
    monkeypatch.syspath_prepend(str(root))
    load_measures()
    shutil.copytree(root / "replications" / LENDER, root / "replications" / BORROWER)
    change_yaml(root / "params.yaml", lambda content: content["papers"].append(BORROWER))
    for paper in (LENDER, BORROWER):
        shutil.copy("shared/pipeline/templates/pipeline.yaml", root / "replications" / paper / "smoke/dvc.yaml")
    lent()
    return root


def params(mend):
    change_yaml(Path(f"replications/{BORROWER}/smoke/params.yaml"), mend)


def lent(**fields):
    entry = {"paper": LENDER, "variant": "short", "task": "task"} | fields

    def mend(content):
        content.update(paper=BORROWER, lent={"short": entry})
        content["variants"].pop("short", None)

    params(mend)


def evaluated(root):
    """The files that a run of the lender leaves."""
    for seed in (3, 4):
        for folder in ("train", "evaluation"):
            (root / SOURCE / folder / f"seed{seed}").mkdir(parents=True)
        train = root / SOURCE / "train" / f"seed{seed}"
        (train / "checkpoints").mkdir()
        (train / "run.json").write_text(json.dumps(RECORD | {"seed": seed}))
        (train / "curve.csv").write_text("update,split,metric,value\n1,valid,loss,0.5\n")
        (root / SOURCE / "evaluation" / f"seed{seed}" / "attention.npz").write_bytes(b"weights")
    (root / SOURCE / "train" / "seed5" / "checkpoints").mkdir(parents=True)  # half-trained
    (root / SOURCE / "curve.csv").write_text("update,valid_loss\n1,0.5\n")
    (root / SOURCE / "evaluation" / "costs.json").write_text("{}")
    metrics = {"variant": "short", "task": "theirs", "seeds": {"3": {"perplexity": 2.0}, "4": {"perplexity": 3.0}}}
    (root / SOURCE / "metrics.json").write_text(json.dumps(metrics))


def test_results_are_copied_under_the_borrowers_names_without_checkpoints(project):
    evaluated(project)
    assert main(["lend", f"{BORROWER}.short", "--scale", "smoke"]) == 0
    assert main(["lend", f"{BORROWER}.short", "--scale", "smoke"]) == 0  # again, over what is there
    run = load_results(project / "runs/smoke" / BORROWER)["short"]
    assert (run.variant, run.task, run.seeds) == ("short", "task", (3, 4))
    assert run.runs[4]["updates"] == 2
    assert run.curve(3).read_text() == (project / SOURCE / "train/seed3/curve.csv").read_text()
    assert run.attention(4).read_bytes() == b"weights"
    assert sorted(path.name for path in (project / TARGET / "train/seed3").iterdir()) == ["curve.csv", "run.json"]
    assert sorted(path.name for path in (project / TARGET / "train").iterdir()) == ["seed3", "seed4"]
    assert json.loads((project / SOURCE / "metrics.json").read_text())["task"] == "theirs"


def test_claims_and_plans_take_what_is_lent_as_runs_of_the_lenders_settings(project):
    settings = ScaleFile(BORROWER, "smoke")
    assert check_settings(settings) is None
    assert check_claims(settings, {"task"}, ()) is None
    assert settings.judged() == ["long", "elsewhere", "short"]
    assert content(settings)["claims"]["T-C1"]["variants"] == ["long", "short"]
    assert settings.run("short") == ScaleFile(LENDER, "smoke").run("short")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"paper": "toy_sequence"}, r"there is no paper 'toy_sequence' \(did you mean 'toy_sequences'"),
        ({"variant": "shor"}, r"toy_sequences/smoke/params.yaml runs no 'shor' \(did you mean 'short'"),
        ({"variant": "unread"}, "runs no 'unread'"),
        ({"paper": "toy_languag"}, r"lent.short.paper: there is no paper 'toy_languag' \(did you mean 'toy_language'"),
        ({"paper": ""}, "'lent.short.paper': string should have at least 1 character"),
        ({"paper": "toy_language"}, "the data of 'task' are not those of toy_language.short, the task 'task'"),
    ],
)
def test_runs_that_are_not_made_or_of_other_data_are_refused(project, fields, message):
    lent(**fields)
    with pytest.raises(ReplicationError, match=message):
        check_settings(ScaleFile(BORROWER, "smoke"))


@pytest.mark.parametrize(
    ("mend", "message"),
    [
        (lambda content: content["lent"]["short"].update(task="tusk"), r"lent.short.task: there is no task 'tusk'"),
        (lambda content: content["lent"].update(shor=content["lent"]["short"]), "lent: .* has no variant 'shor'"),
        (lambda content: content["variants"].update(short={"task": "task"}), "'short' is among variants and lent"),
        (lambda content: content.pop("lent"), "'lent': field required"),
    ],
)
def test_a_mistake_is_named_with_its_place(project, mend, message):
    params(mend)
    with pytest.raises(ReplicationError, match=message) as error:
        ScaleFile(BORROWER, "smoke")
    assert f"replications/{BORROWER}/smoke/params.yaml" in str(error.value)


def test_what_is_not_lent_or_not_evaluated_yet_is_said_in_one_sentence(project, capsys):
    assert main(["lend", f"{BORROWER}.short", "--scale", "smoke"]) == 2
    command = f"run 'python -m shared.pipeline evaluate {LENDER}.short --scale smoke'"
    assert capsys.readouterr().err == f"error: {SOURCE}/metrics.json does not exist; {command}.\n"
    (project / SOURCE).mkdir(parents=True)
    (project / SOURCE / "metrics.json").write_text("{}")  # as git has it of runs on another machine
    assert main(["lend", f"{BORROWER}.short", "--scale", "smoke"]) == 2
    assert capsys.readouterr().err == f"error: {SOURCE}/evaluation does not exist; {command}.\n"
    assert main(["lend", f"{BORROWER}.long", "--scale", "smoke"]) == 2
    assert "lent has no 'long'; there are short." in capsys.readouterr().err
    assert main(["lend", f"{LENDER}.long", "--scale", "smoke"]) == 2
    assert "lent has no 'long', for it is empty: all variants have runs of their own" in capsys.readouterr().err
    assert not (project / TARGET).exists()


@pytest.mark.parametrize(
    ("record", "content", "stage"),
    [
        ("metrics.json", "<<<<<<< HEAD\n{}\n", "evaluate"),
        ("metrics.json", '{"seeds": []}', "evaluate"),
        ("evaluation/costs.json", None, "evaluate"),
        ("train/seed4/run.json", None, "train"),
        ("train/seed4/run.json", "{}", "train"),
        ("train/seed4/curve.csv", None, "train"),
        ("curve.csv", None, "train"),
    ],
)
def test_records_of_the_lender_that_are_missing_or_damaged_are_named_and_nothing_is_copied(
    project, capsys, record, content, stage
):
    evaluated(project)
    (project / SOURCE / record).unlink()
    if content is not None:
        (project / SOURCE / record).write_text(content)
    assert main(["lend", f"{BORROWER}.short", "--scale", "smoke"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {SOURCE}/{record} ")
    assert said.endswith(f"; run 'python -m shared.pipeline {stage} {LENDER}.short --scale smoke'.\n")
    assert not (project / TARGET).exists()
