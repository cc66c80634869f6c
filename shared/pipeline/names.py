"""Refuses names of variants and measures that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch

from shared.config import near
from shared.errors import ReplicationError
from shared.metrics.registry import MEASURES, is_known, split_of
from shared.pipeline.config import ScaleFile


def check_variants(settings: ScaleFile, variants: Iterable[str], where: str) -> None:
    """Refuse a variant that no scale has; the ensemble of one is ``<variant>-ensemble``."""
    for variant in variants:
        if variant.removesuffix("-ensemble") not in settings.known():
            raise ReplicationError(
                f"{where}: {settings.variants_path} has no variant '{variant}'{near(variant, settings.known())}."
            )


def check_measures(measures: Iterable[str], measured: Iterable[str], where: str) -> None:
    """Refuse a measure that neither evaluation nor a study of the paper has; a test split may stand before its name."""
    for measure in measures:
        if not is_known(split_of(measure)[1]) and not any(fnmatch(measure, pattern) for pattern in measured):
            raise ReplicationError(f"{where}: there is no measure '{measure}'{near(measure, MEASURES)}.")
