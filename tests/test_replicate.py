"""The set-up script, run for real on a tiny project that pip can install without a network."""

import ast
import os
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import replicate
from shared.pipeline.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1.0"
optional-dependencies = {dev = []}
"""
# Builds, with the standard library alone, a wheel of tools that print how they were called and fail if told.
BACKEND = '''
import os, zipfile
TOOL = """import os, sys
print("ran", __name__ if __name__ != "__main__" else sys.argv[0].rsplit("/")[-1], *sys.argv[1:])
print("in", os.getcwd(), os.environ["VIRTUAL_ENV"], "seed", *map(os.environ.get, ("PYTHONHASHSEED", "REPLICATE_FROM")))
sys.exit(3 if os.environ.get("FAILING") in [sys.argv[0].rsplit("/")[-1], *sys.argv[1:2]] else 0)
"""
INFO = {
    "METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\nProvides-Extra: dev\\n",
    "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "RECORD": "",
}
def build_editable(folder, *_):
    if os.environ.get("FAILING") == "build":
        raise RuntimeError("the build was told to fail")
    with zipfile.ZipFile(os.path.join(folder, "tiny-1.0-py3-none-any.whl"), "w") as wheel:
        for tool in ("dvc", "ruff", "mypy", "pytest"):
            wheel.writestr(tool + ".py", TOOL)
        for module, text in (("__init__", ""), ("pipeline/__init__", ""), ("pipeline/__main__", TOOL)):
            wheel.writestr("shared/" + module + ".py", text)
        for name, text in INFO.items():
            wheel.writestr("tiny-1.0.dist-info/" + name, text)
    return "tiny-1.0-py3-none-any.whl"
build_wheel = build_editable
'''


class Project:
    """A copy of the script beside the tiny project, with an environment that must be made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".ci").mkdir(parents=True)
        (folder / ".dvc").mkdir()
        for name in replicate.LOCKED:
            (folder / name).write_text("")
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        shutil.copy(ROOT / "replicate.py", folder)

    def start(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script as a newcomer would: no virtual environment, no network, from another folder."""
        foreign = ("PIP_", "OMP_", "PYTHON")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment = inherited | {"PATH": "/nowhere", "PIP_NO_INDEX": "1", "https_proxy": "http://127.0.0.1:9"}
        environment.pop("REPLICATE_VENV", None)
        command = [sys.executable, str(self.folder / "replicate.py"), *arguments]
        return subprocess.run(command, env=environment | variables, cwd="/", capture_output=True, text=True)

    def ran(self, *arguments: str, **variables: str) -> list[str]:
        """Return which tools a successful start ran."""
        done = self.start(*arguments, **variables)
        assert done.returncode == 0, done.stderr
        return [line[4:] for line in done.stdout.splitlines() if line.startswith("ran ")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("a folder") / "tiny")
    first = project.start("setup")
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"creating {project.folder / '.venv'} with Python {replicate.VERSION}" in first.stdout
    steps = [line for line in first.stdout.splitlines() if "installing, step" in line]
    assert [step.split(":")[1].split()[1:5] for step in steps] == [["step", "1", "of", "2"], ["step", "2", "of", "2"]]
    assert f"ready: source {project.folder / '.venv' / 'bin' / 'activate'}" in first.stdout
    return project


def test_the_second_start_installs_nothing_and_runs_the_report(project: Project) -> None:
    done = project.start()
    assert "creating" not in done.stdout
    assert "installing" not in done.stdout
    assert "ran dvc.py repro report@bahdanau\n" in done.stdout
    assert done.stdout.index("ran __main__.py verdicts bahdanau\n") > done.stdout.index("ran dvc.py")
    assert f"in {project.folder} {project.folder / '.venv'} seed 0 None\n" in done.stdout


def test_a_status_that_is_not_zero_comes_back(project: Project) -> None:
    done = project.start(FAILING="dvc.py")
    assert (done.returncode, "verdicts" in done.stdout) == (3, False)
    assert project.start("metrics", "show", FAILING="dvc.py").returncode == 3
    assert project.ran("repro", "report@luong", "--dry") == ["dvc.py repro report@luong --dry"]


def test_commands_of_the_project_are_its_own_and_dvc_has_a_word_for_its_own_of_the_same_name(project: Project) -> None:
    assert project.ran("list", "luong") == ["__main__.py list luong"]
    assert project.ran("dvc", "list", ".") == ["dvc.py list ."]
    done = project.start("data", "new", FAILING="__main__.py")  # whose files lie where the user stands
    assert (done.returncode, "seed 0 /\n" in done.stdout) == (3, True)
    assert "export PYTHONHASHSEED=0" in (project.folder / ".venv" / "bin" / "activate").read_text()


def test_the_test_command_runs_the_quick_checks_first_and_stops_at_what_fails(project: Project) -> None:
    ran = project.ran("test", "-k", "beam and greedy")
    checks = ["ruff.py check .", "ruff.py format --check .", "mypy.py"]
    assert ran == [*checks, "pytest.py --numprocesses=2 --dist=worksteal -k beam and greedy"]
    for failing, reached in (("format", 2), ("pytest.py", 4)):
        done = project.start("test", FAILING=failing)
        assert (done.returncode, done.stdout.count("ran ")) == (3, reached)


def test_changed_pins_bring_the_environment_up_to_date_and_what_pip_could_not_install_is_tried_again(
    project: Project,
) -> None:
    (project.folder / ".ci" / "constraints.txt").write_text("# a new pin\n")
    failed = project.start("status", FAILING="build")
    assert failed.returncode == 2
    assert "error: pip could not install the packages (see above)" in failed.stderr
    assert "ran " not in failed.stdout
    again = project.start("status")
    assert "installing" in again.stdout
    assert "rebuilding" not in again.stdout
    assert "ran dvc.py status\n" in again.stdout


@pytest.mark.slow
def test_a_killed_installation_is_made_anew(project: Project, tmp_path: Path) -> None:
    venv = tmp_path / "killed"
    shutil.copytree(project.folder / ".venv", venv, symlinks=True)
    stamp = venv / "replicate.stamp"
    stamp.write_text(f"Python {replicate.VERSION} at {venv}\nof other pins\n")
    start = f"import sys; sys.path.insert(0, {str(project.folder)!r}); import os, replicate, subprocess; "
    killed = start + (
        "subprocess.call = lambda command, **_: os.kill(os.getpid(), 9) if 'pip' in command else 1; "
        "replicate.main(['setup'])"
    )
    environment = {**os.environ, "REPLICATE_VENV": str(venv), "https_proxy": "http://127.0.0.1:9"}
    assert subprocess.run([sys.executable, "-c", killed], env=environment, capture_output=True).returncode == -9
    assert stamp.read_text() == "unfinished\n"
    done = project.start("status", REPLICATE_VENV=str(venv))
    assert f"rebuilding {venv}" in done.stdout
    assert "ran dvc.py status\n" in done.stdout


@pytest.mark.parametrize("state", ["complete", "moved", "half made"])
def test_only_an_environment_that_cannot_be_mended_is_rebuilt(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """A killed installation is rebuilt for real, above; here the decision alone is looked at."""
    venv = tmp_path / "venv"
    if state == "half made":
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to("/nowhere/python3.11")
    else:
        venv.symlink_to(project.folder / ".venv")
    monkeypatch.setattr(replicate, "ROOT", project.folder)
    monkeypatch.setattr(replicate, "answers", lambda address: False)
    called: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda command, **_: called.append(command) or 0)
    stamp = (project.folder / ".venv" / "replicate.stamp").read_text()
    place = project.folder / ".venv" if state == "complete" else venv
    if state == "complete":
        (place / "replicate.stamp").write_text(stamp.replace("\n", "\nof other pins", 1))
    replicate.install(place)
    rebuilt = [command[2:] for command in called if "venv" in command]
    assert rebuilt == ([] if state == "complete" else [["venv", "--clear", str(place)]])
    assert "pip" in called[-1]
    assert (place / "replicate.stamp").read_text() == "".join(replicate.stamp_of(place)[1:])
    (place / "replicate.stamp").write_text(stamp)


def test_a_folder_that_is_no_environment_is_left_alone(project: Project, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    done = project.start(REPLICATE_VENV=str(tmp_path))
    assert done.returncode == 2
    assert f"error: {tmp_path} exists and is no virtual environment" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_outside_of_git_dvc_is_told_so_once(project: Project) -> None:
    local = project.folder / ".dvc" / "config.local"
    local.unlink(missing_ok=True)
    (project.folder / ".git").mkdir()
    project.start("status")
    (project.folder / ".git").rmdir()
    assert not local.exists()
    assert "this is no git checkout" in project.start("status").stdout
    assert "no_scm = true" in local.read_text()
    assert "this is no git checkout" not in project.start("status").stdout


@pytest.mark.parametrize("left", ["", '{"write": {"runs/a": '])
def test_a_list_of_locks_that_is_cut_off_is_removed_and_a_whole_one_stays(left: str, tmp_path: Path) -> None:
    locks = tmp_path / "tmp" / "rwlock"
    replicate.remove_broken_locks(tmp_path)
    locks.parent.mkdir()
    locks.write_text('{"write": {}, "read": {}}')
    replicate.remove_broken_locks(tmp_path)
    assert locks.exists()
    locks.write_text(left)
    replicate.remove_broken_locks(tmp_path)
    assert not locks.exists()


@pytest.mark.parametrize(("words", "said"), [
    (["tset"], "there is no command 'tset' (did you mean 'test'?); give setup alone, or a command such as"),
    (["chek", "luong"], "there is no command 'chek' (did you mean 'check'?)"),
    (["repr", "report@luong"], "there is no command 'repr' (did you mean 'repro'?)"),
    (["report@luong"], "there is no command 'report@luong'; give"),
    (["setup", "now"], "there is no command 'setup now'; give setup alone"),
])  # fmt: skip
def test_a_word_that_is_no_command_is_refused_before_anything_is_installed(
    tmp_path: Path, words: list[str], said: str
) -> None:
    project = Project(tmp_path / "tiny")
    done = project.start(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {said}")
    assert done.stdout == ""
    assert not (project.folder / ".venv").exists()


def test_all_commands_are_known() -> None:
    assert set(replicate.PIPELINE) == set(COMMANDS)
    program = (
        "from dvc.cli.parser import get_main_parser; "
        "print(*next(action.choices for action in get_main_parser()._actions if action.dest == 'cmd'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(replicate.DVC) == set(done.stdout.split())


# Another version of Python is played by this one; it differs in nothing that the script looks at.
AS_PYTHON_3_9 = "import runpy, sys; sys.version_info = (3, 9, 18); sys.argv = sys.argv[1:]; " + (
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def started_with_python_3_9(project: Project, path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AS_PYTHON_3_9, str(project.folder / "replicate.py"), *arguments]
    environment = {**os.environ, "PATH": path}
    environment.pop("REPLICATE_VENV", None)
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_a_wrong_python_gets_a_sentence(project: Project) -> None:
    done = started_with_python_3_9(project, "/nowhere", "status")
    assert done.returncode == 2
    assert done.stderr.startswith("error: Python 3.11 or 3.12 is needed; this is 3.9, and no python3.11")
    assert "apt-get install python3.11 python3.11-venv" in done.stderr
    assert done.stdout == ""


def test_a_wrong_python_hands_over_to_a_right_one_that_runs(project: Project, tmp_path: Path) -> None:
    right = tmp_path / f"python{replicate.VERSION}"
    right.symlink_to(sys.executable)
    for version in {"3.11", "3.12"} - {replicate.VERSION}:
        broken = tmp_path / f"python{version}"
        broken.write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
        broken.chmod(0o755)
    done = started_with_python_3_9(project, f"{tmp_path}:/usr/bin:/bin", "setup")
    assert done.returncode == 0, done.stderr
    assert f"this is Python 3.9; continuing with {right}" in done.stdout
    assert "ready: " in done.stdout


def test_old_pythons_can_parse_and_define_the_script() -> None:
    tree = ast.parse((ROOT / "replicate.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    annotations = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg)]
    annotations += [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(isinstance(a, ast.Name | ast.Constant) for a in annotations if a is not None)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= sys.stdlib_module_names


def test_too_small_a_disk_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**10, 8 * 10**9, 2 * 10**9))
    with pytest.raises(replicate.Missing, match=rf"about 3 GB are needed and {tmp_path} has 2.0 GB left; free"):
        replicate.check_machine(tmp_path / "deep" / "venv", replicate.CPU_SIZE)
    with pytest.raises(replicate.Missing, match="about 8 GB are needed"):
        replicate.check_machine(tmp_path, replicate.CUDA_SIZE)


def test_a_python_without_venv_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicate, "version_of", lambda *_: "")
    with pytest.raises(replicate.Missing, match=r"no venv module; Debian, Ubuntu: apt-get install python3.\d+-venv"):
        replicate.check_machine(tmp_path / "venv", 0)


def test_an_address_answers_or_not() -> None:
    assert replicate.answers((ROOT / "README.md").as_uri())
    assert not replicate.answers((ROOT / "absent-file").as_uri())
    with socket.socket() as silent:  # accepts the connection and never says a word
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert not replicate.answers(f"http://127.0.0.1:{silent.getsockname()[1]}/")
