"""Starts a replication: a folder with all its files, around a small model that already runs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from pathlib import Path

from shared.claims.rules import SCALES
from shared.config import check_name
from shared.errors import ReplicationError
from shared.pipeline.config import load_params
from shared.pipeline.files import REPLICATIONS, link_pipeline, made_anew, write_text
from shared.reports.page import fill_template

TEMPLATES = Path(__file__).parent / "templates"
PARAMS = Path("params.yaml")
TESTS = Path("tests/replications")
PURPOSES = {
    "smoke": "every stage in seconds, for tests; its numbers mean nothing",
    "quick": "minutes on two cores",
    "bench": "one to four hours on two cores",
    "paper_scale": "the paper's own data, sizes and schedule",
}


SHAPES: dict[str, dict[str, object]] = {
    "translation": {"task": "swaps", "metric": "nll_per_token", "floor": 1.0, "transformer": True},
    "classification": {"task": "tally", "metric": "cross_entropy", "floor": 0.3, "transformer": False},
    "captioning": {"task": "scenes", "metric": "nll_per_token", "floor": 2.0, "transformer": False},
    "language": {"task": "recall", "metric": "word_perplexity", "floor": 40.0, "transformer": True},
    "sequences": {"task": "copy", "metric": "bits", "floor": 1.0, "transformer": True},
    "sets": {"task": "maxima", "metric": "absolute_error", "floor": 0.1, "transformer": False},
}
"""What the template of a kind has: its task, the metric of its claim (less is better), the floor that its models have
to reach, and whether its model is a Transformer, with layers and heads."""


def new_replication(name: str, kind: str | None = None, scales: Sequence[str] | None = None) -> None:
    """Create ``replications/<name>`` from the templates, with a test of its model, and list it in ``params.yaml``.

    What it makes trains and reports at every scale but ``paper_scale``; the paper's model, facts and claims are to be
    written in its place.

    Args:
        name: of the folder.
        kind: of its tasks; ``translation`` unless given.
        scales: beside ``smoke``, which tests need; ``quick`` unless given.

    Raises:
        ReplicationError: the name cannot be a Python package's, the folder exists, there is no template of this kind,
            or the working directory is no project. Nothing has been written then.
    """
    folder, test, papers = REPLICATIONS / name, TESTS / f"test_{name}_model.py", load_params().papers
    if not re.fullmatch(r"[a-z][a-z0-9_]{,99}", name) or keyword.iskeyword(name):
        raise ReplicationError(f"'{name}' cannot name a folder of code; use up to 100 of a-z, 0-9 and '_'.")
    kind = kind or "translation"
    check_name(kind, SHAPES, "there is no template of kind")
    if folder.exists() or test.exists() or name in papers:
        raise ReplicationError(f"{test}, {folder} or its line in {PARAMS} exists; remove it, or choose another name.")
    listed = _listed(PARAMS.read_text(encoding="utf-8"), name)
    with made_anew(folder) as partial:
        write_folder(partial, name, kind, ["smoke", *(scales or ("quick",))])
    write_text(PARAMS, listed)
    print(f"{folder} is there, and listed in {PARAMS}.")
    if TESTS.is_dir():
        write_text(test, fill_template("test/model.py.j2", name=name))
        print(f"{test} tests its model.")
    print(f"Try it:\n\npython -m shared.pipeline use smoke\ndvc repro report@{name}")


def write_folder(folder: Path, name: str, kind: str, scales: Sequence[str]) -> None:
    """Write all files of a replication into ``folder``, which is made."""
    values = SHAPES[kind] | {"name": name, "kind": kind}
    sizes = [(size, scale) for size, scale in enumerate(SCALES) if scale in scales]
    for _, scale in sizes:
        (folder / scale).mkdir(parents=True, exist_ok=True)
        link_pipeline(folder / scale)
    (folder / "__init__.py").touch()
    for path in sorted([*(TEMPLATES / "common").iterdir(), *(TEMPLATES / kind).iterdir()]):
        template = f"{path.parent.name}/{path.name}"
        if path.stem == "params.yaml":
            for size, scale in sizes:
                own = {"scale": scale, "size": size, "seeds": 2 if scale == "smoke" else 5, "purpose": PURPOSES[scale]}
                write_text(folder / scale / path.stem, fill_template(template, **values, **own))
        elif path.stem != "task.yaml":  # which is a part of params.yaml
            write_text(folder / path.stem, fill_template(template, **values))


def _listed(text: str, name: str) -> str:
    """``params.yaml`` with one more paper, in the form that DVC writes, all else as it was.

    Raises:
        ReplicationError: the list is not written as DVC would write it.
    """
    match = re.search(r"(?m)^papers:\n(- [a-z0-9_]+\n)+", text if text.endswith("\n") else f"{text}\n")
    if match is None:
        raise ReplicationError(f"{PARAMS}: 'papers' must be a list with a line '- <paper>' for each; rewrite it so.")
    return f"{text[: match.end()].rstrip()}\n- {name}\n{text[match.end() :]}"
