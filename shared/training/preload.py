"""What the workers of the pool import, once for all of them: importing this module imports torch and Lightning.

Lightning imports torchmetrics, and torchmetrics imports the packages in ``OPTIONAL`` if they are installed, for
measures of images and sound and for plots that nothing here uses. That takes as long as torch itself. So they are
hidden from it, by the means Python has for that: ``None`` in ``sys.modules`` and no metadata.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OPTIONAL = ("torchvision", "scipy", "matplotlib")


@contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Make packages look as if they were not installed; those already imported stay as they are."""
    names = {name for name in packages if name not in sys.modules}
    distribution = importlib.metadata.distribution

    def visible(distribution_name: str) -> importlib.metadata.Distribution:
        if distribution_name in names:
            raise importlib.metadata.PackageNotFoundError(distribution_name)
        return distribution(distribution_name)

    importlib.metadata.distribution = visible
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        importlib.metadata.distribution = distribution
        for name in names:
            del sys.modules[name]


def preload() -> None:
    """Import all that training needs; none of its many objects is garbage, so none is looked for meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    with hidden(*OPTIONAL):
        importlib.import_module("shared.training.run")
    gc.freeze()  # processes that are forked share these objects as long as no collection touches them
    if collects:
        gc.enable()


preload()
