"""Which code a paper's results depend on, and fingerprints: what a checkpoint belongs to, no more and no less."""

import json
import os
import textwrap
from pathlib import Path

import pytest
import torch

from shared.pipeline import code, provenance
from shared.pipeline.code import STAGES, code_of
from shared.pipeline.config import ScaleFile, lenders
from shared.pipeline.show import beside_committed
from shared.tasks.kinds import KINDS, papers
from tests.pipeline.scratch import ROOT, commit
from tests.refused import assert_refused

MODEL = '''
"""A model."""

from shared.attention.seen import attend

# a comment
class Model:
    """What it is."""

    size: int = 3

    def run(self, x):
        """What it does."""
        return f"{attend(x)} of {self.size}"
'''


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project: a model, and modules of which each is imported in another way."""
    write(tmp_path, {
        "replications/toy/replication.py": "import replications.toy.model, shared.config",
        "replications/toy/model.py": MODEL,
        "replications/toy/report.py": "from shared.reports import figures",
        "shared/config.py": "import os",
        "shared/attention/__init__.py": "",
        "shared/attention/seen.py": """
            import numpy as np

            def attend(x):
                from shared.layers.inside import later
                return later(x)
            """,
        "shared/attention/unseen.py": "x = 1",
        "shared/layers/inside.py": """
            from typing import TYPE_CHECKING

            if TYPE_CHECKING:
                from shared.training.types import Name

            def later(x: "Name"): ...
            """,
        "shared/training/types.py": "from shared.attention.seen import attend\nName = str",
        "shared/training/run.py": "",
        "shared/data/fetch.py": "from shared.data import cards",
        "shared/data/cards.py": "",
        "shared/metrics/__init__.py": "from shared.metrics import score as s",
        "shared/metrics/score.py": "",
        "shared/metrics/other.py": "",
        "shared/reports/report.py": "",
        "shared/reports/figures.py": "",
        "shared/pipeline/report.py": "from shared.pipeline import plan",
        "shared/pipeline/plan.py": "",
        "shared/tasks/copies/corpus.py": "",
        "shared/tasks/copies/evaluation.py": "from shared import metrics",
        "shared/tasks/copies/module.py": "",
        "shared/tasks/copies/measures.py": "",
        "shared/tasks/copies/report.py": "",
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stage(name, *others):
    return code_of("copies", "toy", *others)[name]


MODELS = {
    "replications/toy/model.py", "replications/toy/replication.py", "shared/attention/__init__.py",
    "shared/attention/seen.py", "shared/layers/inside.py", "shared/training/run.py",
}  # fmt: skip


def test_every_stage_depends_on_the_code_that_it_runs(project):
    assert set(stage("fetch")) == {"shared/data/fetch.py", "shared/data/cards.py"}
    assert set(stage("prepare")) == {"shared/tasks/copies/corpus.py"}
    kind = {f"shared/tasks/copies/{name}.py" for name in ("corpus", "module")}
    assert set(stage("train")) == MODELS | kind
    judged = {"shared/metrics/__init__.py", "shared/metrics/score.py"}
    judged |= {f"shared/tasks/copies/{name}.py" for name in ("evaluation", "measures")}
    assert set(stage("evaluate")) == MODELS | kind | judged | {"shared/config.py"}
    judging = {f"shared/pipeline/{name}.py" for name in ("report", "plan")}
    shown = judging | {"shared/reports/figures.py", "shared/reports/report.py", "shared/tasks/copies/report.py"}
    assert set(stage("report")) == set(stage("evaluate")) | shown | {"replications/toy/report.py"}


READ_BY_PEOPLE = [
    ("# a comment\n", ""), ("A model.", "The model."), ("What it is.", "What it was."),
    ('        """What it does."""\n', ""), ("class Model:", "\n\nclass Model:  # noqa"),
    ("def run(self, x):", "def run(\n        self,\n        x\n    ):"), ("size: int = 3", "size: int = (3)"),
    ('f"{attend(x)} of {self.size}"', "f'{attend(x)} of {self.size}'"),
]  # fmt: skip
RUN = [
    ("= 3", "= 4"), ("= 3", '= "3"'), ("= 3", "= 3.0"), ("size: int = 3", "size: int = 3\n    x = None"),
    ("def run(self, x)", "def run(self, x=None)"), ("def run(self, x)", "def run(self, *, x)"),
    ("def run", "async def run"), ("    def run", "    @staticmethod\n    def run"), (" of ", " off "),
    ("attend(x)", "attend(-x)"), ("self.size}", "self.size!r}"), ("return f", "f"),
    ("class Model:", "class Model(dict):"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [(*pair, set()) for pair in READ_BY_PEOPLE] + [(*pair, {"replications/toy/model.py"}) for pair in RUN],
)
def test_what_a_file_does_changes_its_hash_and_no_other_and_what_only_people_read_none(old, new, changed, project):
    before, path = stage("train"), project / "replications" / "toy" / "model.py"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    after = stage("train")
    assert {path for path in after if after[path] != before[path]} == changed


OWN = {
    "replications/toy/replication.py": "from replications.toy import model, study, settings",
    "replications/toy/model.py": "from replications.toy.layers import layer",
    "replications/toy/settings.py": "",
    "replications/toy/layers.py": "layer = 1",
    "replications/toy/study.py": "",
    "replications/toy/alone.py": "",
}
COPIES = "shared/tasks/copies"
PIXELS = {f"{COPIES}/corpus.py": "from shared.tasks.copies import pixels", f"{COPIES}/pixels.py": ""}
SCORED = {"shared/tasks/copies/module.py": "import shared.metrics.score, shared.config"}


@pytest.mark.parametrize(("files", "name", "added"), [
    ({"shared/attention/unseen.py": "x = 2"}, "train", []),
    ({"shared/layers/inside.py": "import shared.attention.unseen"}, "train", ["shared/attention/unseen.py"]),
    (PIXELS, "prepare", ["shared/tasks/copies/pixels.py"]),
    (SCORED, "train", ["shared/metrics/__init__.py", "shared/metrics/score.py", "shared/config.py"]),
    (OWN, "train", ["replications/toy/layers.py", "replications/toy/settings.py"]),
    (OWN, "evaluate", [f"replications/toy/{name}.py" for name in ("layers", "settings", "study")]),
])  # fmt: skip
def test_a_stage_depends_on_what_it_comes_to_import_and_on_no_more(files, name, added, project):
    before = stage(name).keys()
    write(project, files)
    assert stage(name).keys() - before == {*added}


def test_a_hash_is_the_same_on_every_version_of_python(project):
    """Written down once: a hash that depends on the version would train everything again on another."""
    text = """
        def f(a, /, b=1, *c, d=None, **e) -> list[int]:
            return [*c, a if b else d, lambda: f"{e!r:>5} {{}}" "x", {**e}, b"y", 1e300, 2j, ..., None, True]

        class C(f, metaclass=type): pass

        match f:
            case {"k": [1, *_]} | None: pass
        """
    write(project, {"replications/toy/model.py": text})
    assert stage("train")["replications/toy/model.py"][:16] == "bec766bca675c7db"


@pytest.mark.parametrize("text", [b"def f(:", b"x = '\xff'", b"\0"])
def test_a_broken_file_is_named(text, project):
    (project / "shared" / "attention" / "seen.py").write_bytes(text)
    assert_refused(r"^shared/attention/seen\.py cannot be read as Python \(.+\)\.$", stage, "train")


def test_what_was_found_is_kept_and_found_anew_where_a_file_has_changed(project, monkeypatch):
    before = stage("train")
    assert code.CACHE.is_file()
    with monkeypatch.context() as patch:
        patch.setattr(code.ast, "parse", None)
        assert stage("train") == before
    write(project, {"shared/attention/seen.py": "def attend(x): ..."})
    assert stage("train").keys() == before.keys() - {"shared/layers/inside.py"}
    code.CACHE.write_text("{")
    assert "shared/layers/inside.py" not in stage("train")


def test_the_code_of_a_lender_is_the_borrowers(project):
    write(project, {
        "replications/other/replication.py": "import replications.other.model",
        "replications/other/model.py": "import shared.attention.unseen",
        "replications/other/report.py": "",
    })  # fmt: skip
    lent = {"replications/other/replication.py", "replications/other/model.py", "shared/attention/unseen.py"}
    assert stage("train", "other").keys() - stage("train").keys() == lent
    assert "replications/other/report.py" not in stage("report", "other")


def test_of_each_paper_here_all_that_matters_is_in_its_stages(monkeypatch):
    monkeypatch.chdir(ROOT)
    for paper in papers():
        settings = ScaleFile(paper, "quick")
        lent = lenders(*map(settings.run, settings.variants))
        stages = code_of(settings.kind, paper, *lent)
        assert list(stages) == list(STAGES)
        package = f"shared/tasks/{settings.kind}"
        assert {f"replications/{paper}/model.py", f"replications/{paper}/settings.py"} <= stages["train"].keys()
        assert {"shared/training/run.py", f"{package}/module.py"} <= stages["train"].keys()
        judging = {f"{package}/evaluation.py", f"{package}/measures.py", "shared/metrics/measures.py"}
        assert judging <= stages["evaluate"].keys() - stages["train"].keys()
        assert f"{package}/report.py" in stages["report"].keys() - stages["evaluate"].keys()
        foreign = {f"replications/{other}/" for other in papers() if other not in {paper, *lent}}
        foreign |= {f"shared/tasks/{other}/" for other in KINDS if other != settings.kind}
        assert not [path for path in stages["report"] if path.startswith(tuple(foreign))], paper


LOCK = Path("replications/bahdanau/quick/dvc.lock")


def test_a_fingerprint_is_of_parameters_code_and_data_and_of_no_times(tmp_path):
    def fingerprint(parameters=("a", 1), **code):
        return provenance.fingerprint(list(parameters), tmp_path, {"model.py": "1"} | code)

    array = tmp_path / "array.npy"
    array.write_bytes(b"12345")
    before = fingerprint()
    os.utime(array, (0, 0))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "run.pyc").write_bytes(b"x")
    assert fingerprint() == before
    array.write_bytes(b"12346")
    assert len({before, fingerprint(), fingerprint(("a", 2)), fingerprint(loop="2")}) == 4


def test_the_environment_is_described_without_git(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    found = provenance.environment(LOCK)
    assert found["git_commit"] is None
    assert found["versions"]["torch"]
    assert found["threads"] >= 1
    assert provenance.peak_memory_mib() > 10


def test_processors_of_one_name_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "CPUINFO", tmp_path / "cpuinfo")
    facts = {"vendor_id": "AuthenticAMD", "model name": "AMD EPYC", "cpu family": 25, "model": 17, "flags": "fma sse"}

    def described(**changed):
        lines = [f"{key}\t: {value}" for key, value in (facts | changed).items()]
        (tmp_path / "cpuinfo").write_text("\n".join(lines) + "\n\nprocessor\t: 1\n")
        return provenance.machine()["cpu"]

    assert described().startswith("AMD EPYC (AuthenticAMD, family 25, model 17; fma; PyTorch uses ")
    assert len({described(), described(model=1), described(flags="fma avx512f")}) == 3
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another")
    assert "PyTorch uses another" in described()
    (tmp_path / "cpuinfo").unlink()
    assert "PyTorch uses another" in provenance.machine()["cpu"]


def test_verdicts_and_numbers_are_compared_with_the_committed_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reports/quick/bahdanau/claims.json"
    path.parent.mkdir(parents=True)

    def written(verdict, effect, claim="B15-C1"):
        path.write_text(json.dumps([{"id": claim, "verdict": verdict, "lead": {"effect": effect}}]))
        return beside_committed("bahdanau", "quick")

    assert written("reproduced", 1.0) == "There are no committed verdicts to compare these with."
    commit(tmp_path)
    assert written("reproduced", 1.0) == "The verdicts and their numbers are those committed."
    assert "verdicts are those committed. Numbers differ" in written("reproduced", 1.1)
    assert "on B15-C1 are not those committed" in written("contradicted", 1.0)
    assert "on B15-C1, B15-C2 are not" in written("reproduced", 1.0, claim="B15-C2")


PLACES = {
    "shared/model.py": True, "replications/a/bench/params.yaml": True, "data/new.yaml": True, "pyproject.toml": True,
    "params.yaml": False, "tests/test_model.py": False, "runs/quick/curve.csv": False, "shared/ignored.pyc": False,
    "replications/a/README.md": False, "replications/a/quick/dvc.lock": False,
}  # fmt: skip
"""Files, and whether a change of one is a change of what has made a result."""


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("path", PLACES)
def test_only_files_that_affect_results_make_a_run_one_of_uncommitted_code(path, committed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if committed:
        file.write_text("before")
    commit(tmp_path)
    assert provenance.environment(LOCK)["git_dirty"] is False
    file.write_text("after")
    assert provenance.environment(LOCK)["git_dirty"] is PLACES[path]
