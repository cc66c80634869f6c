"""The command ``licences``: whose work the project rests on, as a page for people and as a list for programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from shared.data.cards import load_card
from shared.errors import ReplicationError
from shared.pipeline.files import render, write_text

PAGE, BILL = Path("docs/LICENCES.md"), Path("docs/sbom.json")
LOCK = Path(".ci/requirements.lock")
PIN = re.compile(r"(?m)^([^#\s=]+)==([^\s;]+)(?: ; ([^\\\n]*))?")
HASH = re.compile(r'\{\s+"alg": "SHA-256",\s+"content": "([0-9a-f]+)"\s+\}')  # to stand in one line
FAMILY = ("torch", "torchvision")
"""What the lock leaves out and every environment has."""
UNSTATED = {
    "pycocoevalcap": "not stated; it is derived from github.com/tylin/coco-caption",
    "systran-align": "not stated; it is built on fast_align, which is under Apache-2.0",
    "resvg-py": "MIT",
}
"""Packages whose metadata do not say, and what their files do."""


def write_licences() -> None:
    """Write ``docs/LICENCES.md`` by pip-licenses and ``docs/sbom.json`` by cyclonedx-bom, of what the lock has.

    Raises:
        ReplicationError: the two programs are not installed, a package of the lock is not installed here, or says
            nothing of its licence.
    """
    pins = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    locked = LOCK.read_text(encoding="utf-8") + "".join(f"{pin}\n" for pin in pins if pin.partition("==")[0] in FAMILY)
    here = [(name, version) for name, version, marker in PIN.findall(locked) if not marker or Marker(marker).evaluate()]
    said = licences_of([name for name, _ in here])
    packages = [(name, version, said[name]) for name, version in sorted(here)]
    cards = [load_card(path.stem) for path in sorted(Path("data").glob("*.yaml"))]
    write_text(PAGE, render("docs/licences.md.j2", packages=packages, cards=cards))
    bill = json.loads(
        _ran("cyclonedx_py", "requirements", "-", "--spec-version=1.6", "--output-reproducible", given=locked)
    )
    parts = [part for part in bill["components"] if part["name"] in said]
    for part in parts:
        del part["description"]  # the line of the lock
        part["licenses"] = [{"license": {"name": said[part["name"]]}}]
    text = json.dumps(bill | {"components": parts}, indent=1) + "\n"
    write_text(BILL, HASH.sub(r'{"alg": "SHA-256", "content": "\1"}', text))
    print(f"{PAGE} and {BILL} are written.")


def licences_of(names: list[str]) -> dict[str, str]:
    """What each package says of its licence.

    Raises:
        ReplicationError: a package is not installed here, or says nothing.
    """
    table = _ran("piplicenses", "--format=json", "--from=mixed", "--with-system", "--packages", *names)
    found = {
        canonicalize_name(each["Name"]): " ".join(each["License"].split()) for each in json.loads(table)
    } | UNSTATED
    for name in names:
        if found.get(name, "UNKNOWN") == "UNKNOWN":
            raise ReplicationError(
                f"the package {name} is not installed here, or says nothing of its licence; look it up."
            )
    return {name: found[name] for name in names}


def _ran(module: str, *arguments: str, given: str = "") -> str:
    """What a program prints."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], input=given, capture_output=True, text=True)
    if done.returncode:
        raise ReplicationError(
            f"{module} failed ({(done.stderr.splitlines() or ['?'])[-1]}); install it with 'pip install -e "
            "'.[licences]'' first."
        )
    return done.stdout
