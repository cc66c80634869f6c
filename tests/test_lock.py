"""The lock of dependencies: every package, exact, with hashes; torchvision, beside any build of torch."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from packaging.markers import Marker

import replicate
from shared import torchvision_compat

FOR_S3 = ".ci/s3.lock"
ROOT = Path(__file__).resolve().parents[1]


def test_the_lock_has_every_package_but_the_family_of_torch_with_hashes() -> None:
    lock, constraints = replicate.LOCKED
    pins, constraints = pins_of(lock), (ROOT / constraints).read_text(encoding="utf-8")
    assert len(pins) > 100
    family = set(re.findall(r"^#- (.+)$", constraints, re.MULTILINE))
    assert family & pins.keys() == set()
    optional = {name_of(pin) for pin in direct_pins("parity", "bench", "s3")}
    for pin in direct_pins():
        name = name_of(pin)
        assert name in family | optional or pins[name].partition(" ")[0] == normal(pin.partition(";")[0]), pin
    for pin in re.findall(r"^[^#\s].*$", constraints, re.MULTILINE):
        assert name_of(pin) in family
        assert pin.count("==") == 1


def test_these_tests_run_with_the_packages_of_the_lock() -> None:
    lock = (ROOT / replicate.LOCKED[0]).read_text(encoding="utf-8")
    other = {}
    for name, version, marker in re.findall(r"^([^#\s=]+)==(\S+)(?: ; (.*?))? \\$", lock, re.MULTILINE):
        if not marker or Marker(marker).evaluate():
            installed = importlib.metadata.version(name)
            other |= {} if installed == version else {name: installed}
    assert other == {}


def test_what_the_tests_install_for_s3_is_locked_beside_the_lock() -> None:
    beside, lock = pins_of(FOR_S3), pins_of(replicate.LOCKED[0])
    assert beside.keys() & lock.keys() == set()  # or one would install another version than the other
    direct = {name_of(pin.replace("[server]", "")): pin.replace("[server]", "") for pin in direct_pins()}
    assert {name: pin for name, pin in direct.items() if name in beside} == {
        name: beside[name].partition(" ")[0] for name in ("dvc-s3", "moto")
    }
    assert f"--require-hashes --no-deps --requirement {FOR_S3}" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_every_direct_dependency_is_pinned_exactly() -> None:
    assert all(pin.partition(";")[0].count("==") == 1 for pin in direct_pins())  # what follows says where
    assert {"torch", "torchvision"} <= {name_of(pin) for pin in direct_pins()}


def pins_of(file: str) -> dict[str, str]:
    """The pins of a lock by name, all of them with hashes."""
    lock = (ROOT / file).read_text(encoding="utf-8")
    pins = {name_of(pin): pin for pin in re.findall(r"^[^#\s].*?(?= \\$)", lock, re.MULTILINE)}
    blocks = re.split(r"^(?=[^#\s])", lock, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins) > 0
    for block in blocks:
        assert re.fullmatch(r"\S+==\S+[^\n]* \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", block), block
    return pins


def direct_pins(*extras: str) -> list[str]:
    """The pins of some extras; by default of all, and those of the project itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    pins = [pin for name in extras or optional for pin in optional[name]]
    return pins if extras else [*project["dependencies"], *pins]


def name_of(pin: str) -> str:
    return pin.split("==")[0].lower().replace("_", "-").replace(".", "-")


def normal(pin: str) -> str:
    return f"{name_of(pin)}=={pin.strip().split('==')[1]}"


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
