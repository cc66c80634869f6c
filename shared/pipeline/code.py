"""Which of the project's code a paper's results depend on: found by following its imports.

A stage of its own writes it down, and training and evaluation depend on what it writes. So code that a paper does not
use, a comment or a docstring re-runs nothing that takes long.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError

TRAINING = (
    "attention", "layers", "training", "data/batching.py", "data/parallel.py", "metrics/word_aligner.py",
    "metrics/fast_align.py",
)  # fmt: skip
EVALUATION = ("decoding", "metrics", "pipeline/translation_evaluation.py", "pipeline/aligners.py")
"""Parts of ``shared`` that decide what training and what evaluation compute."""


def training_code(paper: str) -> dict[str, str]:
    """Source file to hash of its code: the paper's model and all it uses for training."""
    return {path: digest for path, digest in imported(paper).items() if _trains(path, paper)}


def evaluation_code(paper: str) -> dict[str, str]:
    """Source file to hash of its code: all that evaluation uses beyond what training depends on."""
    return {
        path: digest
        for path, digest in imported(paper).items()
        if _is_part(path, EVALUATION) and not _trains(path, paper)
    }


def imported(paper: str) -> dict[str, str]:
    """Every file of the project that ``replications/<paper>/replication.py`` imports, directly or not, with its hash.

    Raises:
        ReplicationError: there is no such paper, or a file is not Python.
    """
    found: dict[str, str] = {}
    todo = [Path("replications") / paper / "replication.py"]
    while todo:
        path = todo.pop()
        if path.as_posix() in found:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError) as error:
            raise ReplicationError(f"{path} cannot be read as Python ({error}).") from None
        found[path.as_posix()] = _digest(tree)
        todo.extend(file for module in _modules(tree) for file in _files(module))
    return dict(sorted(found.items()))


def _modules(tree: ast.Module) -> Iterator[str]:
    """Names of the modules that are imported anywhere in a file; of ``from a import b`` both a and a.b may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _files(module: str) -> Iterator[Path]:
    """What an import of a module runs of this project: the module, and the packages that it is in."""
    parts = module.split(".")
    if parts[0] in ("shared", "replications"):
        for path in (Path(*parts[: n + 1]) for n in range(len(parts))):
            yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def _digest(tree: ast.Module) -> str:
    """Of what a file does: without comments, layout and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return hashlib.sha256(_written(tree).encode()).hexdigest()


def _written(part: Any) -> str:
    """As ``ast.dump`` without what is empty: every version of Python adds fields that older code leaves empty."""
    if isinstance(part, list):
        return f"[{', '.join(map(_written, part))}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = (f"{name}={_written(value)}" for name, value in ast.iter_fields(part) if value not in (None, []))
    return f"{type(part).__name__}({', '.join(fields)})"


def _is_text(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
    )


def _trains(path: str, paper: str) -> bool:
    own = [f"replications/{paper}/{name}.py" for name in ("model", "replication")]
    return path in own or _is_part(path, TRAINING)


def _is_part(path: str, parts: tuple[str, ...]) -> bool:
    inside = Path(path).parts[1:]
    return path.startswith("shared/") and any(Path(part).parts == inside[: len(Path(part).parts)] for part in parts)
