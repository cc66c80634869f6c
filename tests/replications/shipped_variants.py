"""What a paper comes with: all variants of all scales, and its facts."""

from pathlib import Path

import pytest

from shared.config import load_yaml
from shared.pipeline.config import SCALES
from shared.reports.paper import Paper

REPLICATIONS = Path(__file__).resolve().parents[2] / "replications"


def shipped(paper: str) -> pytest.MarkDecorator:
    """For a test with the arguments ``scale`` and ``variant``: every one there is."""
    pairs = [
        (scale, variant)
        for scale in SCALES
        for variant in load_yaml(REPLICATIONS / paper / f"{scale}.yaml")["variants"]
    ]
    return pytest.mark.parametrize(("scale", "variant"), pairs)


def facts(paper: str) -> Paper:
    return Paper.load(REPLICATIONS / paper / "paper.yaml")
