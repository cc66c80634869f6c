"""What the workers of the pool import, once for all of them: importing this module imports torch and Lightning.

Lightning imports torchmetrics. If the packages in ``OPTIONAL`` are installed, torchmetrics imports them for measures of
images and sound and for plots, none of which this project uses. These imports take as long as that of torch. This
module therefore hides the packages: it sets them to ``None`` in ``sys.modules`` and hides their metadata.
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
    """Import everything that training needs; garbage collection is off meanwhile, since imported objects are kept."""
    collects = gc.isenabled()
    gc.disable()
    with hidden(*OPTIONAL):
        importlib.import_module("shared.training.run")
    gc.freeze()  # processes that are forked share these objects as long as no collection touches them
    if collects:
        gc.enable()


preload()
