"""Batches of one example train and are judged, whatever the kind of task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import replications  # noqa: F401  before a project of toys puts its own in its place
from tests.pipeline.toys import SEEDS, TOYS, Paper, enter, write_project


@pytest.mark.parametrize("kind", TOYS)
def test_a_batch_of_one_is_trained_and_judged(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_project(tmp_path / "project")
    enter(root, monkeypatch)
    paper = Paper(kind, root)
    paper.change("training", batch=TOYS[kind].task["training"]["batch"] | {"sentences": 1})
    paper.prepare()
    for stage in ("train", "evaluate"):
        paper.stage(stage, "short")
    assert [paper.json(f"short/train/seed{seed}/run.json")["updates"] for seed in SEEDS] == [2, 2]
    measured = json.dumps(paper.json("short/metrics.json"))
    assert TOYS[kind].metric in measured
    assert "NaN" not in measured
    assert "Infinity" not in measured
