"""A new paper of each kind, and a new kind, in a copy of the project: they run, and nothing else is touched."""

import re
import shutil
import subprocess

import pytest
import yaml

from shared.pipeline.config import load_params
from shared.pipeline.new import new_replication
from shared.tasks.kinds import KINDS
from tests.pipeline.scratch import ROOT, change_yaml, changes, commit, copy_files, copy_scenes, dvc, pipeline, smoke_of
from tests.pipeline.test_check import as_dvc_writes
from tests.refused import assert_refused

COPIED_KIND = "classification"
MEASURES = '''"""Measures of graded texts."""

from shared.metrics.quantities import Measure, mean, percentage
from shared.metrics.registry import register

register({"graded_right": Measure("Graded right", "%", 2, mean("correct"), percentage, 100.0, better="higher")})
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A committed copy of the project."""
    folder = copy_files(tmp_path_factory.mktemp("new") / "project")
    change_yaml(folder / "params.yaml", lambda content: content.update(workers=1))
    commit(folder)
    return folder


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A project without papers."""
    (tmp_path / "replications").mkdir()
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_paper_touches_its_folder_and_one_line(kind, project):
    printed = pipeline(project, f"new my_{kind} --kind {kind}", f"check my_{kind} --scale smoke")
    assert f"python -m shared.pipeline use smoke\ndvc repro report@my_{kind}\n" in printed
    assert "2 variants at smoke scale, no mistake" in printed
    assert changes(project) == [" M params.yaml", f"?? replications/my_{kind}/"]
    difference = subprocess.run(["git", "diff", "-U0"], cwd=project, capture_output=True, text=True).stdout
    assert re.findall(r"(?m)^[-+](?!\+\+ |-- ).*", difference) == [f"+- my_{kind}"]
    commit(project)


@pytest.mark.parametrize("kind", KINDS)
def test_scales_differ_and_all_files_are_short_and_as_dvc_writes_them(kind, empty):
    (empty / "tests/replications").mkdir(parents=True)
    new_replication("fresh", kind)
    folder = empty / "replications" / "fresh"
    assert {path.parent.name for path in folder.glob("*/params.yaml")} == {"smoke", "quick"}
    new_replication("larger", kind, ["bench", "paper_scale"])
    larger = {path.parent.name for path in (empty / "replications/larger").glob("*/params.yaml")}
    assert larger == {"smoke", "bench", "paper_scale"}
    sizes = {scale: yaml.safe_load((folder / scale / "params.yaml").read_text()) for scale in ("smoke", "quick")}
    (smoke,), (quick,) = (sizes[scale]["tasks"].values() for scale in ("smoke", "quick"))
    assert smoke["model"] != quick["model"]
    assert smoke["training"]["updates"] < quick["training"]["updates"]
    test = empty / "tests/replications/test_fresh_model.py"
    written = [test, *(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())]
    assert sum(len(path.read_text().splitlines()) for path in written) <= 400
    for path in (empty / "params.yaml", folder / "variants.yaml", *folder.glob("*/params.yaml")):
        assert as_dvc_writes(text := path.read_text()) == text, path
    assert load_params().papers[-2:] == ["fresh", "larger"]


@pytest.mark.parametrize(("name", "kind", "params", "message"), [
    ("My-Paper", "translation", {}, "cannot name a folder of code"),
    ("class", "translation", {}, "cannot name a folder of code"),
    ("fresh", "translatoin", {}, "did you mean 'translation'"),
    ("taken", "language", {}, "taken or its line in params.yaml exists"),
    ("luong", "language", {}, "luong or its line in params.yaml exists"),
    ("tested", "language", {}, "^tests/replications/test_tested_model.py, .* exists; remove it, or choose"),
    ("fresh", "language", {"papers": []}, "must be a list with a line"),
])  # fmt: skip
def test_what_cannot_be_made_is_refused_and_nothing_is_written(name, kind, params, message, empty):
    change_yaml(empty / "params.yaml", lambda content: content.update(params))
    (empty / "replications" / "taken").mkdir()
    (empty / "replications" / "taken" / "model.py").touch()
    (empty / "tests/replications").mkdir(parents=True)
    (empty / "tests/replications/test_tested_model.py").write_text("of the user's own")
    before = files(empty)
    assert_refused(message, new_replication, name, kind)
    assert files(empty) == before


def test_a_folder_that_is_no_project_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(r"params\.yaml does not exist; check the path, or run from", new_replication, "fresh")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_half_way_leaves_nothing(empty, monkeypatch):
    def fail(*_):
        raise OSError("no space left on device")

    before = files(empty)
    monkeypatch.setattr("shared.pipeline.new.link_pipeline", fail)
    with pytest.raises(OSError, match="no space"):
        new_replication("fresh")
    assert files(empty) == before
    assert list((empty / "replications").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.registry) if kind == "captioning" else kind for kind in KINDS]
)
def test_a_new_paper_runs_at_smoke_scale(kind, project):
    if kind == "captioning":
        copy_scenes(project)
    paper = f"run_{kind}"
    pipeline(project, f"new {paper} --kind {kind}")
    if kind == "sequences":  # through DVC, by the commands that `new` prints
        pipeline(project, "use smoke")
        dvc(project, "repro", f"report@{paper}")
    else:
        pipeline(project, *smoke_of(project, paper))
    report = (project / "reports" / "smoke" / paper / "README.md").read_text()
    assert f"Run{kind.title()}-C1" in report
    assert re.search("is lower for .*`scaled` than for .*`unscaled`", report)


def grade(text):
    """What belongs to the copied kind, as part of the new one."""
    return text.replace(f"shared.tasks.{COPIED_KIND}", "shared.tasks.grading").replace(f'"{COPIED_KIND}"', '"grading"')


@pytest.mark.slow
def test_a_new_kind_touches_its_folder_and_one_line(tmp_path):
    project = copy_files(tmp_path / "project")
    change_yaml(project / "params.yaml", lambda content: content.update(workers=1))
    pipeline(project, f"new graded --kind {COPIED_KIND}")
    commit(project)
    package, kinds = project / "shared/tasks/grading", project / "shared/tasks/kinds.py"
    shutil.copytree(project / "shared/tasks" / COPIED_KIND, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "measures.py").write_text(MEASURES)
    for path in (*package.glob("*.py"), *(project / "replications/graded").glob("*.py")):
        path.write_text(grade(path.read_text()))
    assert '"sets")' in kinds.read_text()
    kinds.write_text(kinds.read_text().replace('"sets")', '"sets", "grading")'))
    paper = project / "replications/graded"
    change_yaml(paper / "variants.yaml", lambda content: content.update(kind="grading"))
    comparison = (paper / "claims.yaml").read_text().replace("kind: less", "kind: greater")
    (paper / "claims.yaml").write_text(comparison.replace("cross_entropy", "graded_right"))
    elsewhere = [line for line in changes(project) if "replications/" not in line]
    assert elsewhere == [" M shared/tasks/kinds.py", "?? shared/tasks/grading/"]
    pipeline(project, *smoke_of(project, "graded"))
    assert "Graded right" in (project / "reports/smoke/graded/README.md").read_text()
