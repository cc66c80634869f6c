"""Refuses mistakes in variants and tasks that no merged settings show, because another value overrides them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from pydantic import ValidationError

from shared.config import MOST_SHOWN, Strict, build, keys_to, load_yaml, near
from shared.errors import ReplicationError
from shared.pipeline.config import Identities, ScaleFile, refuse_huge
from shared.tasks.kinds import settings_of
from shared.tasks.protocol import papers

WHOLE = ("missing", "value_error", "union_tag_not_found")
"""Types of errors that are none in a part of a section: the file of a scale has what the part lacks."""


def check_identities(settings: ScaleFile) -> None:
    """Check each entry of ``variants.yaml`` on its own: which settings it names, and their types and ranges.

    What an entry lacks is not looked at, and neither is what only whole sections show: scales add to it.

    Args:
        settings: of the paper at any scale.

    Raises:
        ReplicationError: names file, variant, key and value of the first mistake.
    """
    path = settings.variants_path
    models: Any = importlib.import_module(f"replications.{settings.paper}.settings")
    for name, identity in build(Identities, load_yaml(path), where=str(path)).variants.items():
        given = identity.model_dump(exclude_unset=True)
        where = f"{path}: variants.{name}"
        refuse_huge(given, where)
        model = given.pop("model", {})
        _refuse(settings_of(settings.kind), given, where)
        for section in _sections(models, model):
            _refuse(section, model, f"{where}.model")
        if (lender := model.get("paper")) in papers() and isinstance(model.get("settings"), dict):
            theirs: Any = importlib.import_module(f"replications.{lender}.settings")
            _refuse(theirs.MODEL, model["settings"], f"{where}.model.settings")


def check_tasks(settings: ScaleFile) -> None:
    """Check the sections of each task at a scale on their own, as its variants may override what is wrong in it.

    Raises:
        ReplicationError: names file, task, key and value of the first mistake.
    """
    models: Any = importlib.import_module(f"replications.{settings.paper}.settings")
    for name, task in settings.built_tasks.items():
        given = task.model_dump(exclude_unset=True, exclude={"after"})
        refuse_huge(given, where := f"{settings.path}: tasks.{name}")
        model = given.pop("model", {})
        _refuse(settings_of(settings.kind), given, where)
        for section in _sections(models, model):
            _refuse(section, model, f"{where}.model")


def _sections(models: Any, model: dict[str, Any]) -> Iterator[type[Strict]]:
    """What checks a model section: the network's class, unless a route of the paper is named and known."""
    routes = [route for route in models.ROUTES if route in model]
    if not routes:
        yield models.MODEL
    elif len(routes) == 1:
        kinds = models.ROUTES[routes[0]]
        if isinstance(kinds, type):
            yield kinds
        elif isinstance(model[routes[0]], str) and model[routes[0]] in kinds:
            yield kinds[model[routes[0]]]


def _refuse(section: type[Strict], given: dict[str, Any], where: str) -> None:
    """Refuse what is wrong in ``given`` whatever is added to it."""
    try:
        section.model_validate(given)
    except ValidationError as error:
        for problem in error.errors():
            keys = keys_to(problem["loc"], given)
            if problem["type"] in WHOLE or not keys:
                continue
            if problem["type"] == "extra_forbidden":
                hint = near(keys[-1], section.model_fields) if len(keys) == 1 else ""
                raise ReplicationError(f"{where}: unknown key '{'.'.join(keys)}'{hint}; take it out.") from None
            said = problem["msg"][:1].lower() + problem["msg"][1:]
            got = shorten(repr(problem["input"]), MOST_SHOWN)
            raise ReplicationError(f"{where}: '{'.'.join(keys)}': {said}, got {got}.") from None
