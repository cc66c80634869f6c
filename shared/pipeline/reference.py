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
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import shared
from shared.claims.schema import Claims
from shared.data.cards import Card
from shared.data.readers import READERS
from shared.metrics.registry import FAMILIES, MEASURES
from shared.pipeline.config import Params, load_settings
from shared.pipeline.files import write_text
from shared.pipeline.search import Same, Tried
from shared.reports.exhibits import Exhibit
from shared.reports.page import fill_template
from shared.reports.paper import Paper
from shared.tasks.kinds import KINDS, load_measures, papers, part_of
from shared.tasks.settings import routes_of

PATH = Path("docs/REFERENCE.md")
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}",
          "multipleOf": "multiple of {}", "minItems": "at least {} long", "maxItems": "at most {} long",
          "pattern": "like `{}`"}  # fmt: skip
PARTS = ("attention", "data", "decoding", "layers", "metrics", "tasks", "training", "vision")
"""Folders of ``shared`` that a paper builds on."""
TYPES = {"string": "text", "boolean": "true or false", "integer": "integer", "number": "number", "null": "null"}


def write_reference() -> None:
    """Write docs/REFERENCE.md; run from the project's root."""
    write_text(PATH, reference())
    print(f"{PATH} is written.")


def reference() -> str:
    """The whole reference, as Markdown."""
    load_measures()
    roots: dict[str, list[Any]] = {"`params.yaml`": [Params], "`search.yaml`": [Tried, Same]}
    roots |= {"`data/<name>.yaml`": [Card], "`replications/<paper>/paper.yaml`": [Paper]}
    roots |= {f"Kind of task: {kind}": [part_of(kind, "settings").RUN] for kind in KINDS}
    for paper in papers():
        settings = load_settings(paper)
        routed = [[*each.values()] if isinstance(each, Mapping) else [each] for each in routes_of(settings).values()]
        roots[f"Model sections of {paper}"] = [settings.ModelConfig, *chain(*routed)]
    roots |= {"Claims": [Claims], "Readers": [reader.options for reader in READERS.values()]}
    names, document = models_json_schema([(model, "validation") for model in dict.fromkeys(chain(*roots.values()))])
    definitions = document["$defs"]
    written = {model: schema["$ref"].rpartition("/")[2] for (model, _), schema in names.items()}
    sections = {title: [written[each] for each in dict.fromkeys(models)] for title, models in roots.items()}
    classes = {name: each for each in _below(BaseModel) for name in _names(each)}
    return fill_template(
        "docs/reference.md.j2", sections=sections, heading=_heading,
        inner=sorted(definitions.keys() - written.values()),
        rows={name: list(_rows(definitions[name], classes.get(name))) for name in definitions},
        said={name: _plain(inspect.getdoc(classes.get(name))) for name in definitions},
        measures=MEASURES, families=FAMILIES, readers={name: written[each.options] for name, each in READERS.items()},
        figures=list(_figures()), parts=list(_parts()),
    )  # fmt: skip


def _below(model: Any) -> Iterator[Any]:
    """All subclasses."""
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


def _plain(docstring: str | None) -> str:
    """The first paragraph of a docstring on one line, without the markup of references."""
    text = " ".join((docstring or "").split("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`").replace("\u00a0", " ")


def _figures() -> Iterator[tuple[str, str, str, str]]:
    """Class, module, arguments and summary of what a paper may show: all that ``shared`` has and that can be made."""
    root = Path(shared.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if re.search(r"(?m)^class \w+\((Exhibit|Of\w+)\)", path.read_text(encoding="utf-8")):
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    for figure in sorted(_below(Exhibit), key=lambda each: (each.__module__, each.__name__)):
        made = not inspect.isabstract(figure) and not figure.__name__.startswith("_")
        if made and figure.__module__.startswith("shared."):
            fields = ", ".join(f"`{each.name}`" for each in dataclasses.fields(figure) if not each.kw_only)
            yield f"`{figure.__name__}`", f"`{figure.__module__}`", fields, _plain(inspect.getdoc(figure))


def _parts() -> Iterator[tuple[str, str, str]]:
    """Folder, path and summary of each module of ``shared`` that a paper builds on."""
    root = Path(shared.__file__).parents[1]
    paths = (path for name in PARTS for path in (root / "shared" / name).rglob("[!_]*.py"))
    for path in sorted(paths, key=lambda path: (path.parent, path)):
        said = _plain(ast.get_docstring(ast.parse(path.read_bytes())))
        yield path.parent.relative_to(root).as_posix(), path.relative_to(root).as_posix(), said
