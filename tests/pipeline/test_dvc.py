"""The real pipeline under the real DVC: what runs, what does not, and what a kill leaves."""

import importlib.util
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from shared.pipeline.runs import FEW
from tests.pipeline.scratch import SMOKE, change_yaml, commit, copy_project, dvc, environment, stages_run

pytestmark = pytest.mark.slow
PIPELINE = "replications/bahdanau/smoke/dvc.yaml"
VARIANTS = ("rnnsearch-50", "rnnencdec-50", "rnnsearch-appendix")
LAST = {"report", "report@bahdanau", "summarize"}
CHECK = {"check@bahdanau"}
ALWAYS = ["check@bahdanau", "summarize"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = copy_project(tmp_path_factory.mktemp("dvc") / "project")
    ran = stages_run(dvc(folder, "repro"))
    first = ["check@bahdanau", "fetch@swaps", "prepare@swaps", "train@rnnsearch-50", "evaluate@rnnsearch-50", "report"]
    assert sorted(first, key=ran.index) == first
    assert set(ran[-2:]) == {"report@bahdanau", "summarize"}
    commit(folder)
    return folder


def append(path, line):
    with path.open("a") as file:
        file.write(f"\n{line}\n")


def test_a_variants_learning_rate_concerns_that_variant(project):
    def change(content):
        content["variants"]["rnnsearch-50"]["training"] = {"optimizer": {"learning_rate": 0.5}}

    change_yaml(project / SMOKE, change)
    changed = [line for line in dvc(project, "params", "diff").splitlines() if "params.yaml" in line]
    assert [line.split()[1] for line in changed] == ["variants.rnnsearch-50.training.optimizer.learning_rate"]
    assert len(changed[0]) < 160
    ran = stages_run(dvc(project, "repro"))
    assert set(ran) == CHECK | {"train@rnnsearch-50", "evaluate@rnnsearch-50"} | LAST
    changed = json.loads(dvc(project, "metrics", "diff", "--json"))
    assert list(changed) == ["runs/smoke/bahdanau/rnnsearch-50/scores.json"]
    assert 1 <= len(changed["runs/smoke/bahdanau/rnnsearch-50/scores.json"]) <= FEW


def test_metrics_and_curves_of_all_variants_are_shown(project):
    metrics = json.loads(dvc(project, "metrics", "show", "--json"))[""]["data"]
    assert len(metrics) == len(VARIANTS)
    dvc(project, "plots", "show", "--out", "curves")
    page = (project / "curves" / "index.html").read_text()
    assert all(f"Validation loss, nats, bahdanau.{variant}" in page for variant in VARIANTS)


def test_prepared_data_that_was_changed_is_made_again_and_trains_nothing(project):
    array = project / "runs" / "smoke" / "bahdanau" / "tasks" / "swaps" / "train" / "source.npy"
    whole = array.read_bytes()
    array.write_bytes(whole[:-1] + b"!")
    assert not any(stage.startswith("train@") for stage in stages_run(dvc(project, "repro")))
    assert array.read_bytes() == whole


def test_a_change_of_decoding_trains_nothing(project):
    change_yaml(project / SMOKE, lambda content: content["tasks"]["swaps"]["decoding"].update(beam=1))
    ran = stages_run(dvc(project, "repro"))
    assert set(ran) == CHECK | {f"evaluate@{variant}" for variant in VARIANTS} | LAST


def test_a_figures_caption_concerns_the_report(project):
    append(project / "replications" / "bahdanau" / "report.py", "edited = True")
    append(project / "shared" / "reports" / "sections.py", "edited = True")
    assert set(stages_run(dvc(project, "repro"))) - {"summarize", "report@bahdanau"} == CHECK | {"report"}


@pytest.mark.parametrize(
    ("path", "stage"),
    [("attention/additive.py", "train"), ("layers/gated_recurrence.py", "train"), ("decoding/beam.py", "evaluate")],
)
def test_code_concerns_the_stages_that_use_it(path, stage, project):
    file = project / "shared" / path
    before = file.read_text()
    append(file, "edited = True")
    dvc(project, "repro", "check@bahdanau")
    would = set(stages_run(dvc(project, "repro", "--dry")))
    assert would >= {f"{stage}@{name}" for name in VARIANTS}
    assert stage == "train" or not any(name.startswith("train@") for name in would)
    file.write_text(before)
    assert stages_run(dvc(project, "repro")) == ALWAYS


def test_an_experiment_changes_one_line_of_a_scale_and_runs_what_depends_on_it(project):
    commit(project)
    path = project / "replications" / "bahdanau" / "quick" / "params.yaml"
    before = path.read_text().splitlines()
    beam = yaml.safe_load(path.read_text())["tasks"]["swaps"]["decoding"]["beam"]
    setting = f"{path.relative_to(project)}:tasks.swaps.decoding.beam={beam + 1}"
    dvc(project, "exp", "run", "-S", setting, "check@bahdanau")
    after = path.read_text().splitlines()
    (changed,) = ((old, new) for old, new in zip(before, after, strict=True) if old != new)
    assert changed == (f"      beam: {beam}", f"      beam: {beam + 1}")


def test_a_mistake_stops_the_pipeline_at_its_check_and_is_not_locked(project):
    lock = project / "replications" / "bahdanau" / "smoke" / "dvc.lock"
    before = yaml.safe_load(lock.read_text())["stages"]
    change_yaml(project / SMOKE, lambda content: content["tasks"]["swaps"]["training"].update(clip=-1.0))
    printed = dvc(project, "repro", f"{PIPELINE}:train@rnnsearch-50", status=255)
    assert "error: replications/bahdanau/smoke/params.yaml: tasks.swaps: 'training.clip'" in printed
    assert "Traceback" not in printed
    assert yaml.safe_load(lock.read_text())["stages"] == before


S3 = all(importlib.util.find_spec(name) for name in ("dvc_s3", "moto", "flask"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A checkout that has trained, evaluated and reported, and has committed what git keeps."""
    folder = copy_project(tmp_path_factory.mktemp("remote") / "first")
    dvc(folder, "repro")
    commit(folder)
    return folder


def weights(folder: Path) -> dict[str, bytes]:
    paths = folder.glob("runs/smoke/*/*/train/seed*/checkpoints/*.ckpt")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def pulled(trained: Path, folder: Path, *remote: str) -> None:
    """Push from one checkout and pull into another; nothing is trained there, and all is equal byte for byte."""
    subprocess.run(["git", "clone", "-q", str(trained), str(folder)], check=True)
    assert not weights(folder)
    for each in (trained, folder):
        dvc(each, "remote", "add", "--local", "--force", "--default", "team", remote[0])
        for name, value in zip(remote[1::2], remote[2::2], strict=True):
            dvc(each, "remote", "modify", "--local", "team", name, value)
    assert "pushed" in dvc(trained, "push")
    dvc(folder, "pull")
    assert weights(folder) == weights(trained) != {}
    assert [stage for stage in stages_run(dvc(folder, "repro")) if stage.startswith(("train", "evaluate"))] == []


def test_through_a_folder(trained, tmp_path):
    pulled(trained, tmp_path / "second", str(tmp_path / "remote"))


@pytest.fixture
def server():
    """The address of a server that keeps buckets in its memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as knocking:
                if knocking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not S3, reason="needs the packages of pip install -e '.[s3]'")
def test_through_a_server_that_speaks_s3(trained, server, tmp_path, monkeypatch):
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    boto3.client("s3", endpoint_url=server).create_bucket(Bucket="team")
    pulled(trained, tmp_path / "second", "s3://team/runs", "endpointurl", server)
