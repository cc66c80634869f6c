"""Chooses the scale that ``dvc repro report@<paper>`` makes."""

from __future__ import annotations

import re
from pathlib import Path

from shared.claims.scales import SCALES
from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.config import load_params
from shared.pipeline.files import write_text

HIDDEN = ("smoke", "paper_scale")
"""Scales whose pipelines DVC does not read unless they are used: each costs every command a second or two."""


def use_scale(scale: str) -> None:
    """Set ``scale`` in params.yaml, and let DVC see the pipelines of that scale (``.dvcignore``).

    Raises:
        ReplicationError: there is no such scale, or a file is not as this project has it; nothing has changed then.
    """
    if scale not in SCALES:
        raise ReplicationError(f"there is no scale '{scale}'{near(scale, SCALES)}.")
    load_params()
    params, ignored = Path("params.yaml"), Path(".dvcignore")
    if not ignored.is_file():
        raise ReplicationError(f"{ignored} is not there; take it back with 'git checkout {ignored}'.")
    text, found = re.subn(r"(?m)^scale: .*$", f"scale: {scale}", params.read_text(encoding="utf-8"))
    if found != 1:
        raise ReplicationError(
            f"{params}: {found} lines begin with 'scale: ' instead of one; write 'scale: {scale}' on one line, "
            "without quotes around the key."
        )
    lines = {f"/replications/*/{name}/" for name in HIDDEN}
    kept = [line for line in ignored.read_text(encoding="utf-8").splitlines() if line.lstrip("#") not in lines]
    write_text(params, text)
    hidden = [f"{'#' if name == scale else ''}/replications/*/{name}/" for name in HIDDEN]
    write_text(ignored, "\n".join([*kept, *hidden]) + "\n")
    print(f"scale: {scale}; try dvc repro report@bahdanau")
