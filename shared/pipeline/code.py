"""Which of the project's code a paper's results depend on: found by following its imports.

A stage of its own writes it down, and training and evaluation depend on what it writes. So code that a paper does not
use, a comment or a docstring re-runs nothing that takes long.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError

TRAINING = (
    "attention", "layers", "training", "data/batching.py", "data/captioned.py", "data/characters.py",
    "data/classified.py", "data/copying.py", "data/generated_copy.py", "data/language.py", "data/parallel.py",
    "data/pixels.py", "data/proteins.py", "data/sequence_corpora.py", "data/sequences.py", "data/storage.py",
    "data/streams.py", "metrics/fast_align.py", "metrics/word_aligner.py", "pipeline/language.py",
    "pipeline/networks.py", "pipeline/sequences.py", "vision/features.py", "vision/places.py",
)  # fmt: skip
EVALUATION = (
    "decoding", "metrics", "claims/language_measures.py", "claims/measures.py", "claims/quantities.py",
    "claims/sequence_measures.py", "data/photos.py", "data/scene_captions.py", "data/scene_truth.py",
    "data/scenes.py", "pipeline/aligners.py", "pipeline/attention_maps.py", "pipeline/captioning.py",
    "pipeline/captioning_evaluation.py", "pipeline/classification.py", "pipeline/classification_evaluation.py",
    "pipeline/examples.py", "pipeline/language_evaluation.py", "pipeline/priors.py", "pipeline/reuse_study.py",
    "pipeline/samples.py", "pipeline/scaling_study.py", "pipeline/sequence_evaluation.py",
    "pipeline/sequence_run.py", "pipeline/studies.py", "pipeline/training_operations.py", "pipeline/translation.py",
    "pipeline/translation_evaluation.py",
)  # fmt: skip
"""Parts of ``shared`` that decide what training and what evaluation compute."""


@dataclass(frozen=True)
class _File:
    digest: str
    imports: tuple[str, ...]


def training_code(*papers: str) -> dict[str, str]:
    """Source file to hash of its code: the models of the papers and all they use for training.

    Of a paper's own files these are ``replication.py``, ``model.py`` and what that imports.
    """
    files = _imported(papers)
    return {path: files[path].digest for path in _training(files, papers)}


def evaluation_code(*papers: str) -> dict[str, str]:
    """Source file to hash of its code: all that evaluation uses beyond what training depends on."""
    files = _imported(papers)
    found = {path for path in files if _is_part(path, EVALUATION) or path.startswith("replications/")}
    return {path: files[path].digest for path in sorted(found - {*_training(files, papers)})}


def imported(*papers: str) -> dict[str, str]:
    """Every file of the project that ``replications/<paper>/replication.py`` imports, directly or not, with its hash.

    Raises:
        ReplicationError: there is no such paper, or a file is not Python.
    """
    return {path: file.digest for path, file in sorted(_imported(papers).items())}


def _imported(papers: Iterable[str]) -> dict[str, _File]:
    found: dict[str, _File] = {}
    todo = [f"replications/{paper}/replication.py" for paper in papers]
    while todo:
        path = todo.pop()
        if path not in found:
            found[path] = _read(Path(path))
            todo.extend(found[path].imports)
    return found


def _read(path: Path) -> _File:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read as Python ({error}).") from None
    imports = tuple(file.as_posix() for module in _modules(tree) for file in _files(module))
    return _File(_digest(tree), imports)


def _training(files: Mapping[str, _File], papers: Iterable[str]) -> list[str]:
    """Those of the files that decide what training computes."""
    found = {path for path in files if _is_part(path, TRAINING)}
    # What the validation of captions does, by which the best weights are chosen.
    validates = {use for path in found if path.startswith("shared/training/") for use in files[path].imports}
    found |= {path for path in validates if _is_part(path, ("decoding", "metrics"))}
    todo = [f"replications/{paper}/model.py" for paper in papers]
    while todo:
        path = todo.pop()
        if path in files and path not in found and path.startswith("replications/"):
            found.add(path)
            todo.extend(files[path].imports)
    return sorted(found | {f"replications/{paper}/replication.py" for paper in papers})


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
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _is_part(path: str, parts: tuple[str, ...]) -> bool:
    inside = Path(path).parts[1:]
    return path.startswith("shared/") and any(Path(part).parts == inside[: len(Path(part).parts)] for part in parts)
