"""Every field of every shipped YAML, made wrong in every way: a valid change is accepted, and all others are refused.

A refusal is one sentence with the file and the key. ``REPLICATIONS_ALL_MUTATIONS=1`` tries all mutations, which takes
half an hour; without it a sample is tried, evenly from all kinds of file and mistake.
"""

import copy
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from shared import config
from shared.errors import ReplicationError
from shared.pipeline import check
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.search import Search
from tests.pipeline.scratch import environment

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


ALL = bool(os.environ.get("REPLICATIONS_ALL_MUTATIONS"))
EACH, SEED = 12, 20  # mutations of each kind of file and mistake in the sample, and what draws it
NUMBERS = r"effect|paper|value|than|bins|at_most|at_least|relevant|tolerance|where"
CELLS = r"tables\.\*\.rows\.\*|hyperparameters\.\*\.value"
TEXTS = (
    r"^(title|licence|citation)$|^(traps|languages|splits)\.|unverified$|^reader\.options\.|^sources\.\*\.downloads"
    r"|^sources\.\*\.parameters"
)
VALID = {
    ("paper.yaml", "wrong type"): CELLS, ("paper.yaml", "empty text"): f"{CELLS}|note$",
    ("paper.yaml", "negative"): CELLS, ("paper.yaml", "huge"): CELLS,
    ("claims.yaml", "negative"): NUMBERS, ("claims.yaml", "huge"): NUMBERS,
    ("claims.yaml", "wrong type"): r"where\.|over\.bins$", ("claims.yaml", "empty text"): r"where\.",
    ("claims.yaml", UNKNOWN): r"where$",
    ("data card", "empty text"): TEXTS, ("data card", "list for one value"): r"options\..*file$",
    ("data card", "huge"): r"bytes$|shape\.\*$|seed$|thresholds\.\*$",
    ("data card", "negative"): r"(thresholds|parameters\.places)\.\*$",
    ("data card", "wrong type"): r"options\.labels\.-$",
    ("search.yaml", "huge"): r"values\.\*$",
}  # fmt: skip
"""Where such a mutation may be valid: a number of a paper, a text that only people read, a field of the examples."""
NO_NAME = r"training\.optimizer(\.|$)"
"""Settings that cannot be told to be wrong in a variant that no scale builds: they do not say whose they are."""
NEVER_ZERO = {
    "updates", "validate_every", "learning_rate", "layers", "heads", "width", "hidden_size", "embedding_size",
    "d_model", "beam", "batch", "sentences", "tokens", "pool", "size", "needs_bytes", "year", "per_bucket", "workers",
}  # fmt: skip
NEVER_GONE = {
    "dataset", "papers", "tasks", "optimizer", "id", "sources", "title", "licence", "statement", "metric", "kind",
    "authors", "groups", "seeds",
}  # fmt: skip


@pytest.fixture(scope="module")
def shipped():
    return Shipped()


def chosen(shipped: Shipped) -> list[Mutation]:
    """All mutations, or the same number of each kind of file and mistake."""
    groups = defaultdict(list)
    for mutation in shipped.mutations():
        groups[mutation.kind.name, mutation.change].append(mutation)
    rng = random.Random(SEED)
    return [each for group in groups.values() for each in (group if ALL else rng.sample(group, min(EACH, len(group))))]


def outcome(shipped: Shipped, mutation: Mutation, tree: Path, monkeypatch) -> str | None:
    """The sentence that refuses it; None if it is accepted."""
    content = {} if mutation.change == DOUBLED else {"content": shipped.changed(mutation)}
    path = tree / mutation.file
    if mutation.change == DOUBLED:
        text = path.read_text(encoding="utf-8")
        path.write_text(doubled(text, mutation.keys), encoding="utf-8")
    try:
        with shipped.reading(monkeypatch, mutation.file, **content):
            mutation.kind.check(mutation.file)
    except ReplicationError as error:
        return str(error)
    finally:
        if mutation.change == DOUBLED:
            path.write_text(text, encoding="utf-8")
    return None


def faults(mutation: Mutation, said: str | None) -> list[str]:
    """What is wrong with an outcome."""
    last = [str(key) for key in mutation.keys if isinstance(key, str)][-1:]
    if said is None:
        return [] if is_valid(mutation, "".join(last)) else ["it is accepted"]
    wrong = ["it is not one sentence"] if "\n" in said or not said.endswith(".") else []
    files = [str(mutation.file)]
    if mutation.kind.name == "variants.yaml":  # what one entry lacks, or what does not go together, shows in a scale
        files.append(f"{mutation.file.parent}/")
    if mutation.change == GONE and mutation.file.parts[0] == "replications":  # what is missing shows where it is named
        files.append(f"replications/{mutation.file.parts[1]}/")
    if not any(file in said for file in files):
        wrong.append("it does not name the file")
    keys = [key for key in mutation.keys if isinstance(key, str)]
    if mutation.change == UNKNOWN:
        keys.append("qwertz")
    if mutation.change == GONE:
        named = re.findall(r"[\w.-]{3,}", str(mutation.old))
        keys += [str(mutation.old), *named, *(name.removesuffix(".gz") for name in named)]
    if keys and not any(key in said for key in keys):
        wrong.append("it does not name the key")
    return wrong


def is_valid(mutation: Mutation, last: str) -> bool:
    """Whether a changed file is still a valid one."""
    if mutation.change == GONE:
        of_task = last in ("seeds", "optimizer") and "variants" in mutation.keys  # its task has them, too
        words = last == "metric" and "columns" in mutation.keys  # a column of words has none
        return isinstance(mutation.keys[-1], int) or last not in NEVER_GONE or "at" in mutation.keys or of_task or words
    if mutation.kind.name == "variants.yaml" and re.search(NO_NAME, mutation.place):
        return True
    if mutation.change == "zero":
        return last not in NEVER_ZERO or bool(re.search(CELLS, mutation.place))
    if mutation.change == "huge" and mutation.kind.name in ("variants.yaml", "<scale>/params.yaml"):
        return isinstance(mutation.new, float)
    place = VALID.get((mutation.kind.name, mutation.change))
    return place is not None and re.search(place, mutation.place) is not None


def test_every_mistake_is_refused_in_one_sentence_with_file_and_key(shipped, tmp_path, monkeypatch, root):
    read_beside = ("replications/*/*/dvc.yaml", "replications/*/*.py", "shared/attention/*.py", "shared/*/*/*.yaml")
    for path in (*map(root.joinpath, shipped.contents), *(file for name in read_beside for file in root.glob(name))):
        (tmp_path / path.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(root))
    monkeypatch.chdir(tmp_path)
    tried, wrong = chosen(shipped), []
    for mutation in tried:
        said = outcome(shipped, mutation, tmp_path, monkeypatch)
        what = f"{mutation.file}: {mutation.place}: {mutation.change}"
        wrong += [f"{what}: {each}: {said}" for each in faults(mutation, said)]
    assert len(tried) > 600
    assert not wrong, "\n".join(wrong)


MISTAKES = {
    "params.yaml": ("scale: ", "scale: [quick]  # ", "check bahdanau"),
    "replications/bahdanau/variants.yaml": ("kind: translation", "kind: [translation]", "check bahdanau"),
    "replications/bahdanau/smoke/params.yaml": ("updates: 8", "updates: -8", "check bahdanau --scale smoke"),
    "replications/bahdanau/quick/search.yaml": ("seeds: [101", "seeds: [-101", "check bahdanau"),
    "replications/bahdanau/claims.yaml": ("kind: greater", "kind: grater", "check bahdanau"),
    "replications/bahdanau/paper.yaml": ("year: 2015", "year: MMXV", "check bahdanau"),
    "data/generated_translation.yaml": ("licence:", "license:", "check bahdanau"),
}


def test_the_command_refuses_each_kind_of_file_without_torch(tmp_path, root):
    """One process tries all, because starting one takes longer than what it tests."""
    for name in ("shared", "replications"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data").mkdir()
    for path in (root / "params.yaml", *root.glob("data/*.yaml")):
        shutil.copy(path, tmp_path / path.relative_to(root))
    program = """
import json, sys
from pathlib import Path
from shared.pipeline.__main__ import main
for name, (old, new, command) in json.loads(sys.argv[1]).items():
    text = Path(name).read_text(encoding="utf-8")
    assert old in text, name
    Path(name).write_text(text.replace(old, new, 1), encoding="utf-8")
    print(name, main(command.split()), "torch" in sys.modules)
    Path(name).write_text(text, encoding="utf-8")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(MISTAKES)], cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{name} 2 False" for name in MISTAKES]
    for name, line in zip(MISTAKES, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"error: {name}"), line


@pytest.mark.parametrize(("place", "make", "command", "wanted"), [
    ("params.yaml", Path.mkdir, "check", "Is a directory), where a file"),
    ("params.yaml", lambda to: to.symlink_to(to), "check", "Too many levels of symbolic links), where no such link"),
    ("runs", Path.touch, "fetch bahdanau.corpus --scale smoke", "Not a directory), where a folder"),
    ("data", Path.touch, f"data new mine --from {__file__}", "Not a directory), where a folder"),
])  # fmt: skip
def test_what_is_in_the_way_of_a_file_or_a_folder_is_named(tmp_path, monkeypatch, capsys, place, make, command, wanted):
    monkeypatch.chdir(tmp_path)
    make(Path(place))
    assert main(command.split()) == 2
    assert capsys.readouterr().err.startswith(f"error: {place} is in the way ({wanted} should be; rename or remove it")
