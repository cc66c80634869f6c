"""What a paper comes with: all variants of all scales, and its facts."""

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from torch import nn

from shared.config import load_yaml
from shared.pipeline.config import SCALES, ScaleFile
from shared.reports.paper import Paper
from shared.tasks.protocol import load_replication

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


def variants_by_task(paper: str, scale: str) -> dict[str, set[str]]:
    """Of every task of a scale file."""
    settings, found = scale_file_of(paper, scale), defaultdict(set)
    for variant in settings.variants:
        found[settings.task_of(variant)].add(variant)
    return dict(found)


def listed_variants(paper: str) -> dict[str, set[str]]:
    """Of every task that params.yaml has the pipeline run, each under its own name."""
    listed = load_yaml(REPLICATIONS.parent / "params.yaml")
    found: dict[str, set[str]] = {}
    for key, entry in listed["tasks"].items():
        if entry["paper"] == paper:
            assert key == f"{paper}.{entry['task']}"
            found[entry["task"]] = set()
    for key, entry in listed["runs"].items():
        if entry["paper"] == paper:
            assert key == f"{paper}.{entry['variant']}"
            found[entry["task"]].add(entry["variant"])
    return found


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
