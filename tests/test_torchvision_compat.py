"""torchvision imports beside any build of torch, in whatever order it is imported."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from shared import torchvision_compat

ROOT = Path(__file__).resolve().parents[1]
RESNET = """
import torch
model = torchvision.models.resnet18(weights=None).eval()
print(tuple(model(torch.zeros(1, 3, 64, 64)).shape))
"""
# Beside a torch that it fits, the compiled operator works; beside another, it must say so.
NMS = """
import torch
from shared.torchvision_compat import _declared
boxes, scores = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9]]), torch.tensor([0.5, 0.9])
try:
    print("kept", torchvision.ops.nms(boxes, scores, 0.5).tolist(), "declared", len(_declared))
except RuntimeError as error:
    print("refused", str(error)[:33], "declared", len(_declared))
"""


def output_of(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "imports", ["import shared, lightning.pytorch, torchvision", "import torch, replications.bahdanau, torchvision"]
)
def test_torchvision_imports_in_any_order_and_its_models_run(imports: str) -> None:
    assert output_of(imports + RESNET) == "(1, 1000)"


def test_after_torchvision_one_finder_is_gone_models_run_and_an_operator_works_or_says_why_not() -> None:
    """Installing twice leaves one finder, which goes once it was used; lightning comes last here."""
    finders = "print([type(f).__name__ for f in sys.meta_path].count('_BeforeTorchvision'))\n"
    first = "import sys, shared\nfrom shared.torchvision_compat import install\ninstall()\n"
    then = "import torchvision\ninstall()\n"
    said = output_of(first + finders + then + finders + "import lightning.pytorch" + RESNET + NMS).splitlines()
    assert said[:3] == ["1", "0", "(1, 1000)"]
    assert said[3:] in (["kept [1] declared 0"], ["refused Couldn't load custom C++ ops. Thi declared 1"])


def test_programs_without_torchvision_do_not_even_import_torch() -> None:
    assert output_of("import shared, sys; print('torch' in sys.modules)") == "False"


def test_both_schemas_are_declared_and_kept_where_no_library_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared: list[str] = []
    fragment = SimpleNamespace(define=declared.append)
    monkeypatch.setattr(torch.library, "Library", lambda *_: fragment)
    monkeypatch.setattr(torchvision_compat, "_declared", [])
    (tmp_path / "_C.so").write_bytes(b"")  # an empty file is no library
    assert torchvision_compat.declare_missing_operators(tmp_path) is True
    assert [schema.partition("(")[0] for schema in declared] == ["nms", "qnms"]
    assert torchvision_compat._declared == [fragment]
