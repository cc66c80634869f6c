"""What a paper comes with: its facts, and all variants that can be built, at all scales."""

from collections.abc import Iterable
from contextlib import chdir
from functools import cache
from pathlib import Path

import pytest
from torch import nn

from shared.claims.rules import SCALES
from shared.pipeline.config import ScaleFile
from shared.reports.paper import Paper

ROOT = Path(__file__).resolve().parents[2]
REPLICATIONS = ROOT / "replications"


def shipped(paper: str, *without: str, scales: Iterable[str] = SCALES) -> pytest.MarkDecorator:
    """For a test with the arguments ``scale`` and ``variant``: every variant that can be built, except some.

    A variant without settings at a scale is no case of the test, so that it passes none.
    """
    pairs = [
        (scale, variant)
        for scale in scales
        for variant in scale_file_of(paper, scale).built_variants
        if variant not in without
    ]
    return pytest.mark.parametrize(("scale", "variant"), pairs)


def facts(paper: str) -> Paper:
    return Paper.load(REPLICATIONS / paper / "paper.yaml")


def columns_of(paper: str, table: str) -> dict[str, list[float]]:
    """The numbers of a table by column, and ``label``."""
    rows = {each.id: each for each in facts(paper).tables}[table].rows
    cells = [row.model_dump(exclude={"variants", "metrics"}) for row in rows]
    return {key: [of_row[key] for of_row in cells] for key in cells[0]}


@cache
def scale_file_of(paper: str, scale: str) -> ScaleFile:
    """Read once, since many tests ask for it."""
    with chdir(ROOT):
        return ScaleFile(paper, scale)


def parameters(*modules: nn.Module | None) -> int:
    return sum(parameter.numel() for module in modules if module is not None for parameter in module.parameters())
