"""The lock of dependencies: every package, exact, with hashes, and what these tests run with."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.markers import Marker

import replicate

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
