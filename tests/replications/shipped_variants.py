"""What a paper comes with: all variants of all scales, and its facts."""

from functools import cache
from pathlib import Path

import pytest
from torch import nn

from shared.config import load_yaml
from shared.pipeline.config import SCALES, ScaleFile
from shared.pipeline.replication import load_replication
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


@cache
def scale_file_of(paper: str, scale: str) -> ScaleFile:
    """Read once, since many tests ask for it."""
    return ScaleFile(paper, scale)


def is_not_run_by(paper: str, scale: str, variant: str) -> bool:
    """With a reason; and what is run has settings that fit together."""
    settings = scale_file_of(paper, scale)
    reason = settings.not_run(variant)
    if reason is not None:
        assert reason.strip()
        return True
    load_replication(paper).check(settings.run(variant))
    return False


def parameters(*modules: nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())
