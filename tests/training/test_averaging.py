"""The mean of a run's last weights: of which it is, in which type, and after which accidents."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from shared.errors import ReplicationError
from shared.training.averaging import Averaging, mean_weights
from shared.training.checkpoints import load_weights
from shared.training.config import TrainingConfig


def config(**changes: Any) -> TrainingConfig:
    settings = {
        "updates": 10, "optimizer": {"name": "adam", "learning_rate": 0.1},
        "validate_every": 5, "average": {"last": 3, "every": 2},
    }  # fmt: skip
    return TrainingConfig.model_validate(settings | changes)


class Module(nn.Module):
    """One layer and a counter, as a Lightning module holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(2, 1)
        self.model.register_buffer("seen", torch.tensor(0))

    def update(self, number: int) -> None:
        """Weights that are the number of the update."""
        for parameter in self.parameters():
            nn.init.constant_(parameter, number)
        self.model.seen.fill_(number)


def train(averaging: Averaging, *updates: int, batches: int = 1) -> None:
    """Go through updates, each of several accumulated batches."""
    module = Module()
    for update in updates:
        for batch in range(batches):
            done = update if batch == batches - 1 else update - 1
            module.update(done)
            averaging.on_train_batch_end(SimpleNamespace(is_global_zero=True, global_step=done), module)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def averaged(folder: Path) -> float:
    model = Module().model
    load_weights(model, folder / "average.ckpt")
    assert len(set(model.weight.flatten().tolist() + model.bias.tolist())) == 1
    return model.bias.item()


@pytest.mark.parametrize("batches", [1, 3])
def test_the_mean_is_of_the_last_weights_and_nothing_else_is_left(tmp_path: Path, batches: int) -> None:
    averaging = Averaging(tmp_path, config())
    train(averaging, *range(1, 6), batches=batches)
    assert files(tmp_path) == []  # the updates counted are 6, 8 and 10
    train(averaging, *range(6, 11), batches=batches)
    assert files(tmp_path) == ["update10.ckpt", "update6.ckpt", "update8.ckpt"]
    averaging.finish()
    assert files(tmp_path) == ["average.ckpt"]
    assert averaged(tmp_path) == 8


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_the_updates_counted_are_back_from_the_last(last: int, every: int, more: int) -> None:
    end = last * every + more
    averaging = Averaging(Path(), config(updates=end, validate_every=1, average={"last": last, "every": every}))
    assert [*averaging._updates] == [end - k * every for k in range(last)]
    assert min(averaging._updates) >= 1


def test_without_an_average_nothing_is_written(tmp_path: Path) -> None:
    averaging = Averaging(tmp_path, config(average=None))
    train(averaging, *range(1, 11))
    averaging.finish()
    assert averaging.can_continue(10)
    assert files(tmp_path) == []


def test_a_run_killed_at_the_end_makes_the_average_once(tmp_path: Path) -> None:
    train(Averaging(tmp_path, config()), *range(1, 11))
    shutil.copytree(tmp_path, tmp_path / "whole")
    for kill in ("before the average", "after it", "while deleting"):
        folder = tmp_path / kill
        shutil.copytree(tmp_path / "whole", folder)
        if kill != "before the average":
            Averaging(folder, config()).finish()
        if kill == "while deleting":
            shutil.copy(tmp_path / "whole" / "update6.ckpt", folder)
        again = Averaging(folder, config())
        assert again.can_continue(10)
        again.finish()
        assert files(folder) == ["average.ckpt"]
        assert averaged(folder) == 8


def test_a_run_whose_kept_weights_are_gone_cannot_be_continued(tmp_path: Path) -> None:
    averaging = Averaging(tmp_path, config())
    assert averaging.can_continue(5)
    assert not averaging.can_continue(6)
    train(averaging, 6, 7, 8)
    assert averaging.can_continue(9)
    assert not averaging.can_continue(10)
    (tmp_path / "update6.ckpt").unlink()
    assert not averaging.can_continue(9)


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    averaging = Averaging(tmp_path, config())
    train(averaging, *range(1, 11))
    (tmp_path / "update8.ckpt").write_bytes(b"no archive")
    with pytest.raises(ReplicationError, match=r"update8\.ckpt is damaged"):
        averaging.finish()
    assert "average.ckpt" not in files(tmp_path)


def test_the_mean_is_exact_in_every_type(tmp_path: Path) -> None:
    types = {"half": torch.bfloat16, "single": torch.float32, "double": torch.float64}
    states = [
        {name: torch.randn(5, 3, dtype=torch.float64).to(kind) for name, kind in types.items()}
        | {"count": torch.tensor([i, 7]), "mask": torch.tensor([True, False])}
        for i in range(4)
    ]
    paths = [tmp_path / f"{i}.ckpt" for i in range(4)]
    for path, state in zip(paths, states, strict=True):
        torch.save({"state_dict": state}, path)
    mean = mean_weights(paths)
    assert {name: value.dtype for name, value in mean.items()} == types | {"count": torch.int64, "mask": torch.bool}
    for name, kind in types.items():
        assert torch.equal(mean[name], torch.stack([state[name].double() for state in states]).mean(0).to(kind))
    assert mean["count"].tolist() == [0, 7]
    assert torch.equal(mean_weights(paths[:1])["half"], states[0]["half"])


def test_weights_that_are_one_tensor_are_counted_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.ckpt" for i in range(3)]
    for i, path in enumerate(paths):
        shared = torch.full((2,), float(i), dtype=torch.float64)
        torch.save({"state_dict": {"embedding": shared, "softmax": shared}}, path)
    assert {name: value.tolist() for name, value in mean_weights(paths).items()} == {
        "embedding": [1.0, 1.0], "softmax": [1.0, 1.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"average": {"last": 3, "every": 4}}, r"times average.every \(12\) must not exceed updates \(10\)"),
        ({"average": {"last": 0, "every": 4}}, "greater than or equal to 1"),
        ({"average": {"last": 2, "every": 0}}, "greater than or equal to 1"),
        ({"average": {"last": 2}}, "every"),
        ({"patience": 3}, "leave out patience"),
    ],
)
def test_an_average_that_cannot_be_made_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)
