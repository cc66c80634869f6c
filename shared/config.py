"""From YAML to frozen, range-checked values, with errors a person can act on."""

from __future__ import annotations

import difflib
import functools
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    """Reads safe YAML in which 1e9 is a number, as it is for DVC."""


EXPONENT = "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
"""What else than in YAML of 1.1 is a number, as its resolvers need it."""
_Loader.add_implicit_resolver(*EXPONENT)
MISREAD = re.compile(r"[-+]?(0[0-7_]+|[1-9][\d_]*(:[0-5]?\d)+(\.[\d_]*)?)")
"""Scalars that this parser reads in base eight or sixty, and DVC in base ten or as text."""
MOST_NESTED, MOST_VALUES = 50, 1_000_000
"""How deep a file may nest, and how many values it may have once its aliases are written out. The parser in C runs out
of stack at some ten thousand levels; a few lines of aliases of aliases can stand for more values than memory holds."""


@dataclass
class _Collection:
    """A mapping or list that a walk over a file is inside of.

    Attributes:
        anchor: its name for aliases.
        before: values of the file before it.
        deepest: level that was reached within it.
        keys: of a mapping, as they are read, with their lines; None of a list.
        parts: keys and values, or entries, so far.
    """

    anchor: str | None
    before: int
    deepest: int
    keys: dict[Any, int] | None
    parts: int = 0


def _mistake(text: str) -> str | None:
    """Why nothing may be built of a file: a key that stands twice, or more than memory or the stack can hold."""
    sizes: dict[str | None, tuple[int, int]] = {}  # anchor to the values and the levels that it stands for
    inside: list[_Collection] = []
    resolve: Any = yaml.SafeLoader("").resolve
    values = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_SafeLoader)  # type: ignore[no-untyped-call]
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionEndEvent):
            ended = inside.pop()
            sizes[ended.anchor] = values - ended.before, ended.deepest - len(inside)
        if not hasattr(event, "anchor"):  # it begins no part of the document
            continue
        count, levels = 1, 0
        if isinstance(event, yaml.AliasEvent):
            if any(each.anchor == event.anchor for each in inside):
                return f"'*{event.anchor}' in line {line} stands for what it is in; write it out"
            count, levels = sizes.get(event.anchor, (1, 0))
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and MISREAD.fullmatch(event.value):
            return f"line {line} has {event.value}, which YAML reads as another number; write it as one of base ten"
        if inside:
            inside[-1].parts += 1
            keys = inside[-1].keys if isinstance(event, yaml.ScalarEvent) and inside[-1].parts % 2 else None
            if keys is not None:
                tag = event.tag or resolve(yaml.ScalarNode, event.value, event.implicit)
                read = tag.endswith((":bool", ":int", ":float", ":null"))  # yes is true, and 1.0 is 1
                key = yaml.load(event.value, _Loader) if read else event.value
                if key in keys:
                    where = f"in line {keys[key]} and again in line {line}"
                    return f"the key '{event.value}' stands {where}; leave in one of them"
                keys[key] = line
        if isinstance(event, yaml.CollectionStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            inside.append(_Collection(event.anchor, values, 0, {} if mapping else None))
        values, level = values + count, len(inside) + levels
        for each in inside:
            each.deepest = max(each.deepest, level)
        if level > MOST_NESTED:
            return f"line {line} is nested more than {MOST_NESTED} levels deep; flatten it"
        if values > MOST_VALUES:
            return f"in line {line} there are more than {MOST_VALUES:,} values, aliases written out; use fewer"
    return None


@functools.cache
def _parsed(text: str) -> bytes | str:
    """What is in a text, pickled: each reader gets a value of his own, in a tenth of the time; or its mistake."""
    return _mistake(text) or pickle.dumps(yaml.load(text, _Loader))


def load_yaml(path: Path) -> Any:
    """Read one YAML document.

    Raises:
        ReplicationError: the file is missing, is not UTF-8 or is not YAML, has a key twice, or is nested too
            deep or too large; says where.
    """
    try:
        if isinstance(parsed := _parsed(path.read_text(encoding="utf-8")), bytes):
            return pickle.loads(parsed)
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; check the path, or run from the project's root.") from None
    except UnicodeDecodeError as error:
        raise ReplicationError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from None
    except yaml.YAMLError as error:
        said = " ".join(str(error).replace(' in "<unicode string>"', "").split())
        hint = "; indent by spaces, not tabs" * bool(re.search(r"(?m)^ *\t", path.read_text(encoding="utf-8")))
        raise ReplicationError(f"{path} is not valid YAML: {said}{hint}.") from None
    except (ValueError, LookupError, AttributeError) as error:  # an integer of thousands of digits, or !!bool x
        raise ReplicationError(f"{path} has a value that cannot be read ({str(error).partition(';')[0]}).") from None
    raise ReplicationError(f"{path}: {parsed}.")


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
        problems = [_explain(dict(problem), value, config) for problem in error.errors()]
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
            if problem["type"] not in whole and _keys_to(problem["loc"], value):
                raise ReplicationError(f"{where}: {_explain(dict(problem), value, config)}.") from None


def merge(base: Any, override: Any) -> Any:
    """Return ``base`` with the mappings of ``override`` laid over it, key by key, without changing either."""
    if not (isinstance(base, dict) and isinstance(override, dict)):
        return override
    return base | {key: merge(base[key], value) if key in base else value for key, value in override.items()}


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
    return f"; there are {', '.join(known[:MOST_NAMED]) or 'none'}{', …' if len(known) > MOST_NAMED else ''}"


def check_name(name: str, known: Iterable[str], said: str) -> None:
    """Refuse a name that is not known; what is ``said`` stands before it, and the nearest known name behind it."""
    known = [*known]
    if name not in known:
        raise ReplicationError(f"{said} '{name}'{near(name, known)}.")


def _explain(problem: dict[str, Any], value: Any, config: type[BaseModel]) -> str:
    kind, given = problem["type"], problem["input"]
    whole = kind in _OF_A_WHOLE and isinstance(given, dict)
    key = ".".join(_keys_to(problem["loc"], value, inside=whole)) or ("" if whole else "value")
    if kind == "extra_forbidden":
        name, known = str(problem["loc"][-1]), dict(_paths(config))
        nearest = difflib.get_close_matches(name, sorted(known), n=1)
        meant = known[name] if name in nearest else "".join(nearest)  # the key is known at another place
        return f"unknown key '{key}'" + (f" (did you mean '{meant}'?)" if meant not in ("", key) else "")
    quoted = isinstance(given, str) and re.fullmatch(r"[-+]?[\d.]+([eE][-+]?\d+)?", given)
    if quoted and kind in ("int_type", "float_type"):
        return f"'{key}': the text '{given}' is not a number; take off the quotes"
    shown = "" if whole or kind == "missing" else f", got {shorten(repr(given), MOST_SHOWN)}"
    said = str(problem["msg"]).removeprefix("Value error, ")
    said = "a mapping is needed" if kind in ("model_type", "dict_type") else said[0].lower() + said[1:]
    return (f"'{key}': " if key else "") + said + shown


def _keys_to(place: tuple[str | int, ...], value: Any, *, inside: bool = True) -> list[str]:
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


def _paths(part: Any, before: str = "", outer: tuple[Any, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every key of a configuration and of those inside it, and the keys that lead to it."""
    if isinstance(part, type) and issubclass(part, BaseModel) and part not in outer:
        for name, field in part.model_fields.items():
            key = before + (field.alias or name)
            yield field.alias or name, key
            yield from _paths(field.annotation, f"{key}.", (*outer, part))
    for inner in getattr(part, "__args__", ()):
        yield from _paths(inner, before, outer)
