"""The command ``licences``: whose work the project rests on, as a page for people and as a list for programs."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import Marker

from shared.data.cards import load_card
from shared.errors import ReplicationError

PAGE, BILL = Path("docs/LICENCES.md"), Path("docs/sbom.json")
LOCK = Path(".ci/requirements.lock")
PIN = re.compile(r"^([^#\s=]+)==(\S+)(?: ; (.*?))? \\$", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]+)")
HASH_OF_BILL = re.compile(r'\{\s+"alg": "SHA-256",\s+"content": "([0-9a-f]+)"\s+\}')  # to stand in one line
OF_DATA = (
    "The data are not part of the project; each machine fetches its own. Figures of reports show a few examples of "
    "them:\nsentences, digits, OpenMoji pictures, photographs of Flickr8k."
)
INDEX = "https://pypi.org/simple"
FAMILY = ("torch", "torchvision")
"""What the lock leaves out and every environment has."""
UNSTATED = {
    "pycocoevalcap": "not stated; it is derived from github.com/tylin/coco-caption",
    "systran-align": "not stated; it is built on fast_align, which is under Apache-2.0",
    "resvg-py": "MIT",
}
"""Packages whose metadata do not say, and what their files do."""
CLASSIFIER = "License :: OSI Approved :: "
LONGEST = 60  # letters of a licence's name; what is longer is its text
INTRODUCTION = """# Licences

This page and `sbom.json` beside it (a bill of materials, CycloneDX 1.6) are written by
`python -m shared.pipeline licences` from the packages of this environment and from the cards in `data/`.
The project itself is under the [Apache License 2.0](../LICENSE). It contains no code of others.
"""


class Package(NamedTuple):
    """A package that the project installs.

    Attributes:
        name, version: as pinned.
        licence: as the package says it.
        hashes: sha256 of each of its files that the lock accepts; none for torch's family.
    """

    name: str
    version: str
    licence: str
    hashes: tuple[str, ...] = ()


def write_licences() -> None:
    """Write ``docs/LICENCES.md`` and ``docs/sbom.json``.

    Raises:
        ReplicationError: a package of the lock is not installed here, or says nothing of its licence.
    """
    packages = sorted(_packages(), key=lambda package: package.name.lower())
    PAGE.write_text(_page(packages), encoding="utf-8")
    bill = json.dumps(_bill(packages), indent=1) + "\n"
    BILL.write_text(HASH_OF_BILL.sub(r'{"alg": "SHA-256", "content": "\1"}', bill), encoding="utf-8")
    print(f"{PAGE} and {BILL} are written.")


def _packages() -> Iterator[Package]:
    """Those of the lock that this platform needs, and torch's family."""
    lock = LOCK.read_text(encoding="utf-8")
    for pin, after in pairwise([*PIN.finditer(lock), None]):
        assert pin is not None
        name, version, marker = pin.groups()
        if not marker or Marker(marker).evaluate():
            hashes = HASH.findall(lock, pin.end(), after.start() if after else len(lock))
            yield Package(name, version, _licence(name), tuple(hashes))
    pins = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    for name, _, version in (pin.partition("==") for pin in pins):
        if name in FAMILY:
            yield Package(name, version, _licence(name))


def _licence(name: str) -> str:
    """What a package says of its licence: the expression, else its classifiers, else the old field if it is short."""
    try:
        said = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        raise ReplicationError(
            f"{LOCK} has {name}, which is not installed here; bring the environment up to date first."
        ) from None
    kinds = [each.removeprefix(CLASSIFIER) for each in said.get_all("Classifier", []) if each.startswith(CLASSIFIER)]
    expression, old = (" ".join(said.get_all(field, [])) for field in ("License-Expression", "License"))
    old = old.strip().replace("UNKNOWN", "")
    found = UNSTATED.get(name) or expression or ", ".join(kinds) or (old if 0 < len(old) <= LONGEST else "")
    if not found:
        files = [file for file in importlib.metadata.files(name) or () if file.name.upper().startswith("LICEN")]
        found = f"see its {files[0].name}" if files else ""
    if not found:
        raise ReplicationError(f"the package {name} says nothing of its licence; look it up before it is used.")
    return str(found)


def _page(packages: list[Package]) -> str:
    lines = [INTRODUCTION, f"## Packages\n\n{len(packages)} packages; the lock has the hashes of their files.\n"]
    lines += ["| Package | Version | Licence |", "| --- | --- | --- |"]
    lines += [f"| {each.name} | {each.version} | {each.licence} |" for each in packages]
    lines += [f"\n## Data\n\n{OF_DATA}\n"]
    lines += ["| Data | What it is | Licence |", "| --- | --- | --- |"]
    for path in sorted(Path("data").glob("*.yaml")):
        card = load_card(path.stem)
        lines.append(f"| {path.stem} | {_cell(card.title)} | {_cell(card.licence)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _bill(packages: list[Package]) -> dict[str, Any]:
    """The packages as CycloneDX has them; nothing in it depends on when it was written."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "attention-replications"}},
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{each.name}@{each.version}",
                "name": each.name,
                "version": each.version,
                "purl": f"pkg:pypi/{each.name}@{each.version}",
                "licenses": [{"license": {"name": each.licence}}],
                **_files(each),
            }
            for each in packages
        ],
    }


def _files(package: Package) -> dict[str, Any]:
    """The hashes of a package's files, where the index has them: a component's own hashes would be of one file."""
    if not package.hashes:
        return {}
    hashes = [{"alg": "SHA-256", "content": each} for each in package.hashes]
    return {"externalReferences": [{"type": "distribution", "url": f"{INDEX}/{package.name}/", "hashes": hashes}]}
