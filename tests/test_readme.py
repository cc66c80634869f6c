"""The commands of the README and of docs/PIPELINE.md are run in a copy of the project, at the smoke scale.

Every paper's smoke runs in process.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.pipeline.__main__ import COMMANDS, parser
from shared.tasks.kinds import papers
from tests.pipeline.scratch import change_yaml, commit, copy_files, copy_scenes, pipeline, smoke_of, stages_run

ROOT = Path(__file__).resolve().parents[1]
README, PIPELINE = ROOT / "README.md", ROOT / "docs" / "PIPELINE.md"
GUIDES = ["README.md", "docs/PIPELINE.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\((?!https?:)([^)#]+)\)")
NOT_COPIED = (
    ".git", ".venv", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "runs", "dvc.lock", "tmp", "cache",
    "config.local", "bible", "bible_alignments", "multi30k", "flickr8k", "newsgroups20", "mnist",
    "uniprot_sample",
)  # fmt: skip
SHOWN = {
    "bahdanau": "rnnsearch-50", "self_attentive": "attention", "show_attend_tell": "soft",
    "linear_transformer": "copy-linear",
}  # fmt: skip
"""Papers, one with features of pictures, and the one variant of each that DVC trains here."""
SMALLER = {
    "/quick/params.yaml:variants.rnnsearch-30.training.max_words=6":
        "/smoke/params.yaml:variants.rnnsearch-50.model.alignment_size=12",
    "use bench": "use smoke",
    "use quick": "use smoke",
    "estimate self_attentive": "estimate self_attentive --scale smoke",
    "teso tola mumo dala romu": "neno tesu fiso sana",
    "bahdanau.rnnencdec-50": "bahdanau.rnnsearch-50",
}  # fmt: skip
"""Parts of the README's commands, and what takes their place at smoke scale."""
MINUTES = 60


def commands(path: Path) -> list[str]:
    """Return every command of every ``sh`` block."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("name", GUIDES)
def test_every_command_is_one_that_the_project_has(name: str) -> None:
    known = (
        "python3.11 replicate.py", "python -m shared.pipeline ", "dvc ", "dask ", "torchrun ",
        "source .venv/bin/activate",
    )  # fmt: skip
    shown = commands(ROOT / name)
    assert shown
    for command in shown:
        assert command.startswith(known)
        assert subprocess.run(["bash", "-n", "-c", command]).returncode == 0


@pytest.mark.parametrize("name", GUIDES)
def test_commands_of_the_pipeline_have_the_arguments_that_it_takes(name: str) -> None:
    begin = "python -m shared.pipeline "
    own = [command.removeprefix(begin) for command in commands(ROOT / name) if command.startswith(begin)]
    assert own
    for command in own:
        options = parser().parse_args(shlex.split(command))  # ends the program if it does not take them
        kind = COMMANDS[options.command].name
        if kind is not None and kind.startswith("paper") and options.command != "new":
            assert options.name.split(".")[0] in papers()


@pytest.mark.parametrize("name", GUIDES)
def test_links_lead_somewhere(name: str) -> None:
    links = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


@pytest.mark.slow
def test_the_experiment_that_is_shown_is_one_that_check_allows(tmp_path: Path) -> None:
    (shown,) = (command for command in commands(PIPELINE) if command.startswith("dvc exp run"))
    path, _, setting = shlex.split(shown)[4].partition(":")
    keys, value = setting.split("=")[0].split("."), yaml.safe_load(setting.split("=")[1])

    def change(content: dict) -> None:
        for key in keys[:-1]:
            content = content[key]
        assert content[keys[-1]] != value
        content[keys[-1]] = value

    project = copy_files(tmp_path / "project")
    change_yaml(project / path, change)
    assert "no mistake" in pipeline(project, "check bahdanau --scale quick")


def test_the_model_that_is_shown_runs() -> None:
    namespace: dict[str, Any] = {}
    exec(README.read_text().partition("```python\n")[2].partition("```")[0], namespace)
    assert namespace["logits"].shape == (2, 7, 100)
    assert namespace["weights"].shape == (2, 7, 7)


def test_the_citation_names_the_version_of_the_project() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f'version = "{citation["version"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert citation["license"] == "Apache-2.0"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a committed copy of the project at smoke scale, with an environment that replicate.py accepts."""
    folder = tmp_path_factory.mktemp("readme") / "project"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    pipeline(folder, "use smoke")
    others = [paper for paper in papers() if paper not in SHOWN]
    change_yaml(folder / "params.yaml", lambda content: content.update(papers=list(SHOWN), workers=1))
    for paper, variant in SHOWN.items():
        change_yaml(folder / f"replications/{paper}/smoke/params.yaml", partial(keep, variant=variant))
    pairs = (f"neno {i} tesu\tfiso {i}\n" for i in range(300))
    (folder / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    with (folder / ".dvcignore").open("a") as ignored:
        ignored.writelines(f"/replications/{paper}/smoke/\n" for paper in others)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit(folder)
    make_environment(folder)
    return folder


def keep(content: dict, variant: str) -> None:
    """Leave one variant in the settings of a scale, and its task."""
    others = [name for name in content["variants"] if name != variant]
    content["variants"] = {variant: content["variants"][variant]}
    task = content["variants"][variant]["task"]
    content["tasks"] = {task: content["tasks"][task]}
    content["features"] = [name for name in content["features"] if name == task]
    content["left_out"]["reasons"].append({"because": "one variant shows that the commands work", "variants": others})


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
    for shown, smaller in SMALLER.items():
        command = command.replace(shown, smaller)
    # A file and no pipe, which a process that outlives the command would hold open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            ["bash", "-c", command], cwd=clone, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, timeout=75 * MINUTES,
        )  # fmt: skip
        output.seek(0)
        printed = output.read()
    assert done.returncode == 0, f"{command}\n{printed}"
    return printed


@pytest.mark.registry
@pytest.mark.slow
def test_the_commands_work_in_the_order_in_which_they_are_shown(clone: Path) -> None:
    for command in [*commands(README), *commands(PIPELINE)]:
        if command == "python3.11 replicate.py test":
            continue  # it would run this test suite inside of itself; tests/test_replicate.py has its parts
        printed = run(clone, command)
        if command == "python3.11 replicate.py":
            assert "train@rnnsearch-50" in stages_run(printed)
            assert (clone / "reports" / "smoke" / "bahdanau" / "index.html").is_file()
        elif command == "dvc repro":
            assert "train@rnnsearch-50" not in stages_run(printed)  # the first command has done it
            assert "train@copy-linear" in stages_run(printed)
        elif command == "dvc metrics show":
            assert "bleu" in printed
        elif command.startswith("dvc exp run"):
            assert "train@rnnsearch-50" in stages_run(printed)
    assert {path.name for path in (clone / "reports" / "smoke").iterdir()} == set(SHOWN)
    assert (clone / "replications" / "my_paper" / "model.py").is_file()


@pytest.mark.registry
@pytest.mark.slow
@pytest.mark.parametrize("paper", papers())
def test_the_whole_smoke_of_a_paper_runs_in_process(paper: str, tmp_path: Path) -> None:
    project = copy_files(tmp_path / "project")
    if paper == "show_attend_tell":
        copy_scenes(project)
    change_yaml(project / "params.yaml", lambda content: content.update(workers=1))
    printed = pipeline(project, *smoke_of(project, paper))
    variants = yaml.safe_load((project / f"replications/{paper}/smoke/params.yaml").read_text())["variants"]
    assert [name for name in variants if not (project / f"runs/smoke/{paper}/{name}/metrics.json").is_file()] == []
    assert f"{paper}: {len(variants)} variants at smoke scale, no mistake." in printed
    assert (project / "reports" / "smoke" / paper / "index.html").is_file()
