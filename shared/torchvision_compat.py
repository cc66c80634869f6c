"""Lets torchvision be imported beside a CPU build of torch.

The torchvision wheel of the package registry is built against CUDA. Beside a CPU torch its compiled library cannot
be loaded, torchvision swallows that, and then fails because the schema of ``torchvision::nms`` was never declared;
``lightning`` and ``torchmetrics`` fail with it, since they import torchvision when it is installed. Declaring the two
schemas that torchvision refers to at import time is enough for everything except the compiled operators themselves
(``nms``, ``read_image`` …), which then say clearly that they are not available.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_declared: list[Any] = []  # a Library that is collected takes its schemas with it


def declare_missing_operators(package: Path) -> bool:
    """Load torchvision's compiled library from ``package``, or declare the schemas it would have brought.

    Returns:
        Whether schemas had to be declared, that is, whether the library does not fit this torch.
    """
    import torch

    for library in sorted(package.glob("_C*.so")):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            continue
        return False
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        fragment.define(schema)
    _declared.append(fragment)
    return True


class _BeforeTorchvision(importlib.abc.MetaPathFinder):
    """Acts once, at the first ``import torchvision``, so that programs without it never pay for importing torch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torchvision":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            declare_missing_operators(Path(spec.origin).parent)
        return spec


def install() -> None:
    """Arrange for torchvision to import on any build of torch; calling it again does nothing."""
    if "torchvision" not in sys.modules and not any(isinstance(f, _BeforeTorchvision) for f in sys.meta_path):
        sys.meta_path.insert(0, _BeforeTorchvision())
