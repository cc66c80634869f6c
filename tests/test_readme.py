"""The README's commands are run, in a copy of the project, at the smoke scale."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\((?!https?:)([^)#]+)\)")
FETCHED_OR_MADE = (
    ".git",
    ".venv",
    "__pycache__",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
    "runs",
    "dvc.lock",  # of another scale; DVC writes the whole of it at every stage, which takes seconds
    "tmp",
    "cache",
    "config.local",
)
MINUTES = 60


def commands(path: Path) -> list[str]:
    """Return every command of every ``sh`` block."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_command_is_one_that_the_project_has(name: str) -> None:
    known = ("python3.11 replicate.py", "python -m shared.pipeline ", "dvc ", "source .venv/bin/activate")
    found = commands(ROOT / name)
    assert found
    for command in found:
        assert command.startswith(known)
        assert subprocess.run(["bash", "-n", "-c", command]).returncode == 0


def test_the_two_commands_come_first() -> None:
    assert commands(README)[:2] == ["python3.11 replicate.py", "python3.11 replicate.py test"]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    links = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_verdicts_have_their_place() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count("<!-- verdicts:begin -->\n") == text.count("<!-- verdicts:end -->\n") == 1
    assert text.index("<!-- verdicts:begin -->") < text.index("<!-- verdicts:end -->")


def test_the_citation_names_the_version_of_the_project() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f'version = "{citation["version"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert citation["license"] == "Apache-2.0"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a committed copy of the project at smoke scale, with an environment that replicate.py accepts."""
    folder = tmp_path_factory.mktemp("readme") / "project"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*FETCHED_OR_MADE))
    params = folder / "params.yaml"
    params.write_text(re.sub(r"^scale: \w+$", "scale: smoke", params.read_text(), flags=re.MULTILINE))
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "the project"]):
        author = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    make_environment(folder)
    return folder


def make_environment(folder: Path) -> None:
    """Make ``folder/.venv`` out of the packages that run this test: nothing is installed twice."""
    venv = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = sysconfig.get_path("purelib")
    (venv / "lib" / version / "site-packages" / "outer.pth").write_text(packages + "\n")
    dvc = venv / "bin" / "dvc"
    dvc.write_text(f"#!{venv}/bin/python\nimport runpy\nrunpy.run_module('dvc', run_name='__main__')\n")
    dvc.chmod(0o755)
    if not (venv / "bin" / "python3.11").exists():
        (venv / "bin" / "python3.11").symlink_to("python")  # the README's Python, whichever this is
    program = (
        "from pathlib import Path; import replicate; "
        "stamp, owner, pins = replicate.stamp_of(Path('.venv').absolute()); stamp.write_text(owner + pins)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def run(clone: Path, command: str) -> str:
    """Run one command of the README in the copy and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "PYTEST_"))}
    environment.pop("REPLICATE_VENV", None)
    environment["PATH"] = f"{clone / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    if command == "python3.11 replicate.py test":
        command += " --collect-only"  # to run this test suite inside of itself would never end
    command = command.replace("/quick.yaml:", "/smoke.yaml:")
    # A file and no pipe, which the workers of DVC's queue would hold open for as long as they live.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=75 * MINUTES,
        )
        output.seek(0)
        printed = output.read()
    assert done.returncode == 0, f"{command}\n{printed}"
    return printed


@pytest.mark.slow
def test_the_commands_work_in_the_order_in_which_they_are_shown(clone: Path) -> None:
    for command in commands(README):
        printed = run(clone, command)
        if command == "python3.11 replicate.py":
            assert "Running stage 'report@bahdanau'" in printed
            assert (clone / "reports" / "smoke" / "bahdanau" / "index.html").is_file()
            assert "up to date" in run(clone, command)
        elif command.startswith("dvc repro"):
            assert "Running stage 'train@bahdanau" not in printed  # the first command has done it
        elif command == "dvc metrics show":
            assert "bleu" in printed
        elif command.startswith("dvc queue start"):
            wait_for_queue(clone)
    assert (clone / "replications" / "my_paper" / "model.py").is_file()


def wait_for_queue(clone: Path) -> None:
    """Wait until both queued experiments are over, and see that they went well."""
    for _ in range(5 * MINUTES):
        status = run(clone, "dvc queue status")
        if "Queued" not in status and "Running" not in status:
            break
        time.sleep(1)
    run(clone, "dvc queue stop")
    assert status.count("Success") == 2, status
