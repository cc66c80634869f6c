"""Writes docs/REFERENCE.md: every setting, measure, reader, figure and part of ``shared``, as the code declares them.

Nothing here imports torch: settings, measures and exhibits are declared without it.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import shared
from shared.claims.schema import Claims
from shared.data.readers import READERS
from shared.metrics.registry import MEASURES, families
from shared.pipeline.config import Params
from shared.pipeline.files import render, write_text
from shared.pipeline.search import Same, Tried
from shared.reports.exhibits import Exhibit
from shared.tasks.kinds import KINDS, load_measures, papers, settings_of

PATH = Path("docs/REFERENCE.md")
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}",
          "multipleOf": "multiple of {}", "minItems": "at least {} long", "maxItems": "at most {} long",
          "pattern": "like `{}`"}  # fmt: skip
PARTS = ("attention", "data", "decoding", "layers", "metrics", "tasks", "training", "vision")
"""Folders of ``shared`` that a paper builds on."""
TYPES = {"string": "text", "boolean": "true or false", "integer": "integer", "number": "number", "null": "null"}


def write_reference() -> None:
    """Write docs/REFERENCE.md; run from the project's root."""
    PATH.parent.mkdir(exist_ok=True)
    write_text(PATH, reference())
    print(f"{PATH} is written.")


def reference() -> str:
    """The whole reference, as Markdown."""
    load_measures()
    roots: dict[str, list[type[BaseModel]]] = {"`params.yaml`": [Params], "`search.yaml`": [Tried, Same]}
    for kind in KINDS:
        roots[f"Kind of task: {kind}"] = [settings_of(kind)]
    for paper in papers():
        settings: Any = importlib.import_module(f"replications.{paper}.settings")
        sections_of_paper = roots[f"Model sections of {paper}"] = [settings.MODEL]
        for routed in settings.ROUTES.values():
            sections_of_paper += routed.values() if isinstance(routed, Mapping) else [routed]
    roots["Claims"] = [Claims]
    roots["Readers"] = [reader.options for reader in READERS.values()]
    every = list(dict.fromkeys(model for models in roots.values() for model in models))
    names, document = models_json_schema([(model, "validation") for model in every])
    written = {model: names[model, "validation"]["$ref"].rpartition("/")[2] for model in every}
    definitions = document["$defs"]
    classes = {name: each for each in _below(BaseModel) for name in _names(each)}
    rows = {name: list(_rows(definitions[name], classes.get(name))) for name in definitions}
    said = {name: _summary(classes.get(name)) for name in definitions}
    sections = {title: [written[model] for model in dict.fromkeys(models)] for title, models in roots.items()}
    reached = {title: _reached(names, definitions) for title, names in sections.items()}
    inner: list[str] = []
    for name in sorted(definitions.keys() - written.values()):
        titles = [title for title, found in reached.items() if name in found]
        (sections[titles[0]] if len(titles) == 1 else inner).append(name)
    return render(
        "docs/reference.md.j2", sections=sections, inner=inner, rows=rows, said=said, heading=_heading,
        measures=MEASURES, families=families(), readers={name: written[each.options] for name, each in READERS.items()},
        figures=list(_figures()), parts=list(_parts()), cell=_cell,
    )  # fmt: skip


def _reached(names: Sequence[str], definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that some of these name, directly or through others."""
    found: set[str] = set()
    todo = [*names]
    while todo:
        inside = {*re.findall(r'"#/\$defs/(\w+)"', json.dumps(definitions[todo.pop()]))} - found
        found |= inside
        todo += inside
    return found


def _below(model: Any) -> Iterator[Any]:
    """All subclasses."""
    each: Any
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


def _names(model: type) -> tuple[str, str]:
    """The name of a class, and that which pydantic gives it where several have the first."""
    return model.__name__, f"{model.__module__}.{model.__qualname__}".replace(".", "__")


def _heading(name: str) -> str:
    """The name of a definition, with the paper if it is one of several."""
    parts = name.split("__")
    return f"{parts[-1]} of {parts[1]}" if parts[0] == "replications" else parts[-1]


def _rows(definition: Mapping[str, Any], model: type[BaseModel] | None) -> Iterator[tuple[str, str, str, str, str]]:
    """Key, type, default, range and meaning of each setting of a class."""
    said = _attributes(model)
    for key, schema in definition.get("properties", {}).items():
        default = "required" if key in definition.get("required", ()) else "optional"
        if "default" in schema:
            value = schema["default"]
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            default = "all defaults" if value and isinstance(value, dict) else f"`{shown}`"
        description = schema.get("description") or said.get(key, "") if "$ref" not in schema else said.get(key, "")
        yield f"`{key}`", _type(schema), default, _range(schema), _plain(description)


def _type(schema: Mapping[str, Any]) -> str:
    """What a value is, in words, with links to the tables of classes."""
    if "$ref" in schema:
        name = _heading(schema["$ref"].rpartition("/")[2])
        return f"[{name}](#{name.lower().replace(' ', '-')})"
    if (values := schema.get("enum", [schema["const"]] if "const" in schema else None)) is not None:
        return ", ".join(f"`{value}`" for value in values)
    if members := schema.get("anyOf", schema.get("oneOf")):
        bounds = [(_type(each), _range(each)) for each in members]
        return " or ".join(dict.fromkeys(f"{kind} ({bound})" if bound else kind for kind, bound in bounds))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or schema.get('prefixItems', [{}])[0])}"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"mapping of text to {_type(inside)}" if isinstance(inside, Mapping) else "mapping"
    return TYPES.get(schema.get("type", ""), "anything")


def _range(schema: Mapping[str, Any]) -> str:
    return ", ".join(text.format(schema[bound]) for bound, text in BOUNDS.items() if bound in schema)


def _attributes(model: type[BaseModel] | None) -> dict[str, str]:
    """Key to what the section "Attributes" of the docstrings of a class and its bases says of it."""
    said: dict[str, str] = {}
    for base in reversed(model.__mro__ if model else ()):
        _, _, text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        for names, meaning in re.findall(r"(?m)^ {4}(\w[\w, ]*): ((?:.*)(?:\n {8}.*)*)", text):
            said |= {name.strip(): meaning for name in names.split(",")}
    return said


def _summary(thing: Any) -> str:
    """The first paragraph of a docstring."""
    said = inspect.getdoc(thing) if thing is not None else None
    return _plain((said or "").split("\n\n")[0])


def _plain(docstring: str) -> str:
    """A part of a docstring on one line, without the markup of references."""
    text = " ".join(docstring.split())
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`").replace("\u00a0", " ")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _figures() -> Iterator[tuple[str, str, str, str]]:
    """Class, module, arguments and summary of what a paper may show: all that ``shared`` has and that can be made."""
    root = Path(shared.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if re.search(r"(?m)^class \w+\((Exhibit|Of\w+)\)", path.read_text(encoding="utf-8")):
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    made = [each for each in _below(Exhibit) if not (inspect.isabstract(each) or each.__name__.startswith("_"))]
    own = [each for each in made if each.__module__.startswith("shared.")]
    for figure in sorted(own, key=lambda each: (each.__module__, each.__name__)):
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(figure))  # type: ignore[arg-type]
        yield f"`{figure.__name__}`", f"`{figure.__module__}`", fields, _summary(figure)


def _parts() -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Each folder of ``shared`` with its modules and the first sentence of what each says of itself."""
    root = Path(shared.__file__).parent
    for folder in sorted({path.parent for name in PARTS for path in (root / name).rglob("*.py")}):
        rows = []
        for path in sorted(folder.glob("[!_]*.py")):
            said = _plain((ast.get_docstring(ast.parse(path.read_bytes())) or "").split("\n\n")[0])
            rows.append((path.relative_to(root.parent).as_posix(), said))
        if rows:
            yield folder.relative_to(root.parent).as_posix(), rows
