"""A scratch copy of the project at smoke scale, small enough to be run again and again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from shared.pipeline import stages

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("shared", "replications", "data", "dvc.yaml", "params.yaml", ".dvc", ".dvcignore", ".gitignore", "README.md")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "bible", "multi30k", "libreoffice_help", "flickr8k", "emoji_scenes", "tmp", "cache", "*.local"
)
VARIANTS = ("rnnsearch-50", "rnnencdec-50")


def copy_project(folder: Path) -> Path:
    """Copy what the pipeline needs, keep two variants of one task with one seed, and commit."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copy(source, folder / name)
    change_yaml(folder / "params.yaml", _fewer_runs)
    smoke = folder / "replications" / "bahdanau" / "smoke.yaml"
    change_yaml(smoke, lambda content: content["tasks"]["table1"].update(seeds=[1]))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit(folder)
    return folder


def toy_project(
    folder: Path, replication, monkeypatch, task: str, settings: dict, variants: dict, prepared: Path
) -> Path:
    """Enter a project with one paper, "toy", and one prepared task; returns the folder of its runs."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(stages, "load_replication", lambda paper: replication)
    (folder / "params.yaml").write_text("scale: smoke\nthreads: 1\npapers: [toy]\ntasks: {}\npictures: {}\nruns: {}\n")
    home = folder / "replications" / "toy"
    home.mkdir(parents=True)
    (home / "replication.py").write_text("")
    (home / "smoke.yaml").write_text(json.dumps({"tasks": {task: settings}, "variants": variants}))
    runs = folder / "runs" / "smoke" / "toy"
    (runs / "tasks").mkdir(parents=True)
    (runs / "tasks" / task).symlink_to(prepared)
    stages.write_json(runs / "fetched" / f"{task}.json", {"files": {"train.a": {"sha256": "0f"}}})
    return runs


def commit(folder: Path) -> None:
    """Commit all that git does not ignore."""
    for command in (["add", "-A"], ["commit", "-q", "-m", "the project"]):
        author = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
        subprocess.run(["git", *author, *command], cwd=folder, check=True)


def change_yaml(path: Path, change) -> None:
    """Read, change in place, write."""
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def environment() -> dict[str, str]:
    """For child processes: one thread, no inherited DVC settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "PYTEST_"))}
    return kept | {"OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def dvc(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run DVC in ``folder`` and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *arguments], cwd=folder, env=environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
    return done.stdout


def stages_run(printed: str) -> list[str]:
    """The stages that DVC says it ran."""
    lines = (line for line in printed.splitlines() if line.startswith("Running stage '"))
    return [line.split("'")[1] for line in lines]


def _fewer_runs(content: dict) -> None:
    content["scale"] = "smoke"
    content["threads"] = 1
    content["papers"] = ["bahdanau"]
    content["tasks"] = {"bahdanau.table1": content["tasks"]["bahdanau.table1"]}
    content["pictures"] = {}
    content["runs"] = {f"bahdanau.{name}": content["runs"][f"bahdanau.{name}"] for name in VARIANTS}
