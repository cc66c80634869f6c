"""Which code a paper's results depend on: what is found, what changes its hash, and what does not."""

import ast
import json
import textwrap
from pathlib import Path

import pytest

from shared.errors import ReplicationError
from shared.pipeline.code import evaluation_code, imported, training_code
from shared.pipeline.stages import code_stage
from shared.tasks.protocol import load_replication

ROOT = Path(__file__).resolve().parents[2]
PAPERS = sorted(path.parent.name for path in (ROOT / "replications").glob("*/replication.py"))
TRANSLATION = {f"shared/{name}.py" for name in (
    "decoding/beam", "pipeline/translation_evaluation", "training/translation"
)}  # fmt: skip
CLASSIFICATION = {f"shared/{name}.py" for name in (
    "data/classified", "pipeline/classification_evaluation", "training/classification"
)}  # fmt: skip
CAPTIONING = {f"shared/{name}.py" for name in (
    "data/captioned", "decoding/beam", "pipeline/captioning_evaluation", "training/captioning", "vision/features"
)}  # fmt: skip
LANGUAGE = {f"shared/{name}.py" for name in (
    "data/language", "data/streams", "decoding/continuation", "pipeline/language_evaluation", "training/language"
)}  # fmt: skip
SEQUENCES = {f"shared/{name}.py" for name in (
    "data/sequence_corpora", "data/sequences", "pipeline/sequence_evaluation", "training/sequences"
)}  # fmt: skip
OF_KIND = {
    "translation": TRANSLATION, "classification": CLASSIFICATION, "captioning": CAPTIONING, "language": LANGUAGE,
    "sequences": SEQUENCES,
}  # fmt: skip
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
        "replications/toy/replication.py": "import replications.toy.model\nfrom shared import metrics, config",
        "replications/toy/model.py": MODEL,
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
        "shared/metrics/__init__.py": "from shared.metrics import score as s",
        "shared/metrics/score.py": "",
        "shared/metrics/other.py": "",
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_imports_are_followed_wherever_they_stand(project):
    assert list(imported("toy")) == [
        "replications/toy/model.py",
        "replications/toy/replication.py",
        "shared/attention/__init__.py",  # importing a module runs the packages that it is in
        "shared/attention/seen.py",
        "shared/config.py",
        "shared/layers/inside.py",
        "shared/metrics/__init__.py",
        "shared/metrics/score.py",
        "shared/training/types.py",
    ]


def test_a_file_belongs_to_training_or_to_evaluation_or_to_neither(project):
    assert set(training_code("toy")) == {
        "replications/toy/model.py", "replications/toy/replication.py", "shared/attention/__init__.py",
        "shared/attention/seen.py", "shared/layers/inside.py", "shared/training/types.py",
    }  # fmt: skip
    assert set(evaluation_code("toy")) == {"shared/metrics/__init__.py", "shared/metrics/score.py"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another, longer comment"),
        ("# a comment\n", ""),
        ("A model.", "The model."),
        ("What it is.", "What it was."),
        ("What it does.", "Returns text."),
        ('        """What it does."""\n', ""),
        ("class Model:", "\n\nclass Model:  # noqa"),
        ("def run(self, x):", "def run(\n        self,\n        x\n    ):"),
        ("size: int = 3", "size: int = (3)"),
        ('f"{attend(x)} of {self.size}"', "f'{attend(x)} of {self.size}'"),
    ],
)
def test_what_only_people_read_changes_nothing(old, new, project):
    before = training_code("toy")
    change(project / "replications" / "toy" / "model.py", old, new)
    assert training_code("toy") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 3", "= 4"),
        ("= 3", '= "3"'),
        ("= 3", "= 3.0"),
        ("size: int = 3", "size: int = 3\n    x = None"),
        ("def run(self, x)", "def run(self, x=None)"),
        ("def run(self, x)", "def run(self, *, x)"),
        ("def run", "async def run"),
        ("    def run", "    @staticmethod\n    def run"),
        (" of ", " off "),
        ("attend(x)", "attend(-x)"),
        ("self.size}", "self.size!r}"),
        ("return f", "f"),
        ("class Model:", "class Model(dict):"),
    ],
)
def test_what_a_file_does_changes_its_hash_and_no_other(old, new, project):
    before = training_code("toy")
    change(project / "replications" / "toy" / "model.py", old, new)
    after = training_code("toy")
    assert {path for path in after if after[path] != before[path]} == {"replications/toy/model.py"}


def change(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_new_import_adds_a_file_and_an_unused_one_counts_for_nothing(project):
    before = training_code("toy")
    write(project, {"shared/attention/unseen.py": "x = 2"})
    assert training_code("toy") == before
    path = project / "shared" / "layers" / "inside.py"
    path.write_text(path.read_text() + "\nimport shared.attention.unseen\n")
    assert training_code("toy").keys() - before.keys() == {"shared/attention/unseen.py"}


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
    assert training_code("toy")["replications/toy/model.py"][:16] == "bec766bca675c7db"


@pytest.mark.parametrize("text", [b"def f(:", b"x = '\xff'", b"\0"])
def test_a_broken_file_is_named(text, project):
    (project / "shared" / "attention" / "seen.py").write_bytes(text)
    with pytest.raises(ReplicationError, match=r"^shared/attention/seen\.py cannot be read as Python \(.+\)\.$"):
        training_code("toy")


def test_a_paper_that_is_not_there_is_named(project):
    with pytest.raises(ReplicationError, match=r"replications/nobody/replication\.py cannot be read"):
        training_code("nobody")


def test_a_papers_other_files_train_if_its_model_uses_them(project):
    write(project, {
        "replications/toy/replication.py": "from replications.toy import model, study",
        "replications/toy/model.py": "import shared.metrics.score\nfrom replications.toy.layers import layer",
        "replications/toy/layers.py": "layer = 1",
        "replications/toy/study.py": "",
        "replications/toy/alone.py": "",
    })  # fmt: skip
    own = {"replications/toy/replication.py", "replications/toy/model.py", "replications/toy/layers.py"}
    assert set(training_code("toy")) == own
    assert set(evaluation_code("toy")) == {
        "replications/toy/study.py", "shared/metrics/__init__.py", "shared/metrics/score.py",
    }  # fmt: skip


def test_what_validation_decodes_and_scores_with_belongs_to_training(project):
    before = training_code("toy")
    path = project / "shared" / "training" / "types.py"
    path.write_text(path.read_text() + "\nimport shared.metrics.score, shared.config\n")
    assert training_code("toy").keys() - before.keys() == {"shared/metrics/__init__.py", "shared/metrics/score.py"}
    assert evaluation_code("toy") == {}


def test_the_code_of_two_papers_is_that_of_each(project):
    write(project, {
        "replications/other/replication.py": "import replications.other.model",
        "replications/other/model.py": "import shared.attention.unseen",
    })  # fmt: skip
    both = training_code("toy") | training_code("other")
    assert training_code("toy", "other") == training_code("other", "toy") == both
    assert evaluation_code("toy", "other") == evaluation_code("toy")
    assert imported("toy", "other") == imported("toy") | imported("other")


def test_the_stage_writes_both_lists_again_and_again_the_same(project):
    write(project, {"replications/toy/smoke.yaml": "{tasks: {}, variants: {}}"})
    contents = []
    for _ in range(2):
        code_stage("toy", "smoke")
        folder = project / "runs" / "smoke" / "toy" / "code"
        contents.append([(folder / f"{name}.json").read_text() for name in ("training", "evaluation")])
    assert contents[0] == contents[1]
    assert [json.loads(text) for text in contents[0]] == [training_code("toy"), evaluation_code("toy")]


@pytest.mark.parametrize("paper", PAPERS)
def test_of_each_paper_here_all_that_matters_is_found(paper, monkeypatch):
    monkeypatch.chdir(ROOT)
    training, evaluation = training_code(paper), evaluation_code(paper)
    assert not training.keys() & evaluation.keys()
    assert {f"replications/{paper}/model.py", f"replications/{paper}/replication.py"} <= training.keys()
    assert {"shared/training/run.py", "shared/training/loss.py", "shared/data/batching.py"} <= training.keys()
    own = OF_KIND[load_replication(paper).kind]
    foreign = {path for paths in OF_KIND.values() for path in paths} - own
    assert own <= training.keys() | evaluation.keys()
    assert not foreign & (training.keys() | evaluation.keys())
    others = {f"replications/{other}/" for other in PAPERS if other != paper}
    assert not any(path.startswith(tuple(others)) for path in [*training, *evaluation])


def test_another_papers_attention_is_not_a_papers_code(monkeypatch):
    monkeypatch.chdir(ROOT)
    bahdanau, luong = training_code("bahdanau"), training_code("luong")
    assert "shared/attention/additive.py" in bahdanau
    own = {f"shared/{name}.py" for name in (
        "attention/alignments", "attention/scores", "layers/deferred", "layers/stacked_lstm"
    )}  # fmt: skip
    assert own <= luong.keys()
    assert not own & bahdanau.keys()
    assert "shared/layers/attentive_recurrence.py" in bahdanau.keys() - luong.keys()


def test_all_imports_are_absolute():
    """The search for imports reads nothing else."""
    for folder in ("shared", "replications"):
        for path in (ROOT / folder).rglob("*.py"):
            relative = [node for node in ast.walk(ast.parse(path.read_bytes())) if getattr(node, "level", 0)]
            assert not relative, path
