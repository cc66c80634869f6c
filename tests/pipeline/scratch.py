"""A scratch copy of the project at smoke scale, small enough to be run again and again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from shared.pipeline.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("shared", "replications", "data", "dvc.yaml", "params.yaml", ".dvc", ".dvcignore", ".gitignore", "README.md")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "bible", "multi30k", "flickr8k", "emoji_scenes", "tmp", "cache", "*.local",
    "dvc.lock", "plan.json",
)  # fmt: skip
SMOKE = Path("replications/bahdanau/smoke/params.yaml")


def copy_files(folder: Path) -> Path:
    """Copy what the pipeline needs."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copy(source, folder / name)
    return folder


def copy_project(folder: Path) -> Path:
    """Copy what the pipeline needs, keep one paper with two variants of one task with one seed, and commit."""
    copy_files(folder)
    change_yaml(folder / "params.yaml", lambda content: content.update(papers=["bahdanau"], workers=1))
    ran(folder, "-m", "shared.pipeline", "use", "smoke")
    for pipeline in folder.glob("replications/*/smoke/dvc.yaml"):
        if pipeline != folder / SMOKE.with_name("dvc.yaml"):
            pipeline.unlink()
    change_yaml(folder / SMOKE, fewer_runs)
    ignored = folder / ".gitignore"
    ignored.write_text(ignored.read_text().replace("/runs/smoke/\n", ""))  # as git keeps the runs of other scales
    commit(folder)
    return folder


def fewer_runs(content: dict) -> None:
    """Leave two variants of one task, with one seed."""
    content["tasks"].pop("corpus")
    content["tasks"]["swaps"]["seeds"] = [1]
    content["variants"].pop("corpus-rnnsearch")
    content["left_out"]["reasons"][0]["variants"].append("corpus-rnnsearch")


def commit(folder: Path) -> None:
    """Commit all that git does not ignore, in a repository that is made where there is none."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "the project"]):
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


def ran(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run Python in ``folder`` and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
    return done.stdout


def dvc(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run DVC in ``folder`` and return what it printed."""
    return ran(folder, "-m", "dvc", *arguments, status=status)


def stages_run(printed: str) -> list[str]:
    """The stages that DVC says it ran, without the file that they stand in."""
    lines = (line for line in printed.splitlines() if line.startswith("Running stage '"))
    return [line.split("'")[1].rpartition(":")[2] for line in lines]


COMMANDS = """
import sys
from shared.pipeline.__main__ import main
for line in sys.argv[1:]:
    if status := main(line.split()):
        sys.exit(f"'{line}' ended with {status}")
"""


def pipeline(folder: Path, *commands: str) -> str:
    """Run commands of the pipeline in ``folder``, all in one process, and return what they printed."""
    return ran(folder, "-c", COMMANDS, *commands)


def refusal(capsys, *command: str) -> str:
    """What a command says that ends with status 2."""
    capsys.readouterr()
    assert main([*command]) == 2
    return capsys.readouterr().err


def smoke_of(folder: Path, paper: str) -> list[str]:
    """The commands that the smoke pipeline of a paper runs, in order."""
    content = yaml.safe_load((folder / "replications" / paper / "smoke" / "params.yaml").read_text())
    names = {
        "fetch": content["tasks"], "features": content["features"], "prepare": content["tasks"],
        "train": content["variants"], "evaluate": content["variants"],
    }  # fmt: skip
    inner = [f"{stage} {paper}.{name} --scale smoke" for stage in names for name in names[stage]]
    return [f"check {paper} --scale smoke", *inner, f"report {paper} --scale smoke"]


def copy_scenes(folder: Path) -> None:
    """Give a copy of the project the fetched scenes and their encoder, where the project has them."""
    for name in ("emoji_scenes", "efficientnet_lite0"):
        if (ROOT / "data" / name).is_dir():
            shutil.copytree(ROOT / "data" / name, folder / "data" / name, dirs_exist_ok=True)


def changes(folder: Path) -> list[str]:
    """What git sees changed or added since the last commit, folders of new files as one."""
    command = ["git", "status", "--short"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
