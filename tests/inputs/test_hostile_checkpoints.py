"""Checkpoints and arrays from elsewhere run no code: each is refused in a sentence, by every stage that reads it."""

import os
import pickle
import re
import shutil

import numpy as np
import pytest
import torch

import replications  # noqa: F401  before a project of toys puts its own in its place
from shared.data.storage import load_arrays, save_arrays
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from tests.pipeline.test_contract import Paper, enter
from tests.pipeline.toys import SEEDS, write_project

VARIANT = "long"


class Evil:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = write_project(tmp_path_factory.mktemp("hostile") / "project")
    with pytest.MonkeyPatch.context() as patch:
        enter(root, patch)
        paper = Paper("translation", root)
        paper.prepare()
        paper.stage("train", VARIANT)
    return root


@pytest.fixture
def paper(trained, tmp_path, monkeypatch):
    """A copy that a test may spoil."""
    root = tmp_path / "project"
    shutil.copytree(trained, root)
    enter(root, monkeypatch)
    return Paper("translation", root)


def spoiled(path, how, marker):
    """Put something else in the place of a checkpoint."""
    whole = torch.load(path, weights_only=True)
    weights = whole["state_dict"]
    contents = {
        "pickled code": Evil(marker),
        "code among the weights": whole | {"state_dict": weights | {"model.say.bias": Evil(marker)}},
        "code beside the weights": whole | {"note": Evil(marker)},
        "a list": [1, 2],
        "no weights": {key: value for key, value in whole.items() if key != "state_dict"},
        "weights of nothing": whole | {"state_dict": {}},
        "weights of other sizes": whole | {"state_dict": {key: value[:1] for key, value in weights.items()}},
        "a text for weights": whole | {"state_dict": "weights"},
    }
    if how == "plain pickle":
        path.write_bytes(pickle.dumps(Evil(marker)))
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-1000])
    elif how == "a page":
        path.write_text("<!DOCTYPE html><html></html>")
    else:
        torch.save(contents[how], path)


HOW = [
    "pickled code", "code among the weights", "code beside the weights", "plain pickle", "a list", "no weights",
    "weights of nothing", "weights of other sizes", "a text for weights", "cut", "a page",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("stage", ["train", "evaluate", "try"])
def test_a_checkpoint_of_another_kind_is_refused_and_runs_nothing(paper, capsys, tmp_path, stage, how):
    marker = tmp_path / "made by a checkpoint"
    for name in ("last", "best"):
        spoiled(paper.runs / VARIANT / "train" / f"seed{SEEDS[0]}" / "checkpoints" / f"{name}.ckpt", how, marker)
    if stage == "train":
        (paper.runs / VARIANT / "train" / f"seed{SEEDS[0]}" / "run.json").unlink()
    capsys.readouterr()
    command = ["try", f"{paper.name}.{VARIANT}", "anna"] if stage == "try" else [stage, f"{paper.name}.{VARIANT}"]
    assert main([*command, "--scale", "smoke"]) == 2
    said = capsys.readouterr().err
    assert not marker.exists()
    assert re.search(rf"seed ?{SEEDS[0]}\b", said)
    assert "Traceback" not in said


def test_arrays_hold_numbers_alone(tmp_path):
    marker = tmp_path / "made by an array"
    save_arrays(tmp_path, {"a": np.arange(3)})
    np.save(tmp_path / "a.npy", np.array([Evil(marker)], dtype=object), allow_pickle=True)
    with pytest.raises(ReplicationError, match="is incomplete"):
        load_arrays(tmp_path, ["a"])
    assert not marker.exists()
