"""The lock of dependencies: every package, exact, with hashes, and what these tests run with."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.markers import Marker

import replicate

ROOT = Path(__file__).resolve().parents[1]


def test_the_lock_has_every_package_but_the_family_of_torch_with_hashes() -> None:
    lock, constraints = ((ROOT / name).read_text(encoding="utf-8") for name in replicate.LOCKED)
    pins = {name_of(pin): pin for pin in re.findall(r"^[^#\s].*?(?= \\$)", lock, re.MULTILINE)}
    blocks = re.split(r"^(?=[^#\s])", lock, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins) > 100
    for block in blocks:
        assert re.fullmatch(r"\S+==\S+[^\n]* \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", block), block
    family = set(re.findall(r"^#- (.+)$", constraints, re.MULTILINE))
    assert family & pins.keys() == set()
    optional = {"transformers", "ctranslate2", "dvc-s3", "moto[server]"}
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


def test_every_direct_dependency_is_pinned_exactly() -> None:
    assert all(pin.partition(";")[0].count("==") == 1 for pin in direct_pins())  # what follows says where
    assert {"torch", "torchvision"} <= {name_of(pin) for pin in direct_pins()}


def direct_pins() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(pin for extra in extras for pin in extra)]


def name_of(pin: str) -> str:
    return pin.split("==")[0].lower().replace("_", "-").replace(".", "-")


def normal(pin: str) -> str:
    return f"{name_of(pin)}=={pin.strip().split('==')[1]}"
