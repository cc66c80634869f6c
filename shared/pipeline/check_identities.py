"""Refuses mistakes in variants and tasks that no merged settings show, because another value overrides them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from difflib import get_close_matches
from textwrap import shorten
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from shared.config import MOST_SHOWN, Strict, build, keys_to, load_yaml, near
from shared.errors import ReplicationError
from shared.pipeline.config import Identities, ScaleFile, refuse_huge
from shared.tasks.kinds import papers, settings_of

WHOLE = ("missing", "value_error", "union_tag_not_found")
"""Types of errors that are none in a part of a section: the file of a scale has what the part lacks."""
NUMBER = re.compile(r"([-+]?\d+)(\.\d+)?(?:[eE]([-+]?\d+))?")


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
    if settings.kind != models.KIND:
        raise ReplicationError(
            f"{path}: kind: '{settings.kind}', but replications/{settings.paper}/settings.py has "
            f"KIND = '{models.KIND}'; both must name the same kind of task."
        )
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
                hint = _meant(section, keys)
                raise ReplicationError(f"{where}: unknown key '{'.'.join(keys)}'{hint}; take it out.") from None
            said = problem["msg"][:1].lower() + problem["msg"][1:]
            got = shorten(repr(problem["input"]), MOST_SHOWN)
            advice = _as_number(problem["input"], whole=problem["type"] == "int_type")
            raise ReplicationError(f"{where}: '{'.'.join(keys)}': {said}, got {got}{advice}.") from None


def _meant(section: type[BaseModel], keys: list[str]) -> str:
    """The end of a sentence about an unknown key: the nearest of its place or a level below, or all of its place."""
    known, name = _fields(section, keys[:-1]), keys[-1]
    below = {inner: f"{key}.{inner}" for key in sorted(known) for inner in _fields(section, [*keys[:-1], key])}
    nearest = get_close_matches(name, below, n=1)
    if nearest and not get_close_matches(name, known):
        return f" (did you mean '{below[nearest[0]]}'?)"
    return near(name, known) if known else ""


def _fields(section: type[BaseModel], keys: list[str]) -> set[str]:
    """The names of all settings that there are in the part of a section that keys lead to."""
    found = [section]
    for key in keys:
        fields = [each.model_fields[key] for each in found if key in each.model_fields]
        found = [inner for field in fields for inner in _classes(field.annotation)]
    return {name for each in found for name in each.model_fields}


def _classes(annotation: Any) -> Iterator[type[BaseModel]]:
    """The classes of settings that an annotation names, such as those of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)


def _as_number(value: Any, *, whole: bool) -> str:
    """What to do about a number that YAML took for text: quoted, or with an exponent but without point or sign."""
    parts = NUMBER.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        return ""
    number, digits, exponent = parts.groups()
    if exponent is None:
        return "; take off the quotes"
    written = "in digits alone" if whole else f"{number}{digits or '.0'}e{int(exponent):+d}"
    return f"; YAML reads that as text, write it {written}"
