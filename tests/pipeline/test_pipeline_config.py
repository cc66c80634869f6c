"""What YAML may say: every shipped file builds, and every mistake gets one sentence."""

from pathlib import Path

import pytest
import yaml

from shared.config import load_yaml
from shared.errors import ReplicationError
from shared.pipeline.config import SCALES, ScaleFile, load_params
from shared.tasks.protocol import load_replication
from shared.training.run import resolve_precision

PAPERS = sorted(path.parent.name for path in Path("replications").glob("*/paper.yaml"))
FILES = [(paper, scale) for paper in PAPERS for scale in SCALES]


@pytest.mark.parametrize(("paper", "scale"), FILES)
def test_every_variant_of_every_shipped_file_is_valid_or_says_why_it_is_not_run(paper, scale):
    settings = ScaleFile(paper, scale)
    assert settings.deviations
    for variant in settings.variants:
        if settings.not_run(variant) is None:
            config = settings.run(variant)
            load_replication(paper).check(config)
            assert config.training.validate_every <= config.training.updates
        else:
            assert len(str(settings.not_run(variant))) > 10


@pytest.mark.parametrize(("paper", "scale"), FILES)
def test_a_task_that_is_left_out_is_ready_all_the_same_if_it_says_more(paper, scale):
    settings = ScaleFile(paper, scale)
    left_out = {task for task in settings.tasks if settings.left_out(task) is not None}
    ready = {task for task in settings.tasks if settings.tasks[task]["corpus"].keys() - {"left_out"}}
    assert left_out | ready == settings.tasks.keys()
    for variant, own in settings.variants.items():
        if settings.task_of(variant) in left_out & ready and "not_run" not in own:
            load_replication(paper).check(settings.run(variant))


def test_a_variant_has_the_reason_of_its_task_unless_it_has_its_own(tmp_path, monkeypatch):
    def change(content):
        content["tasks"]["table1"]["corpus"]["left_out"] = "no licence"
        content["variants"]["rnnencdec-50"]["not_run"] = "too slow"

    write(tmp_path, change)
    monkeypatch.chdir(tmp_path)
    settings = ScaleFile("bahdanau", "smoke")
    assert settings.left_out("table1") == settings.not_run("rnnsearch-50") == "no licence"
    assert settings.not_run("rnnencdec-50") == "too slow"
    assert settings.left_out("corpus") is None
    assert settings.corpus("table1").left_out == "no licence"


@pytest.mark.parametrize("paper", PAPERS)
def test_params_lists_exactly_the_variants_and_tasks_of_every_scale(paper):
    params = load_params()
    runs = {run.variant: run.task for run in params.runs.values() if run.paper == paper}
    tasks = {task.task for task in params.tasks.values() if task.paper == paper}
    assert paper in params.papers
    assert all(key == f"{run.paper}.{run.variant}" for key, run in params.runs.items())
    for scale in SCALES:
        settings = ScaleFile(paper, scale)
        assert {variant: settings.task_of(variant) for variant in settings.variants} == runs
        assert set(settings.tasks) == tasks


@pytest.mark.parametrize(("paper", "scale"), FILES)
def test_what_has_images_is_encoded_before_it_is_prepared(paper, scale):
    params, settings = load_params(), ScaleFile(paper, scale)
    for task in settings.tasks:
        key, pictured = f"{paper}.{task}", settings.kind(task) == "captioning"
        assert params.tasks[key].after == ("features" if pictured else "fetched")
        assert (key in params.pictures) == pictured
        assert not pictured or (params.pictures[key].paper, params.pictures[key].task) == (paper, task)


def test_preparation_depends_on_what_the_stage_before_it_records():
    stages = load_yaml(Path("dvc.yaml"))["stages"]
    for stage, after in (("fetch", "fetched"), ("features", "features")):
        recorded = [next(iter(out)) for out in stages[stage]["do"]["outs"] if isinstance(out, dict)]
        assert recorded == [f"runs/${{scale}}/${{item.paper}}/{after}/${{item.task}}.json"]
    needed = [dep for dep in stages["prepare"]["do"]["deps"] if dep.startswith("runs/")]
    assert needed == ["runs/${scale}/${item.paper}/${item.after}/${item.task}.json"]
    assert stages["features"]["foreach"] == "${pictures}"


@pytest.mark.parametrize(("paper", "scale"), FILES)
def test_every_key_that_a_stage_depends_on_is_there(paper, scale):
    content = load_yaml(Path("replications") / paper / f"{scale}.yaml")
    for task in content["tasks"].values():
        assert {"corpus", "model", "training", "seeds"} <= task.keys()


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_name_variants_that_exist(paper):
    own = ScaleFile(paper, "quick").variants
    together = {f"{name}-ensemble" for name, run in own.items() if run.get("evaluation", {}).get("ensemble")}
    variants = {*own, *together}
    text = load_yaml(Path("replications") / paper / "claims.yaml")
    for claim in text["claims"]:
        for comparison in [*claim.get("deciding", ()), *claim.get("also", ())]:
            named = [comparison.get("variant"), comparison.get("against"), *comparison.get("variants", ())]
            assert {name for name in named if name} <= variants, claim["id"]


def test_training_and_evaluation_depend_on_the_code_that_their_paper_imports():
    stages = load_yaml(Path("dvc.yaml"))["stages"]
    written = [next(iter(out)) for out in stages["code"]["do"]["outs"]]
    assert written == [f"runs/${{scale}}/${{item}}/code/{name}.json" for name in ("training", "evaluation")]
    for stage, code in (("train", "training"), ("evaluate", "evaluation")):
        deps = stages[stage]["do"]["deps"]
        assert [dep for dep in deps if "/code/" in dep] == [f"runs/${{scale}}/${{item.paper}}/code/{code}.json"]
        assert all(dep.startswith("runs/") for dep in deps)  # and on no code beside it
    assert stages["code"]["do"]["deps"] == ["shared", "replications"]
    assert stages["code"]["foreach"] == "${papers}"


def write(folder, change):
    content = load_yaml(Path("replications/bahdanau/smoke.yaml"))
    change(content)
    target = folder / "replications" / "bahdanau"
    target.mkdir(parents=True)
    (target / "smoke.yaml").write_text(yaml.safe_dump(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["tasks"]["table1"]["training"].update(update=3), "did you mean 'updates'"),
        (lambda c: c["tasks"]["table1"]["training"].update(updates=3), r"validate_every \(4\) must not exceed updates"),
        (lambda c: c["tasks"]["table1"]["training"].update(updates=0), "greater than or equal to 1, got 0"),
        (lambda c: c["tasks"]["table1"]["training"].update(clip=float("nan")), "'training.clip'"),
        (lambda c: c["tasks"]["table1"]["training"]["batch"].update(tokens=5), "either tokens or sentences"),
        (lambda c: c["tasks"]["table1"]["training"]["optimizer"].update(name="adamm"), "adamm"),
        (lambda c: c["tasks"]["table1"].update(seeds=[]), "'seeds'"),
        (lambda c: c["tasks"]["table1"]["corpus"].update(leftout="no"), "did you mean 'left_out'"),
        (lambda c: c["tasks"]["table1"]["corpus"].update(left_out=""), "at least 1 character"),
        (lambda c: c["tasks"]["table1"].update(seeds=[1], evaluation={"ensemble": True}), "needs at least two seeds"),
        (lambda c: c["variants"]["rnnsearch-50"].update(task="table2"), "did you mean 'table1'"),
        (lambda c: c.pop("variants"), "must be a mapping with the keys"),
    ],
)
def test_a_mistake_is_named_with_its_place(change, message, tmp_path, monkeypatch):
    write(tmp_path, change)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReplicationError, match=message) as error:
        ScaleFile("bahdanau", "smoke").run("rnnsearch-50")
    assert "smoke.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_in_the_model_section_is_named():
    config = ScaleFile("bahdanau", "smoke").run("rnnsearch-50")
    wrong = config.model_copy(update={"model": config.model | {"hiden_size": 3}})
    with pytest.raises(ReplicationError, match="did you mean 'hidden_size'"):
        load_replication("bahdanau").check(wrong)


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


def test_precision_is_resolved_to_one_of_two():
    assert resolve_precision("auto") in ("32-true", "bf16-mixed")
    assert resolve_precision("32-true") == "32-true"
    assert resolve_precision("bf16-mixed") == "bf16-mixed"
