"""What one checkout has trained, another pulls: through a folder, and through a server that speaks S3."""

import importlib.util
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipeline.scratch import commit, copy_project, dvc, environment, stages_run

pytestmark = pytest.mark.slow
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
