"""The commands ``list`` and ``show``, on the project itself and on reports that are changed."""

import io
import json

import pytest
from rich.console import Console

from shared.claims.scales import SCALES
from shared.claims.schema import load_claims
from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.show import State, decision_of, list_runs, show_claim, state
from shared.reports.cards import SILENT
from shared.reports.verdicts import found_text
from shared.tasks.kinds import papers


@pytest.fixture
def project(root, monkeypatch):
    monkeypatch.chdir(root)
    return root


def said(function, *arguments, **options):
    file = io.StringIO()
    function(*arguments, console=Console(file=file, width=100_000, highlight=False), **options)
    return file.getvalue()


def entries(project):
    """All entries of all reports: (scale, paper, entry)."""
    files = sorted((project / "reports").glob("*/*/claims.json"))
    return [(path.parts[-3], path.parts[-2], entry) for path in files for entry in json.loads(path.read_text())]


def test_every_paper_task_and_variant_that_runs_is_listed_after_a_legend(project):
    printed, whole = said(list_runs), said(list_runs, everything=True)
    assert printed.startswith("Seeds with a checkpoint / with metrics, of all seeds.")
    for paper in papers():
        settings = [ScaleFile(paper, scale) for scale in scales_of(paper)]
        running = {name for each in settings for name in each.variants}
        assert f"{paper} ({settings[0].kind})" in printed
        section = printed.partition(f"\n{paper} (")[2].partition("tasks, scale")[0].splitlines()[2:]
        assert {line.split()[0] for line in section} == running
        assert all(f"\n{variant} " in whole for variant in settings[0].known())
        assert all(f"tasks, scale {each.scale}: {', '.join(each.tasks)}" in printed for each in settings)


def test_one_paper_is_listed_with_the_reasons_for_what_is_left_out(project):
    printed = said(list_runs, "luong")
    for scale in SCALES:
        settings = ScaleFile("luong", scale)
        assert f"luong (translation), scale {scale}" in printed
        assert all(" ".join(reason.split()) in printed for reason in settings.left_out.values())
    assert main(["list", "luomg"]) == 2


def test_what_is_trained_and_judged_is_counted(project, tmp_path, monkeypatch):
    settings = ScaleFile("bahdanau", "quick")
    seeds = settings.run("rnnsearch-30").seeds
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "quick" / "bahdanau" / "rnnsearch-30"
    monkeypatch.setattr(ScaleFile, "run", lambda self, variant: config)
    config = type("Run", (), {"seeds": seeds, "evaluation": type("Judged", (), {"checkpoint": "best"})})
    assert state(settings, "rnnsearch-30") == State(0, 0, len(seeds))
    for seed in seeds[:2]:
        (folder / "train" / f"seed{seed}" / "checkpoints").mkdir(parents=True)
        (folder / "train" / f"seed{seed}" / "checkpoints" / "best.ckpt").touch()
    (folder / "metrics.json").write_text(json.dumps({"seeds": {str(seeds[0]): {}, "99": {}}}))
    assert state(settings, "rnnsearch-30") == State(2, 1, len(seeds))
    assert state(settings, "rnnsearch-30").counted == f"2/1 of {len(seeds)}"
    (folder / "metrics.json").write_text(json.dumps({"not_run": "no wheel"}))
    assert state(settings, "rnnsearch-30").note == "not run: no wheel"
    left_out = next(iter(settings.left_out))
    assert state(settings, left_out).counted == "–"


def test_every_claim_is_shown_with_its_verdicts_and_explained_by_its_tests_and_checks(project):
    found = entries(project)
    assert found
    for scale, paper, entry in found:
        printed = said(show_claim, entry["id"], scale=scale)
        claims = load_claims(project / "replications" / paper / "claims.yaml", scale)
        claim = next(claim for claim in claims.claims if claim.id == entry["id"])
        assert all(" ".join(text.split()) in printed for text in (claim.statement, claim.where, claim.in_paper.text))
        how = f": {entry['how']}" if entry["how"] else ""
        assert f"{scale}: {entry['verdict']}{how}" in printed
        assert f"How the verdict at {scale} scale came about" in printed
        hyphens = printed.replace("−", "-")  # claims.json has hyphens, the terminal true minus signs
        assert all(check["said"] in hyphens for check in entry["checks"] if check["name"] not in SILENT)
        if (lead := entry["lead"]) is not None:
            assert found_text(entry) in printed
            assert ("- Tests: that the effect" in printed) == (lead["tests"] is not None)
            for each in entry["learned"]:
                if each["task"] in claims.floors:
                    assert f"{each['reached']} of {number_of(each['seeds'], 'seed')} of {each['variant']}" in printed
        if entry["verdict"] in ("inconclusive", "not tested"):
            assert "- Why: " in printed


def test_an_entry_gives_back_the_decision_that_it_was_written_from(project):
    for scale, paper, entry in entries(project):
        claims = load_claims(project / "replications" / paper / "claims.yaml", scale)
        claim = next(claim for claim in claims.claims if claim.id == entry["id"])
        again = json.loads(json.dumps(decision_of(entry, claim).to_json()))
        assert {key: again[key] for key in ("verdict", "lead", "checks", "learned", "comparisons", "agreeing")} == {
            key: entry[key] for key in ("verdict", "lead", "checks", "learned", "comparisons", "agreeing")
        }


def test_an_unknown_claim_is_named_with_the_nearest_one(project, tmp_path, monkeypatch, capsys):
    assert main(["show", "B15-c1"]) == 2
    assert capsys.readouterr().err == "error: there is no claim 'B15-c1' (did you mean 'B15-C1'?).\n"
    assert main(["show", "nothing"]) == 2
    assert "there is no claim 'nothing'; there are B15-C1" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    for command in (["show", "B15-C1"], ["list"]):
        assert main(command) == 2
        assert capsys.readouterr().err.endswith("has no folder 'replications' with papers; go to the project's root.\n")


@pytest.mark.parametrize("scale", ["smoke", "bench"])
def test_a_scale_without_a_report_is_refused_with_the_command_that_makes_it(scale, project, tmp_path, monkeypatch):
    (tmp_path / "replications").symlink_to(project / "replications")
    monkeypatch.chdir(tmp_path)
    assert "No report says anything of it yet; run 'dvc repro report@bahdanau'." in said(show_claim, "B15-C1")
    with pytest.raises(ReplicationError, match=rf"no report at {scale} scale decides B15-C1 \(.* do: none\)") as error:
        show_claim("B15-C1", scale=scale)
    assert str(error.value).endswith(f"; run 'python -m shared.pipeline use {scale} && dvc repro report@bahdanau'.")


def test_scales_that_disagree_and_claims_that_changed_are_said(project, tmp_path, monkeypatch):
    scale, paper, entry = next(
        each for each in entries(project) if each[0] == "quick" and each[2]["verdict"] == "reproduced"
    )
    for name in ("replications", "runs", "data", "params.yaml"):
        (tmp_path / name).symlink_to(project / name)
    other = entry | {"verdict": "contradicted", "how": "opposite", "scale": "bench", "statement": "Another one."}
    for each in (entry, other):
        folder = tmp_path / "reports" / each["scale"] / paper
        folder.mkdir(parents=True)
        (folder / "claims.json").write_text(json.dumps([each]))
    monkeypatch.chdir(tmp_path)
    printed = said(show_claim, entry["id"])
    assert "bench: contradicted: opposite" in printed
    assert "The scales disagree" in printed
    assert "claims.yaml has changed since this report" in printed
    assert "the verdict at bench scale" in printed  # the larger scale is the better evidence
    assert "changed since this report" not in said(show_claim, entry["id"], scale=scale)
