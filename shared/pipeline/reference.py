"""Writes docs/REFERENCE.md: every setting, measure, kind of claim, reader and figure, as the code declares them.

Nothing here imports torch: settings, measures and exhibits are declared without it.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import shared
from shared.claims.comparisons import Row
from shared.claims.schema import Claims
from shared.data.readers import READERS
from shared.metrics.registry import MEASURES, families
from shared.pipeline.config import Params
from shared.pipeline.search import Same, Tried
from shared.reports.exhibits import Exhibit
from shared.tasks.kinds import KINDS, load_measures, papers, settings_of

PATH = Path("docs/REFERENCE.md")
SECTIONS = ("corpus", "training", "decoding", "evaluation")
BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}", "multiple_of": "multiple of {}",
          "min_length": "at least {} long", "max_length": "at most {} long", "pattern": "like `{}`"}  # fmt: skip
SETTING = ("Key", "Type", "Default", "Range", "What it is")
CLAIMS_AT_SCALE = (
    "Comparisons and floors may also carry `at: {<scale>: {…}}`: at that scale these keys are laid over the others. "
    "A key that is null there is taken away, and a floor that is null does not count."
)
Classes = dict[str, type[BaseModel]]


def write_reference() -> None:
    """Write docs/REFERENCE.md; run from the project's root."""
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(reference(), encoding="utf-8")
    print(f"{PATH} is written.")


def reference() -> str:
    """The whole reference, as Markdown."""
    load_measures()
    inner: Classes = {}
    parts = [
        "# Reference",
        "Written by `python -m shared.pipeline reference` from the code; a test holds it current. Change the code, not "
        "this file.",
        "## `params.yaml`",
        *_model(Params, inner),
        "## `search.yaml`",
        "`seeds` lists those of the pilots, `groups` what is tried. A group has one of two forms.",
        *_model(Tried, inner),
        *_model(Same, inner),
    ]
    for kind in KINDS:
        parts += _kind(kind, inner)
    for paper in papers():
        parts += _paper(paper, inner)
    parts += ["## Settings inside of settings", *_inner(inner)]
    parts += [
        "## Measures",
        *_measures(),
        "## Claims",
        *_claims(),
        "## Readers",
        *_readers(),
        "## Figures",
        *_figures(),
    ]
    return "\n\n".join(part.replace("\u00a0", " ") for part in parts) + "\n"


def _kind(kind: str, inner: Classes) -> Iterator[str]:
    fields = settings_of(kind).model_fields
    yield f"## Kind of task: {kind}"
    for section in SECTIONS:
        if section in fields:
            for model in _models(fields[section].annotation):
                yield f"### {kind}: `{section}`"
                yield from _model(model, inner)


def _paper(paper: str, inner: Classes) -> Iterator[str]:
    settings: Any = importlib.import_module(f"replications.{paper}.settings")
    yield f"## Model sections of {paper}"
    yield from _model(settings.MODEL, inner)
    for key, routed in settings.ROUTES.items():
        named = routed if isinstance(routed, Mapping) else {"": routed}
        for name, section in named.items():
            yield f"### {paper}: `{key}: {name or '…'}`"
            yield from _model(section, inner)


def _inner(inner: Classes) -> Iterator[str]:
    """The tables of the classes in ``inner``, and of the classes that these refer to in turn."""
    written: set[str] = set()
    while waiting := sorted(inner.keys() - written):
        for name in waiting:
            written.add(name)
            yield f"### {name}"
            yield from _model(inner[name], inner)


def _measures() -> Iterator[str]:
    yield (
        "Claims and figures name them. In a figure a further test split may stand before the name: `test_long.bleu`; "
        "a comparison of a claim names it by itself: `where: {split: test_long}`."
    )
    rows = [
        (f"`{name}`", each.title, each.unit or "–", each.better or "–", each.theme) for name, each in MEASURES.items()
    ]
    yield _table(("Name", "Title", "Unit", "Better", "Theme"), rows)
    yield "Families, whose names have parameters (regular expressions):"
    yield "\n".join(f"* `{family.pattern}`" for family in families())


def _claims() -> Iterator[str]:
    """The file, what it is made of, then the kinds of comparison by the value of their key ``kind``."""
    inner: Classes = {}
    yield from _model(Claims, inner)
    yield CLAIMS_AT_SCALE
    kinds = {_name(model): model for model in _models(Row)}
    written = set(kinds)
    while waiting := [name for name in inner if name not in written]:
        for name in waiting:
            written.add(name)
            yield f"### {name}"
            yield from _model(inner[name], inner)
    for name, model in kinds.items():
        of = _type(model.model_fields["kind"].annotation, {})
        yield f"### {name}"
        yield f"`kind`: {of}."
        yield from _model(model, inner)
    rest = [name for name in inner if name not in written]
    yield from (part for name in sorted(rest) for part in (f"### {name}", *_model(inner[name], {})))


def _readers() -> Iterator[str]:
    yield "`reader.name` of a card in data/, and its `reader.options`:"
    for name, reader in sorted(READERS.items()):
        inner: Classes = {}
        yield f"### `{name}`"
        yield _summary(reader.read)
        yield from list(_model(reader.options, inner))[-1:]
        for label, model in sorted(inner.items()):
            yield f"#### {label}"
            yield from list(_model(model, {}))[-1:]


def _figures() -> Iterator[str]:
    yield "What `FIGURES` of a paper's report.py may list:"
    rows = []
    for exhibit in sorted(_exhibits(), key=lambda each: (each.__module__, each.__name__)):
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(exhibit))  # type: ignore[arg-type]
        rows.append((f"`{exhibit.__name__}`", f"`{exhibit.__module__}`", fields, _summary(exhibit)))
    yield _table(("Class", "Module", "Takes", "What it shows"), rows)


def _exhibits() -> list[type[Exhibit]]:
    """All that `shared` has: the modules that declare one are imported."""
    root = Path(shared.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if re.search(r"(?m)^class \w+\(Exhibit\)", path.read_text(encoding="utf-8")):
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    return [each for each in Exhibit.__subclasses__() if each.__module__.startswith("shared.")]


def _model(model: type[BaseModel], inner: Classes) -> Iterator[str]:
    """What a class of settings says of itself, and a table of its keys; ``inner`` gets the classes that it names."""
    yield _summary(model)
    said = _attributes(model)
    rows = [
        (f"`{field.alias or key}`", _type(field.annotation, inner), _default(field), _range(field.metadata),
         field.description or said.get(key, ""))
        for key, field in model.model_fields.items()
    ]  # fmt: skip
    yield _table(SETTING, rows) if rows else "No keys."


def _summary(thing: Any) -> str:
    """The first paragraph of a docstring."""
    return _plain((inspect.getdoc(thing) or "").split("\n\n")[0])


def _plain(docstring: str) -> str:
    """A part of a docstring on one line, without the markup of references."""
    text = " ".join(docstring.split())
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")


def _attributes(model: type[BaseModel]) -> dict[str, str]:
    """Key to what the section "Attributes" of the docstrings of a class and its bases says of it."""
    said: dict[str, str] = {}
    for base in reversed(model.__mro__):
        _, _, text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        for names, meaning in re.findall(r"(?m)^ {4}(\w[\w, ]*): ((?:.*)(?:\n {8}.*)*)", text):
            said |= {name.strip(): _plain(meaning) for name in names.split(",")}
    return said


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The classes of settings that an annotation is made of."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _type(annotation: Any, inner: Classes) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = _range(_metadata(parts[1:]))
        return _type(parts[0], inner) + (f" ({bounds})" if bounds else "")
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(part, inner) for part in parts))
    if origin in (list, tuple, Sequence):
        return "list of " + ", ".join(dict.fromkeys(_type(part, inner) for part in parts if part is not Ellipsis))
    if origin in (dict, Mapping):
        return f"mapping of {_type(parts[0], inner)} to {_type(parts[1], inner)}"
    if annotation in (None, NoneType):
        return "null"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        name = _name(annotation)
        inner[name] = annotation
        return f"[{name}](#{name.lower().replace(' ', '-')})"
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return {"str": "text", "bool": "true or false", "int": "integer", "float": "number", "Any": "anything"}.get(
        getattr(annotation, "__name__", ""), str(annotation)
    )


def _metadata(parts: Sequence[Any]) -> list[Any]:
    return [each for part in parts for each in (part.metadata if isinstance(part, FieldInfo) else [part])]


def _name(model: type[BaseModel]) -> str:
    """The name of a class, with its paper if it has one, because several papers have classes of the same name."""
    package, *rest = model.__module__.split(".")
    return f"{model.__name__} of {rest[0]}" if package == "replications" else model.__name__


def _range(metadata: Sequence[Any]) -> str:
    texts = []
    for each in metadata:
        for name, text in BOUNDS.items():
            value = getattr(each, name, None)
            if value is not None and not callable(value):
                texts.append(text.format(value))
    return ", ".join(dict.fromkeys(texts))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "all defaults"
    if value == "":
        return "empty"
    shown = {None: "null", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else None
    return f"`{shown or value}`"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").strip() for cell in line) + " |" for line in lines)
