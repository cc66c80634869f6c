"""Every shipped YAML, and every way in which a reader could get one field of it wrong."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from shared import config
from shared.pipeline import check
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.search import Search

Key = str | int
READING = ("shared.pipeline.config", "shared.claims.schema", "shared.data.cards", "shared.reports.paper",
           "shared.pipeline.search", "shared.pipeline.check", "shared.reports.naming")  # fmt: skip
"""Modules that read YAML."""
MISSING: Any = object()
GONE, DOUBLED, UNKNOWN = "missing", "doubled key", "unknown key"
HUGE = 10**30


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the kind.
        files: all of that kind, from the project's root.
        check: what the command ``check`` does with one, by its path.
    """

    name: str
    files: list[Path]
    check: Callable[[Path], object]


class Mutation(NamedTuple):
    """One change of one field.

    Attributes:
        kind: of the file.
        file: which is changed.
        keys: that lead to the field; of an unknown key to the mapping that it is added to.
        change: its kind.
        old, new: values of the field.
    """

    kind: Kind
    file: Path
    keys: tuple[Key, ...]
    change: str
    old: Any
    new: Any

    @property
    def place(self) -> str:
        """The keys, without the names and numbers that differ between files of a kind."""
        return ".".join("*" if isinstance(key, int) else key for key in self.keys)


def _scale(path: Path) -> ScaleFile:
    """The scale that a file is of."""
    return ScaleFile(path.parts[1], path.parts[2])


def _scales(path: Path) -> list[ScaleFile]:
    """The scales of the paper that a file is of."""
    return [ScaleFile(path.parts[1], scale) for scale in scales_of(path.parts[1])]


def _check_shown(path: Path, scales: list[ScaleFile]) -> None:
    tasks = {task for each in _scales(path) for task in each.tasks}
    for each in scales:
        check.check_shown(each, tasks)


def _check_scale(path: Path) -> None:
    check.check_settings(_scale(path))
    _check_shown(path, [_scale(path)])


def _check_variants(path: Path) -> None:
    scales = _scales(path)
    check.check_identities(scales[0])
    for each in scales:
        check.check_settings(each)
    _check_shown(path, scales[:1])


def kinds() -> list[Kind]:
    """All kinds of YAML that are written by hand."""
    folder = Path("replications")
    return [
        Kind("params.yaml", [Path("params.yaml")], lambda path: check.check_listed(None)),
        Kind("variants.yaml", sorted(folder.glob("*/variants.yaml")), _check_variants),
        Kind("<scale>/params.yaml", sorted(folder.glob("*/*/params.yaml")), _check_scale),
        Kind("search.yaml", sorted(folder.glob("*/*/search.yaml")), lambda path: Search(_scale(path))),
        Kind("claims.yaml", sorted(folder.glob("*/claims.yaml")), lambda path: _check_shown(path, _scales(path))),
        Kind("paper.yaml", sorted(folder.glob("*/paper.yaml")),
             lambda path: check.check_paper(ScaleFile(path.parts[1], "quick"))),
        Kind("names.yaml", sorted(folder.glob("*/names.yaml")),
             lambda path: list(map(check.check_names, _scales(path)))),
        Kind("data card", sorted(Path("data").glob("*.yaml")), lambda path: check.check_card(path.stem)),
    ]  # fmt: skip


class Shipped:
    """All shipped files, read once; a test may change one in memory."""

    def __init__(self) -> None:
        self.kinds = kinds()
        self.contents = {path: config.load_yaml(path) for kind in self.kinds for path in kind.files}

    @contextmanager
    def reading(self, monkeypatch: Any, changed: Path | None = None, content: Any = MISSING) -> Iterator[None]:
        """Within it, the project's files are these; a changed one has ``content``, or is read from the disk."""

        def load(path: Path) -> Any:
            if path == changed:
                return config.load_yaml(path) if content is MISSING else copy.deepcopy(content)
            return copy.deepcopy(self.contents[path])

        with monkeypatch.context() as patch:
            for module in READING:
                patch.setattr(f"{module}.load_yaml", load)
            yield

    def mutations(self) -> Iterator[Mutation]:
        """Every mutation of every field of every file."""
        for kind in self.kinds:
            for path in kind.files:
                for keys, value in _fields(self.contents[path]):
                    if keys and isinstance(keys[-1], str):
                        yield Mutation(kind, path, keys, DOUBLED, value, value)
                    if keys:
                        yield Mutation(kind, path, keys, GONE, value, MISSING)
                    if isinstance(value, dict):
                        yield Mutation(kind, path, keys, UNKNOWN, value, value | {"qwertz": 1})
                    for change, new in _changes(value):
                        yield Mutation(kind, path, keys, change, value, new)

    def changed(self, mutation: Mutation) -> Any:
        """The content of the mutation's file with the field changed."""
        content = copy.deepcopy(self.contents[mutation.file])
        if not mutation.keys:
            return mutation.new
        place = content
        for key in mutation.keys[:-1]:
            place = place[key]
        if mutation.new is MISSING:
            del place[mutation.keys[-1]]
        else:
            place[mutation.keys[-1]] = mutation.new
        return content


def _fields(value: Any, keys: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], Any]]:
    yield keys, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _fields(part, (*keys, key))


def _changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Wrong values for a field, each after the kind of its mistake."""
    if isinstance(value, dict | list):
        yield "wrong type", 7
        return
    yield "empty text", ""
    yield "list for one value", [value]
    yield "not a number", math.nan
    yield "infinite", math.inf
    if isinstance(value, bool) or value is None:
        yield "wrong type", "perhaps"
    elif isinstance(value, int | float):
        yield "wrong type", "seven"
        yield "negative", -abs(value) or -1
        yield "zero", 0
        yield "huge", HUGE if isinstance(value, int) else 1e30
    else:
        yield "wrong type", 7


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values of a mapping, its own first, then those that `<<` takes from others."""
    yield from (pair for pair in node.value if pair[0].value != "<<")
    for key, other in node.value:
        if key.value == "<<":
            yield from _pairs(other)


def doubled(text: str, keys: tuple[Key, ...]) -> str:
    """The text of a YAML file in which the last of ``keys`` stands twice."""
    node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for key in keys[:-1]:
        node = node.value[key] if isinstance(key, int) else next(v for k, v in _pairs(node) if k.value == key)
    entry = next(k for k, _ in _pairs(node) if k.value == keys[-1])
    start = entry.start_mark
    written = text[start.index : entry.end_mark.index]
    again = f"{written}: 0, " if node.flow_style else f"{written}: 0\n{' ' * start.column}"
    return text[: start.index] + again + text[start.index :]
