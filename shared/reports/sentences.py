"""Sentences of reports, which ``templates/sentences.j2`` has as macros."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from shared.claims import rules
from shared.reports import document, naming, paper, verdicts

SPACES = re.compile(r"[ \n]+")  # but for those that do not break
HYPHEN = re.compile(r"(?<![^\s\[])-(?=\d)")  # that stands for a minus; those within names stay


def say(what: str, **of: Any) -> str:
    """What the macro ``what`` says of these values, on one line."""
    return SPACES.sub(" ", getattr(_macros(), what)(**of)).strip()


def paragraphs(what: str, **of: Any) -> list[str]:
    """The same, cut where there are empty lines."""
    return [SPACES.sub(" ", part).strip() for part in re.split(r"\n\s*\n", getattr(_macros(), what)(**of))]


@cache
def _macros() -> Any:
    environment = Environment(
        loader=PackageLoader("shared.reports"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for module in (document, naming, paper, rules, verdicts):
        environment.globals |= {name: value for name, value in vars(module).items() if not name.startswith("_")}
    environment.filters |= {
        "called": naming.name_and_code, "hash": lambda commit: document.code(document.hash_text(commit)),
        "minus": lambda said: HYPHEN.sub(document.MINUS, said),
    }  # fmt: skip
    return environment.get_template("sentences.j2").module
