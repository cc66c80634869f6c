"""The commands ``list``, ``show`` and ``explain``, on the project itself and on reports that are changed."""

import io
import json

import pytest
from rich.console import Console

from shared.claims.scales import SCALES
from shared.claims.schema import load_claims
from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.asking import decision_of, explain_claim, show_claim
from shared.pipeline.config import ScaleFile
from shared.pipeline.listing import State, list_runs, state
from shared.reports.claim_sections import SILENT
from shared.reports.verdicts import found_text
from shared.tasks.protocol import papers


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


def test_every_paper_variant_and_task_is_listed(project):
    printed = said(list_runs)
    for paper in papers():
        settings = [ScaleFile(paper, scale) for scale in SCALES]
        assert f"{paper} ({settings[0].kind})" in printed
        assert all(f"\n{variant} " in printed for variant in settings[0].known())
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
    assert state(settings, "rnnsearch-30") == State("swaps", 0, 0, len(seeds))
    for seed in seeds[:2]:
        (folder / "train" / f"seed{seed}" / "checkpoints").mkdir(parents=True)
        (folder / "train" / f"seed{seed}" / "checkpoints" / "best.ckpt").touch()
    (folder / "metrics.json").write_text(json.dumps({"seeds": {str(seeds[0]): {}, "99": {}}}))
    assert state(settings, "rnnsearch-30") == State("swaps", 2, 1, len(seeds))
    assert state(settings, "rnnsearch-30").counted == f"2/1 of {len(seeds)}"
    (folder / "metrics.json").write_text(json.dumps({"not_run": "no wheel"}))
    assert state(settings, "rnnsearch-30").note == "not run: no wheel"
    left_out = next(iter(settings.left_out))
    assert state(settings, left_out).counted == "–"


def test_every_claim_is_shown_with_its_verdicts(project):
    found = entries(project)
    assert found
    for scale, paper, entry in found:
        printed = said(show_claim, entry["id"])
        claims = load_claims(project / "replications" / paper / "claims.yaml", scale).claims
        claim = next(claim for claim in claims if claim.id == entry["id"])
        assert all(" ".join(text.split()) in printed for text in (claim.statement, claim.where, claim.in_paper.text))
        how = f": {entry['how']}" if entry["how"] else ""
        assert f"{scale}: {entry['verdict']}{how}" in printed
        if entry["lead"] is not None:
            assert found_text(entry) in printed


def test_every_verdict_is_explained_by_its_tests_and_checks(project):
    for scale, paper, entry in entries(project):
        printed = said(explain_claim, entry["id"], scale=scale)
        assert f"Verdict at {scale} scale: {entry['verdict']}" in printed
        hyphens = printed.replace("−", "-")  # claims.json has hyphens, the terminal true minus signs
        assert all(check["said"] in hyphens for check in entry["checks"] if check["name"] not in SILENT)
        lead = entry["lead"]
        if lead is not None and lead["tests"] is not None:
            assert "- Tests: that the effect" in printed
        for each in entry["learned"]:
            floors = load_claims(project / "replications" / paper / "claims.yaml", scale).floors
            if lead is not None and each["task"] in floors:
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


@pytest.mark.parametrize("command", ["show", "explain"])
def test_an_unknown_claim_is_named_with_the_nearest_one(command, project, capsys):
    assert main([command, "B15-c1"]) == 2
    assert capsys.readouterr().err == "error: there is no claim 'B15-c1' (did you mean 'B15-C1'?).\n"
    assert main([command, "nothing"]) == 2
    assert "there is no claim 'nothing'; there are B15-C1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scale", "first"), [("smoke", "python -m shared.pipeline use smoke && "), ("bench", ""), (None, "")]
)
def test_a_scale_without_a_report_is_refused_with_the_command_that_makes_it(
    scale, first, project, tmp_path, monkeypatch, capsys
):
    (tmp_path / "replications").symlink_to(project / "replications")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReplicationError) as error:
        explain_claim("B15-C1", scale=scale)
    target = f"replications/bahdanau/{scale}/dvc.yaml:report" if scale else "report@bahdanau"
    at = f" at {scale} scale" if scale else ""
    assert f"no report{at} decides B15-C1 (reports at these scales do: none)" in str(error.value)
    assert str(error.value).endswith(f"; run '{first}dvc repro {target}'.")


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
    assert "claims.yaml has changed since this report" in said(explain_claim, entry["id"], scale="bench")
    assert "changed since this report" not in said(explain_claim, entry["id"], scale=scale)
    assert "Verdict at bench scale" in said(explain_claim, entry["id"])  # the larger scale is the better evidence
