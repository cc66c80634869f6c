"""The commands ``list`` and ``show``, on the project itself and on reports that are changed; evidence and reference."""

import io
import json
import os
import re
import shutil
from contextlib import redirect_stdout
from unittest.mock import patch

import pytest

from shared.claims.schema import load_claims
from shared.claims.words import number_of
from shared.data.cards import FolderSource, load_card
from shared.errors import ReplicationError
from shared.pipeline import report
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.reference import PATH, reference
from shared.pipeline.report import evidence_of
from shared.pipeline.show import list_runs, show_claim, state
from shared.tasks.kinds import papers
from tests.pipeline.scratch import ROOT, refusal
from tests.pipeline.toys import Paper


@pytest.fixture
def project(root, monkeypatch):
    monkeypatch.chdir(root)
    return root


def said(function, *arguments, **options):
    with redirect_stdout(io.StringIO()) as file, patch.dict(os.environ, COLUMNS="100000"):
        function(*arguments, **options)
    return file.getvalue()


def entries(project):
    """All entries of all reports: (scale, paper, entry)."""
    files = sorted((project / "reports").glob("*/*/claims.json"))
    return [(path.parts[-3], path.parts[-2], entry) for path in files for entry in json.loads(path.read_text())]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_show_is_a_question_mark(project, monkeypatch, encoding):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["show", "\u0915?"]) == 2
    terminal.flush()
    assert b"there is no claim '??'" in terminal.buffer.getvalue()


def test_every_paper_task_and_variant_that_runs_is_listed_after_a_legend(project):
    printed, whole = said(list_runs), said(list_runs, everything=True)
    assert printed.startswith("Seeds with a checkpoint / with metrics, of all seeds.")
    for paper in papers():
        settings = [ScaleFile(paper, scale) for scale in scales_of(paper)]
        running = {name for each in settings for name in each.judged()}
        assert f"{paper} ({settings[0].kind})" in printed
        section = printed.partition(f"\n{paper} (")[2].partition("tasks, scale")[0].splitlines()[2:]
        assert {line.split()[0] for line in section} == running
        assert all(f"\n{variant} " in whole for variant in settings[0].identities)
        assert all(f"tasks, scale {each.scale}: {', '.join(each.tasks)}" in printed for each in settings)


def test_what_is_trained_and_judged_is_counted(toys):
    paper = Paper("sequences", toys)
    settings = ScaleFile(paper.name, "smoke")
    assert (state(settings, "long"), state(settings, "unread")) == (("0/0 of 2", ""), ("–", ""))
    for seed in (3, 4):
        weights = paper.runs / "long" / "train" / f"seed{seed}" / "checkpoints" / "best.ckpt"
        weights.parent.mkdir(parents=True)
        weights.touch()
    metrics, of = paper.runs / "long" / "metrics.json", {"variant": "long", "task": "copy"}
    metrics.write_text(json.dumps(of | {"seeds": {"3": {}, "99": {}}}))
    assert state(settings, "long") == ("2/1 of 2", "")
    metrics.write_text(json.dumps(of | {"not_run": "no wheel"}))
    assert "smoke: long was not run: no wheel" in said(list_runs, paper.name)


def test_a_claim_is_shown_with_its_verdicts_and_what_its_report_says(project):
    found = {(scale, entry["verdict"]): (paper, entry) for scale, paper, entry in entries(project)}
    assert {verdict for _, verdict in found} >= {"reproduced", "in part", "inconclusive", "verified"}
    for (scale, verdict), (paper, entry) in found.items():
        printed = said(show_claim, entry["id"], scale=scale)
        claims = load_claims(project / "replications" / paper / "claims.yaml", scale)
        claim = next(claim for claim in claims.claims if claim.id == entry["id"])
        assert all(" ".join(text.split()) in printed for text in (claim.statement, claim.where, claim.in_paper.text))
        assert f"{scale}: {verdict}" in printed
        assert ("Plan: " in printed) == (entry["lead"] is not None)
        assert not re.search(r"<details>|\*\*|figures/|\| ---", printed)
        for each in [*entry["comparisons"]] if entry["lead"] else ():
            supports = not each["deciding"] and each["verdict"] != "not tested"
            assert (f"Supporting comparison '{each['name']}': {each['verdict']}" in printed) == supports
        for each in entry["learned"]:
            if each["task"] in claims.floors:
                assert f"{each['reached']} of {number_of(each['seeds'], 'seed')} of {each['variant']}" in printed


def test_an_unknown_claim_is_named_with_the_nearest_one(project, tmp_path, monkeypatch, capsys):
    assert refusal(capsys, "show", "B15-c1") == "error: there is no claim 'B15-c1' (did you mean 'B15-C1'?).\n"
    assert r"'B15\x1b[2J\x9b'" in refusal(capsys, "show", "B15\x1b[2J\x9b")  # a terminal would obey them
    assert "there is no claim 'nothing'; there are A19-C1" in refusal(capsys, "show", "nothing")
    monkeypatch.chdir(tmp_path)
    for command in (["show", "B15-C1"], ["list"]):
        said = refusal(capsys, *command)
        assert said.endswith("has no folder 'replications' with papers; go to the project's root.\n")


@pytest.mark.parametrize("scale", ["smoke", "bench"])
def test_a_scale_without_a_report_is_refused_with_the_command_that_makes_it(scale, project, tmp_path, monkeypatch):
    (tmp_path / "replications").symlink_to(project / "replications")
    monkeypatch.chdir(tmp_path)
    assert "No report says anything of it yet; run 'dvc repro report@bahdanau'." in said(show_claim, "B15-C1")
    with pytest.raises(ReplicationError, match=rf"no report at {scale} scale decides B15-C1 \(.* do: none\)") as error:
        show_claim("B15-C1", scale=scale)
    assert str(error.value).endswith(f"; run 'python -m shared.pipeline use {scale} && dvc repro report@bahdanau'.")


def test_scales_that_disagree_and_claims_that_changed_are_said(project, tmp_path, monkeypatch):
    found = {(scale, entry["verdict"]): (scale, paper, entry) for scale, paper, entry in entries(project)}
    scale, paper, entry = found["quick", "reproduced"]
    (tmp_path / "replications").symlink_to(project / "replications")
    other = entry | {"verdict": "contradicted", "how": "opposite", "scale": "bench", "statement": "Another one."}
    for each in (entry, other):
        folder = tmp_path / "reports" / each["scale"] / paper
        folder.mkdir(parents=True)
        (folder / "claims.json").write_text(json.dumps([each]))
        shutil.copy(project / "reports" / scale / paper / "README.md", folder)
    monkeypatch.chdir(tmp_path)
    printed = said(show_claim, entry["id"])
    assert "bench: contradicted: opposite" in printed
    assert "The scales disagree" in printed
    assert "claims.yaml has changed since this report" in printed
    assert "the verdict at bench scale" in printed  # the larger scale is the better evidence
    assert "changed since this report" not in said(show_claim, entry["id"], scale=scale)


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


def test_the_committed_reference_is_current(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert (ROOT / PATH).read_text(encoding="utf-8") == reference(), "run: python -m shared.pipeline reference"
