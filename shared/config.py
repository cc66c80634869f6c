"""From YAML to frozen, range-checked values, with errors a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, PositiveInt, ValidationError
from pydantic_core import CoreSchema

from shared.errors import ReplicationError

_STRICT_TYPES = ("int", "float", "bool")
_OF_A_WHOLE = ("value_error", "union_tag_invalid", "union_tag_not_found")
"""Types of errors of a whole mapping, not of one of its values; their messages do not repeat the mapping."""


def _refuse_coercion(schema: Any) -> None:
    """Make every number and truth value in a schema of pydantic strict.

    ``strict`` in ``model_config`` would do so for tuples as well.
    """
    if isinstance(schema, dict):
        if schema.get("type") in _STRICT_TYPES:
            schema["strict"] = True
        for key, part in schema.items():
            if key not in ("default", "metadata", "serialization"):
                _refuse_coercion(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _refuse_coercion(part)


class Strict(BaseModel):
    """Base of every configuration: immutable, no unknown keys, numbers may not be NaN or infinite.

    A number has to be one: neither ``'3'`` nor ``true`` counts as 3, nor 3.0 as an integer; an integer may stand for a
    float. Lists may stand for tuples, which YAML does not have. A text may not be empty, unless a field says so.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, str_min_length=1)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _refuse_coercion(schema)
        return schema


def _ascending(values: list[int]) -> list[int]:
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise ValueError("each must be greater than the one before")
    return values


Ascending = Annotated[list[PositiveInt], Field(min_length=2), AfterValidator(_ascending)]
"""Two sizes or more, each greater than the one before."""
ConfigT = TypeVar("ConfigT", bound=BaseModel)
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C, where libyaml is, is ten times as fast


class _Loader(_SafeLoader):
    """Reads safe YAML and refuses a mapping that has a key twice; a key may override what ``<<`` merges in."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if id(node) not in self._checked:  # once, since merging adds keys that are overridden
            self._checked.add(id(node))
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                line = key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in lines:
                    raise _DoubledKeyError(key.value, lines[key.tag, key.value], line)
                lines[key.tag, str(key.value)] = line
        super().flatten_mapping(node)


class _DoubledKeyError(Exception):
    """A key and the two lines that it stands in."""


MOST_NESTED, MOST_VALUES = 50, 1_000_000
"""How deep a file may nest, and how many values it may have once its aliases are written out. The parser in C runs out
of stack at some ten thousand levels; a few lines of aliases of aliases can stand for more values than memory holds."""


def _refuse_bombs(path: Path, text: str) -> None:
    """Look at a file's structure before anything is built of it."""
    held: dict[str | None, tuple[int, int]] = {}  # anchor to the values and the levels that it stands for
    inside: list[tuple[str | None, int]] = []
    deepest: list[int] = []  # level that is reached within each open collection
    values = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_SafeLoader)  # type: ignore[no-untyped-call]
    for event in events:
        line, level = event.start_mark.line + 1, 0
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, values))
            deepest.append(level := len(inside))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            level = deepest.pop()
            held[anchor] = values - before, level - len(inside)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in inside):
                raise ReplicationError(
                    f"{path}: '*{event.anchor}' in line {line} stands for what it is in; write it out."
                )
            count, levels = held.get(event.anchor, (1, 0))
            values, level = values + count, len(inside) + levels
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
        if deepest:
            deepest[-1] = max(deepest[-1], level)
        if level > MOST_NESTED:
            raise ReplicationError(f"{path}: line {line} is nested more than {MOST_NESTED} levels deep; flatten it.")
        if values > MOST_VALUES:
            raise ReplicationError(
                f"{path}: in line {line} there are more than {MOST_VALUES:,} values, aliases written out; use fewer."
            )


def load_yaml(path: Path) -> Any:
    """Read one YAML document.

    Raises:
        ReplicationError: the file is missing, is not UTF-8 or is not YAML, has a key twice, or is nested too
            deep or too large; says where.
    """
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_bombs(path, text)
        return yaml.load(text, _Loader)
    except _DoubledKeyError as error:
        key, first, second = error.args
        raise ReplicationError(
            f"{path}: the key '{key}' stands in line {first} and again in line {second}; leave in one of them."
        ) from None
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; check the path, or run from the project's root.") from None
    except UnicodeDecodeError as error:
        raise ReplicationError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ReplicationError(f"{path} is not valid YAML: {problem}.") from None
    except ValueError as error:  # such as an integer of thousands of digits
        raise ReplicationError(f"{path} has a value that cannot be read ({str(error).partition(';')[0]}).") from None


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
        known = _paths(config)
        problems = [_explain(dict(problem), value, known) for problem in error.errors()]
        raise ReplicationError(f"{where}: {'; '.join(problems)}.") from None


def check_part(config: type[BaseModel], value: Any, *, where: str) -> None:
    """Refuse what is wrong in some keys of a configuration, whatever keys are added to them.

    Raises:
        ReplicationError: as :func:`build`, but not for what is missing or only shows in the whole.
    """
    try:
        config.model_validate(value)
    except ValidationError as error:
        whole = ("missing", "value_error", "union_tag_not_found")
        for problem in error.errors():
            if problem["type"] not in whole and keys_to(problem["loc"], value):
                raise ReplicationError(f"{where}: {_explain(dict(problem), value, _paths(config))}.") from None


def merge(base: Any, override: Any) -> Any:
    """Return ``base`` with the mappings of ``override`` laid over it, key by key, without changing either."""
    if not (isinstance(base, dict) and isinstance(override, dict)):
        return override
    return {
        key: merge(base[key], override[key]) if key in base and key in override else (override | base)[key]
        for key in [*base, *(key for key in override if key not in base)]
    }


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested keys as one each, such as ``tokenizer.size``."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        nested = isinstance(value, Mapping) and value
        found |= flat(value, f"{before}{key}.") if nested else {f"{before}{key}": value}
    return found


MOST_SHOWN = 100
"""Characters of a wrong value that an error shows."""
MOST_NAMED = 12
"""Known names that an error lists where none is near."""


def near(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    closest = difflib.get_close_matches(name, known, n=1)
    if closest:
        return f" (did you mean '{closest[0]}'?)"
    return f"; there are {', '.join(known[:MOST_NAMED])}{', …' if len(known) > MOST_NAMED else ''}"


def _explain(problem: dict[str, Any], value: Any, known: Mapping[str, str]) -> str:
    whole = problem["type"] in _OF_A_WHOLE and isinstance(problem["input"], dict)
    key = ".".join(keys_to(problem["loc"], value, inside=whole)) or ("" if whole else "value")
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        near = difflib.get_close_matches(name, sorted(known), n=1)
        meant = known[near[0]] if name in near else "".join(near)  # the key is known at another place
        return f"unknown key '{key}'" + (f" (did you mean '{meant}'?)" if meant not in ("", key) else "")
    if problem["type"] in ("int_type", "float_type") and _is_number(problem["input"]):
        return f"'{key}': {_number_as_text(problem['input'], whole=problem['type'] == 'int_type')}"
    got = shorten(repr(problem["input"]), MOST_SHOWN)
    shown = "" if whole or problem["type"] == "missing" else f", got {got}"
    said = str(problem["msg"]).removeprefix("Value error, ")
    return (f"'{key}': " if key else "") + said[0].lower() + said[1:] + shown


def keys_to(place: tuple[str | int, ...], value: Any, *, inside: bool = True) -> list[str]:
    """The keys of the YAML that lead to a place, without the names that pydantic gives the members of a union.

    The last may be a key that is missing, unless the place is known to be ``inside``.
    """
    keys = []
    for part in place:
        found = isinstance(value, dict) and part in value
        if found or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
        elif inside or part is not place[-1]:
            continue
        keys.append(str(part))
    return keys


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def _number_as_text(text: str, *, whole: bool) -> str:
    """What to do about a number that YAML took for text: quoted, or with an exponent but without point or sign."""
    number, exponent = text.lower().partition("e")[::2]
    if not exponent:
        return f"the text '{text}' is not a number; take off the quotes"
    written = "in digits alone" if whole else f"{number}{'' if '.' in number else '.0'}e{int(exponent):+d}"
    return f"YAML reads {text} as text; write it {written}"


def _paths(config: type[BaseModel]) -> dict[str, str]:
    """Every key of a configuration and of those inside it, to the keys that lead to one of that name."""
    paths: dict[str, str] = {}
    todo: list[tuple[Any, str]] = [(config, "")]
    seen: set[Any] = set()
    while todo:
        item, prefix = todo.pop()
        if isinstance(item, type) and issubclass(item, BaseModel):
            if item in seen:
                continue
            seen.add(item)
            for field_name, field in item.model_fields.items():
                name = field.alias or field_name
                paths.setdefault(name, prefix + name)
                todo.append((field.annotation, f"{prefix}{name}."))
        else:
            todo.extend((part, prefix) for part in getattr(item, "__args__", ()))
    return paths
