"""Starts a replication: a folder with its fixed set of files, around a small model that already runs."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from shared.errors import ReplicationError

TEMPLATES = Path(__file__).parent / "templates"


def new_replication(name: str) -> None:
    """Create ``replications/<name>`` from the templates and print the entries for ``params.yaml``.

    What it makes is a translation with a plain encoder-decoder, which trains and reports at every scale; the paper's
    model, facts and claims are to be written in its place.

    Raises:
        ReplicationError: the name cannot be a Python package's, or the folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ReplicationError(f"'{name}' cannot name a folder of code; use lower-case letters, digits and '_'.")
    folder = Path("replications") / name
    if folder.exists():
        raise ReplicationError(f"{folder} exists; remove it first, or choose another name.")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    render = {
        template: environment.get_template(template).render(name=name) for template in environment.list_templates()
    }
    entries = render.pop("params.yaml.j2")
    scale = render.pop("scale.yaml.j2")
    folder.mkdir(parents=True)
    for template, text in render.items():
        (folder / template.removesuffix(".j2")).write_text(text, encoding="utf-8")
    for file in ("smoke.yaml", "quick.yaml", "bench.yaml", "paper_scale.yaml"):
        (folder / file).write_text(scale, encoding="utf-8")
    (folder / "__init__.py").touch()
    print(f"{folder} is there. Add to params.yaml:\n\n{entries}")
    print(f"then try it: dvc exp run -S scale=smoke report@{name}")
