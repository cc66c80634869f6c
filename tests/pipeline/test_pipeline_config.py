"""What YAML may say: every shipped file builds, and every mistake gets one sentence."""

import io
import re
import shutil
from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML

from shared.claims.scales import SCALES
from shared.config import load_yaml
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, load_params, scales_of
from shared.tasks.kinds import papers
from tests.pipeline.scratch import ROOT

SMOKE = Path("replications/bahdanau/smoke/params.yaml")
IDENTITIES = Path("replications/bahdanau/variants.yaml")


def test_every_variant_of_every_shipped_file_builds_or_says_why_it_does_not_run():
    assert set(papers()) == set(load_params().papers)
    for paper in papers():
        for scale in scales_of(paper):
            settings = ScaleFile(paper, scale)
            assert settings.deviations, settings.path
            assert settings.variants or scale == "paper_scale", settings.path
            for variant in settings.buildable():
                training = settings.run(variant).training
                assert training.validate_every <= training.updates, (settings.path, variant)
            assert all(len(reason) > 10 for reason in settings.left_out.values()), settings.path


def test_where_a_reason_says_that_another_scale_has_a_variant_it_has():
    for paper in papers():
        scales = {scale: ScaleFile(paper, scale) for scale in scales_of(paper)}
        for settings in scales.values():
            for variant, reason in settings.left_out.items():
                for other in re.findall(r"(quick|bench|paper_scale)(?: scale)? (?:has|trains|measures)\b", reason):
                    assert variant in scales[other].judged(), (settings.path, variant, reason)


def test_files_are_in_the_form_that_dvc_writes():
    """So that ``dvc exp run -S`` changes the line it is asked to change, and no other."""
    reformatted = []
    for path in [
        ROOT / "params.yaml",
        *ROOT.glob("replications/*/*/params.yaml"),
        *ROOT.glob("replications/*/variants.yaml"),
    ]:
        written, text = io.StringIO(), path.read_text(encoding="utf-8")
        round_trip = YAML()
        round_trip.default_flow_style = False
        round_trip.dump(round_trip.load(text), written)
        if written.getvalue() != text:
            reformatted.append(path.relative_to(ROOT).as_posix())
    assert reformatted == []


def test_a_variant_is_its_task_what_it_is_and_what_its_scale_changes(project):
    task = load_yaml(SMOKE)["tasks"]["swaps"]
    change(project / IDENTITIES, lambda content: content["variants"]["rnnsearch-50"].update(evaluation={"bleu": "13a"}))
    run = ScaleFile("bahdanau", "smoke").run("rnnsearch-50")
    assert run.task == "swaps"
    assert run.model == task["model"] | {"kind": "rnnsearch", "alignment_size": 16}
    assert run.evaluation.bleu == "13a"
    assert run.evaluation.heatmaps == task["evaluation"]["heatmaps"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with one paper's settings."""
    for path in (*(Path("replications/bahdanau") / scale / "params.yaml" for scale in SCALES), IDENTITIES):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(path, mend):
    content = load_yaml(path)
    mend(content)
    path.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda c: c["tasks"]["swaps"]["training"].update(update=3), "did you mean 'updates'"),
        (lambda c: c["tasks"]["swaps"]["training"].update(updates=3), r"validate_every \(4\) must not exceed updates"),
        (lambda c: c["tasks"]["swaps"]["training"].update(updates=0), "greater than or equal to 1, got 0"),
        (lambda c: c["tasks"]["swaps"]["training"].update(clip=float("nan")), "'training.clip'"),
        (lambda c: c["tasks"]["swaps"]["training"]["batch"].update(tokens=5), "either tokens or sentences"),
        (lambda c: c["tasks"]["swaps"]["training"]["optimizer"].update(name="adamm"), "adamm"),
        (lambda c: c["tasks"]["swaps"].update(seeds=[]), r"'tasks\.swaps\.seeds'"),
        (lambda c: c["tasks"]["swaps"].update(seeds=[1], evaluation={"ensemble": True}), "needs at least two seeds"),
        (lambda c: c["variants"]["rnnsearch-50"].update(task="swap"), "did you mean 'swaps'"),
        (lambda c: c["variants"]["rnnsearch-50"].update(modle={}), r"unknown key '.*modle'.*did you mean 'model'"),
        (lambda c: c.pop("variants"), "'variants': field required"),
        (lambda c: c.update(paper="luong"), "must be those of the folder"),
        (lambda c: c.update(scale="quick"), "must be those of the folder"),
        (lambda c: c["variants"].update(rnnserch={"task": "swaps"}), "has no variant 'rnnserch'"),
        (lambda c: c["variants"].pop("rnnsearch-50"), "'rnnsearch-50' .* neither runs nor is left out"),
        (lambda c: c["left_out"]["reasons"][0]["variants"].append("rnnsearch-50"), "is among variants and left_out"),
        (lambda c: c["tasks"]["swaps"].update(after="features"), "'features' must list 'swaps'"),
        (lambda c: c["features"].append("swaps"), "'features' must not list 'swaps'"),
        (lambda c: c["tasks"].update(other=c["tasks"]["swaps"]), "tasks.other has no variant that runs"),
    ],
)
def test_a_mistake_is_named_with_its_place(mistake, message, project):
    change(project / SMOKE, mistake)
    with pytest.raises(ReplicationError, match=message) as error:
        ScaleFile("bahdanau", "smoke").run("rnnsearch-50")
    assert str(SMOKE) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_kind_is_named(project):
    change(project / IDENTITIES, lambda content: content.update(kind="translatoin"))
    with pytest.raises(ReplicationError, match=r"variants.yaml: kind: .*did you mean 'translation'"):
        ScaleFile("bahdanau", "smoke")


def test_a_variant_that_is_left_out_says_why(project):
    settings = ScaleFile("bahdanau", "smoke")
    with pytest.raises(ReplicationError, match="'rnnsearch-30' is left out: left out of the smoke scale"):
        settings.run("rnnsearch-30")


@pytest.mark.parametrize(
    ("paper", "scale", "variant", "message"),
    [
        ("bahdanu", "smoke", "x", "did you mean 'bahdanau'"),
        ("bahdanau", "smok", "x", "choose smoke, quick, bench, paper_scale"),
        ("bahdanau", "smoke", "rnnserch-50", "did you mean 'rnnsearch-50'"),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(paper, scale, variant, message):
    with pytest.raises(ReplicationError, match=message):
        ScaleFile(paper, scale).run(variant)
