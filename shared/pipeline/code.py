"""Which of the project's code a paper's results depend on: found by following imports.

The check stage records a hash of this code, and all other stages depend on the record. A change of a comment, of a
docstring or of code that a paper does not use therefore re-runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.reports.styles import FILE
from shared.tasks.kinds import KINDS

FETCHING = ("shared/data/fetch.py",)
"""What fetches; its files are verified by hash, so its code concerns no later stage, although encoders import it."""
PREPARING = ("corpus.py", "preparation.py")
"""Modules of a kind that prepare a fetched data set for training; not every kind has ``preparation.py``."""
REPORTING = (
    "shared/claims/*", "shared/reports/*", "shared/tasks/*/report.py", "shared/tasks/*/figures.py",
    "replications/*/report.py",
)  # fmt: skip
NOT_TRAINED = (
    *REPORTING, "shared/decoding/*", "shared/metrics/*", "shared/tasks/*/evaluation.py", "shared/tasks/*/measures.py",
    "shared/tasks/*/attention_maps.py", "shared/tasks/*/priors.py", "shared/tasks/*/samples.py",
    "shared/tasks/*/training_operations.py", "shared/tasks/*_study.py",
    "shared/tasks/examples.py", "shared/pipeline/*",
)  # fmt: skip
"""Files that a model or its training imports but that do not affect the trained weights. Their own imports are not
followed, unless a kind's ``module.py`` uses them for validation, because validation selects the best weights."""
TRAINING = (
    "shared/tasks/*/task.py", "replications/*/aligners.py", "shared/tasks/replication.py",
)  # fmt: skip
"""What trains the networks of a kind, what finds the network of a variant and those of other papers, and the
statistical aligners that stand beside them."""
ALIGNING = ("shared/metrics/fast_align.py", "shared/metrics/word_aligner.py")
"""The aligners themselves: they train, although they lie among the measures."""
JUDGING = ("shared/pipeline/evidence.py", "shared/pipeline/plan.py", "shared/pipeline/search.py")
"""Modules of the pipeline that a report takes from: the kind of its data, the changes since its plan, and what of the
settings that were tried is used."""
STAGES = ("fetch", "prepare", "train", "evaluate", "report")


@dataclass(frozen=True)
class _File:
    digest: str
    imports: tuple[str, ...]


def code_of(kind: str, *papers: str) -> dict[str, dict[str, str]]:
    """Stage to source file to hash of its code; a file counts for every stage that uses it.

    Args:
        kind: of the papers' tasks.
        papers: the paper, and those whose models it borrows.

    Raises:
        ReplicationError: there is no such paper, or a file is not Python.
    """
    package = Path(*KINDS[kind].split("."))
    replications = [f"replications/{paper}/replication.py" for paper in papers]
    reports = [path for paper in papers[:1] for path in [f"replications/{paper}/report.py"] if Path(path).is_file()]
    everything = _closure([*replications, f"{package}/module.py", "shared/training/run.py"])
    shown = _closure([*reports, *JUDGING, f"{package}/report.py", "shared/reports/report.py"])
    models = [path for path in everything if fnmatch(path, "replications/*/model.py")]
    module = _closure([f"{package}/module.py", "shared/training/run.py"], lambda path: not _is(path, REPORTING))
    preparing = [f"{package}/{name}" for name in PREPARING if (package / name).is_file()]
    bound = _closure(replications, lambda path: path.endswith("/settings.py") and not path.startswith("shared/"))
    training = _closure(
        [path for path in everything if _is(path, TRAINING)] + models,
        lambda path: path in ALIGNING or not _is(path, NOT_TRAINED),
    )
    stages = {
        "fetch": _closure(FETCHING),
        "prepare": _closure(preparing),
        "train": bound | module | training,
        "evaluate": {path for path in everything if not _is(path, REPORTING)},
        "report": everything | shown,
    }
    found = {stage: {path: _read(path).digest for path in sorted(files)} for stage, files in stages.items()}
    found["report"] |= {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in _shown_besides(papers[0])}
    return found


def _shown_besides(paper: str) -> list[Path]:
    """What pages are made of that is no Python: their templates, names and colours of models."""
    templates = sorted(Path("shared/reports/templates").glob("*"))
    return [path for path in (*templates, Path("replications") / paper / "names.yaml", FILE) if path.is_file()]


def _closure(roots: Iterable[str], wanted: Callable[[str], bool] = lambda path: True) -> set[str]:
    """``roots``, and the ``wanted`` files that they import, directly or through other wanted files."""
    files: set[str] = set()
    todo = list(roots)
    while todo:
        path = todo.pop()
        if path not in files:
            files.add(path)
            todo.extend(file for file in _read(path).imports if wanted(file) and file not in FETCHING)
    return files


def _is(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _read(path: str) -> _File:
    try:
        state = Path(path).stat()
    except OSError as error:
        raise ReplicationError(f"{path} cannot be read as Python ({error.strerror}).") from None
    return _parsed(path, state.st_mtime_ns, state.st_size)


@cache
def _parsed(path: str, modified: int, size: int) -> _File:
    """Parse a file; ``modified`` and ``size`` are part of the cache key, so each version is parsed once."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read as Python ({error}).") from None
    imports = tuple(sorted({file for module in _modules(tree) for file in _files(module)}))
    return _File(_digest(tree), imports)


def _modules(tree: ast.Module) -> Iterator[str]:
    """Names of all modules that a file imports; ``from a import b`` yields both a and a.b, since b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _files(module: str) -> tuple[str, ...]:
    """Files of this project that importing a module executes: those of the module and of its parent packages."""
    parts = module.split(".")
    if parts[0] not in ("shared", "replications"):
        return ()
    folders = (Path(*parts[: n + 1]) for n in range(len(parts)))
    files = (file for path in folders for file in (path.with_suffix(".py"), path / "__init__.py"))
    return tuple(file.as_posix() for file in files if file.is_file())


def _digest(tree: ast.Module) -> str:
    """Hash of the code of a file, without comments, layout and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return hashlib.sha256(_written(tree).encode()).hexdigest()


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
