"""From YAML to frozen, range-checked values, with errors a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from shared.errors import ReplicationError


class Strict(BaseModel):
    """Base of every configuration: immutable, no unknown keys, numbers may not be NaN or infinite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _ascending(values: list[int]) -> list[int]:
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise ValueError("each must be greater than the one before")
    return values


Ascending = Annotated[list[PositiveInt], Field(min_length=2), AfterValidator(_ascending)]
"""Two sizes or more, each greater than the one before."""
ConfigT = TypeVar("ConfigT", bound=BaseModel)


def load_yaml(path: Path) -> Any:
    """Read one YAML document.

    Raises:
        ReplicationError: the file is missing, is not UTF-8 or is not YAML; says where.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; check the path, or run from the project's root.") from None
    except UnicodeDecodeError as error:
        raise ReplicationError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ReplicationError(f"{path} is not valid YAML: {problem}.") from None


def build(config: type[ConfigT], value: Any, *, where: str) -> ConfigT:
    """Check ``value`` against ``config`` and freeze it.

    Args:
        config: the configuration class.
        value: what the YAML held, usually a mapping.
        where: file and key, for the error message.

    Raises:
        ReplicationError: names each bad key, what is wrong with it, and the nearest known key.
    """
    try:
        return config.model_validate(value)
    except ValidationError as error:
        known = sorted(_field_names(config))
        problems = [_explain(dict(problem), known) for problem in error.errors()]
        raise ReplicationError(f"{where}: {'; '.join(problems)}.") from None


def merge(base: Any, override: Any) -> Any:
    """Return ``base`` with the mappings of ``override`` laid over it, key by key, without changing either."""
    if not (isinstance(base, dict) and isinstance(override, dict)):
        return override
    return {
        key: merge(base[key], override[key]) if key in base and key in override else (override | base)[key]
        for key in [*base, *(key for key in override if key not in base)]
    }


def near(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    closest = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean '{closest[0]}'?)" if closest else f"; there are {', '.join(known)}"


def _explain(problem: dict[str, Any], known: list[str]) -> str:
    key = ".".join(str(part) for part in problem["loc"]) or "value"
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        return f"unknown key '{key}'" + (f" (did you mean '{near[0]}'?)" if near else "")
    shown = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
    return f"'{key}': {problem['msg'][0].lower() + problem['msg'][1:]}{shown}"


def _field_names(config: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    todo: list[Any] = [config]
    seen: set[Any] = set()
    while todo:
        item = todo.pop()
        if isinstance(item, type) and issubclass(item, BaseModel):
            if item in seen:
                continue
            seen.add(item)
            for name, field in item.model_fields.items():
                names.add(field.alias or name)
                todo.append(field.annotation)
        else:
            todo.extend(getattr(item, "__args__", ()))
    return names
