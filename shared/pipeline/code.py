"""Which of the project's code a paper's results depend on: found by following imports.

The check stage records a hash of this code, and all other stages depend on the record. A change of a comment, of a
docstring or of code that a paper does not use therefore re-runs nothing. One rule decides what code belongs to a stage:

* Training depends on all that the paper's model, the kind's module and the training loop import, on how the kind's
  corpus hands out batches, and on the files that bind a paper to the pipeline.
* Evaluation depends on all that a replication imports, decoding and measures too, but not on claims and reports.
* A report depends on everything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from hashlib import sha256
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.pipeline.files import write_json
from shared.records import read_if_whole
from shared.reports.naming import FILE

TOPS = ("shared", "replications", "benchmarks")
"""The project's packages."""
STAGES = ("fetch", "prepare", "train", "evaluate", "report")
FETCHING = "shared/data/fetch.py"
"""What fetches; its files are verified by hash, so its code concerns no later stage, although encoders import it."""
PARTS = ("corpus.py", "module.py", "evaluation.py", "measures.py")
"""Files of a kind that prepare data, train and judge."""
TRAINING = ("model.py", "module.py", "fast_align.py")
"""Files that training runs, with all that they import: validation selects the best weights, so that what it decodes and
scores with counts. The statistical aligner is trained too."""
HANDING = ("corpus.py", "aligners.py")
"""Files that open data and hand out batches; training runs all that they import but for :data:`JUDGING`."""
BINDING = ("replication.py", "settings.py")
"""Files that say which model a variant has; of what else they import, training runs nothing."""
JUDGING = ("shared/decoding/*", "shared/metrics/*", "shared/tasks/*/evaluation.py", "shared/tasks/*/measures.py")
"""What judges a trained model."""
REPORTING = ("shared/claims/*", "shared/reports/*", "shared/pipeline/*", "*/report.py")
"""What decides claims and writes pages."""
REPORT = ("shared/reports/report.py", "shared/pipeline/report.py")
"""Where a report begins, beside the files of its paper and its kind."""
CACHE = Path("runs/.code.json")
"""What was found in each file, by the time of its last change and its size: parsing takes the longest."""


def code_of(kind: str, *papers: str, sources: Sources | None = None) -> dict[str, dict[str, str]]:
    """Stage to source file to hash of its code; a file counts for every stage that uses it.

    Args:
        kind: of the papers' tasks.
        papers: the paper, and those whose models it borrows.
        sources: what is known of the project's files; read anew unless given.

    Raises:
        ReplicationError: there is no such paper, or a file is not Python.
    """
    package, homes = f"shared/tasks/{kind}", [f"replications/{paper}" for paper in papers]
    sources = sources or Sources()
    own = [f"{home}/replication.py" for home in homes] + [f"{package}/{name}" for name in PARTS]
    everything = sources.closure([*own, "shared/training/run.py"])
    training, handing, binding = (
        [path for path in everything if Path(path).name in names] for names in (TRAINING, HANDING, BINDING)
    )
    shown = [f"{homes[0]}/report.py", f"{package}/report.py", *REPORT]
    stages = {
        "fetch": sources.closure([FETCHING]),
        "prepare": sources.closure([f"{package}/corpus.py"]),
        "train": sources.closure(["shared/training/run.py", *training])
        | sources.closure(handing, skipped=(*JUDGING, *REPORTING))
        | {*binding},
        "evaluate": {path for path in everything if not _matches(path, REPORTING)},
        "report": everything | sources.closure(path for path in shown if Path(path).is_file()),
    }
    code = {stage: {path: sources.found(path)["digest"] for path in sorted(paths)} for stage, paths in stages.items()}
    # What pages are made of that is not Python.
    pages = [*sorted(Path("shared/reports/templates").glob("*")), Path(homes[0]) / "names.yaml", FILE]
    code["report"] |= {str(path): sha256(path.read_bytes()).hexdigest() for path in pages if path.is_file()}
    sources.keep()
    return code


class Sources:
    """The project's files of code, each parsed once, and again only when it has changed."""

    def __init__(self) -> None:
        paths = [path for top in TOPS for path in Path(top).rglob("*.py")]
        self._files = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): str(path) for path in paths}
        kept = read_if_whole(CACHE, {"version": list, "files": dict})
        self._version = _state(Path(__file__))
        self._known = kept["files"] if kept and kept["version"] == self._version else {}
        self._current: dict[str, dict[str, Any]] = {}
        self._imported: dict[str, set[Any]] = {}

    def closure(self, roots: Iterable[str], skipped: Iterable[str] = ()) -> set[str]:
        """``roots``, and the files that they import, directly or through others, but for the patterns ``skipped``."""
        files: set[str] = set()
        todo = list(roots)
        while todo:
            if (path := todo.pop()) not in files:
                files.add(path)
                if path not in self._imported:  # importing a module executes its parent packages, too
                    modules = (accumulate(name.split("."), "{}.{}".format) for name in self.found(path)["modules"])
                    self._imported[path] = {*map(self._files.get, chain.from_iterable(modules))} - {None, FETCHING}
                todo += [file for file in self._imported[path] - files if not _matches(file, skipped)]
        return files

    def found(self, path: str) -> dict[str, Any]:
        """The ``digest`` of a file's code, and the ``modules`` that it imports."""
        if path not in self._current:
            try:
                state, found = _state(Path(path)), self._known.get(path)
                if not found or found["state"] != state:
                    tree = ast.parse(Path(path).read_bytes())
                    modules = sorted({name for name in _modules(tree) if name.split(".")[0] in TOPS})
                    found = {"state": state, "digest": _digest(tree), "modules": modules}
            except (OSError, SyntaxError, ValueError) as error:
                raise ReplicationError(f"{path} cannot be read as Python ({error}).") from None
            self._current[path] = found
        return self._current[path]

    def keep(self) -> None:
        """Write down what was found, if it is anything new."""
        if any(self._known.get(path) is not found for path, found in self._current.items()):
            with suppress(OSError):  # nobody needs it
                write_json(CACHE, {"version": self._version, "files": self._known | self._current})


def _state(path: Path) -> list[int]:
    """What changes when a file is written."""
    state = path.stat()
    return [state.st_mtime_ns, state.st_size]


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _modules(node: ast.AST) -> Iterator[str]:
    """All modules that a file imports when it runs; of ``from a import b`` both a and a.b, which may be a module."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{name.name}" for name in node.names)
    for part in ast.iter_child_nodes(node):
        yield from _modules(part)


def _digest(tree: ast.Module) -> str:
    """Hash of the code of a file, without comments, layout and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return sha256(_written(tree).encode()).hexdigest()


def _written(part: Any) -> str:
    """``ast.dump`` without empty fields, because new versions of Python add fields that are empty for older code."""
    if isinstance(part, list):
        return f"[{', '.join(map(_written, part))}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = (f"{name}={_written(value)}" for name, value in ast.iter_fields(part) if value not in (None, []))
    return f"{type(part).__name__}({', '.join(fields)})"


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
