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
from unittest.mock import patch

OPTIONAL = ("torchvision", "scipy", "matplotlib")


def preload() -> None:
    """Import everything that training needs; garbage collection is off meanwhile, since imported objects are kept."""
    collects = gc.isenabled()
    gc.disable()
    hidden = [name for name in OPTIONAL if name not in sys.modules]
    distribution = importlib.metadata.distribution

    def visible(name: str) -> importlib.metadata.Distribution:
        if name in hidden:
            raise importlib.metadata.PackageNotFoundError(name)
        return distribution(name)

    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        with patch("importlib.metadata.distribution", visible):
            importlib.import_module("shared.training.run")
    finally:
        for name in hidden:
            del sys.modules[name]
    gc.freeze()  # processes that are forked share these objects as long as no collection touches them
    if collects:
        gc.enable()


preload()
