"""A run that may diverge ends at the first gradient that is not finite, with all that it had learnt until then."""

from __future__ import annotations

import signal
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.testing import assert_close

from shared.errors import ReplicationError
from shared.reports.curves import DIVERGED
from shared.training.checkpoints import load_checkpoint
from shared.training.config import TrainingConfig
from shared.training.module import TrainingModule
from tests.training.killed import Outcome, Server, assert_same_run, validated, weights

DIVERGES = {"updates": 18, "may_diverge": True, "poison": 9, "schedule": {"name": "constant"}}
OPTIMIZERS = ("adadelta", "adagrad", "adam", "radam", "rmsprop", "sgd")


@pytest.fixture(scope="module")
def diverged(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A run whose ninth gradient is not finite."""
    folder = tmp_path_factory.mktemp("runs") / "diverged"
    return folder, train(folder, **DIVERGES)


def config(**changes):
    settings = {
        "updates": 30, "optimizer": {"name": "adam", "learning_rate": 0.1},
        "validate_every": 6,
    }  # fmt: skip
    return TrainingConfig.model_validate(settings | changes)


def test_what_was_learnt_before_is_kept(train: Server, diverged: tuple[Path, Outcome], tmp_path: Path) -> None:
    """Weights and what the optimiser remembers are those of a run that ends one update earlier."""
    train(tmp_path / "shorter", updates=8, schedule={"name": "constant"})
    ends = [load_checkpoint(run / "checkpoints" / "last.ckpt") for run in (diverged[0], tmp_path / "shorter")]
    for part in ("state_dict", "optimizer_states"):
        assert_close(*(end[part] for end in ends), rtol=0, atol=0)


def test_the_record_says_when_and_validation_is_of_the_end(diverged: tuple[Path, Outcome]) -> None:
    record, losses = diverged[1].record, validated(diverged[0])
    assert record["stopped_because"] == "the gradient was not finite at update 9, which was not made"
    assert record["stopped_because"].startswith(DIVERGED)  # by which figures know such a run
    assert record["updates"] == 8
    assert losses.keys() == {6, 9}  # of the weights after as many batches
    assert record["best_valid_loss"] == pytest.approx(min(losses.values()), rel=1e-5)
    assert record["best_update"] == (6 if losses[6] <= losses[9] else 8)


def test_a_run_that_has_ended_so_is_not_continued(
    train: Server, diverged: tuple[Path, Outcome], tmp_path: Path
) -> None:
    assert train(tmp_path / "run", **DIVERGES).record == diverged[1].record
    assert train(tmp_path / "run", **DIVERGES | {"poison": 0}).record == diverged[1].record
    assert_same_run(diverged[0], tmp_path / "run")


@pytest.mark.parametrize("point", ["train:8", "train:9", "trained:9", "valid:3", "save:3", "save:4", "end:1"])
def test_a_killed_run_diverges_likewise(
    train: Server, diverged: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    assert train(tmp_path / "run", kill=point, **DIVERGES).status == -signal.SIGKILL
    assert train(tmp_path / "run", **DIVERGES).record == diverged[1].record
    assert_same_run(diverged[0], tmp_path / "run")


@pytest.mark.parametrize(("poison", "updates"), [(1, 0), (3, 2), (6, 5), (18, 17)])
def test_whenever_it_diverges_there_is_a_best_checkpoint(
    train: Server, tmp_path: Path, poison: int, updates: int
) -> None:
    record = train(tmp_path / "run", **DIVERGES | {"poison": poison}).record
    assert record["updates"] == updates
    assert 0 <= record["best_update"] <= updates
    assert all(value.isfinite().all() for value in weights(tmp_path / "run", "best").values())
    assert train(tmp_path / "run", **DIVERGES | {"poison": 0}).record == record


def test_batches_that_accumulate_are_given_up_together(train: Server, tmp_path: Path) -> None:
    settings = {"accumulate": 2, "schedule": {"name": "constant"}}
    record = train(tmp_path / "run", **DIVERGES | settings).record
    assert record["stopped_because"] == "the gradient was not finite at update 9, which was not made"
    train(tmp_path / "shorter", updates=8, **settings)
    first, second = weights(tmp_path / "run", "last"), weights(tmp_path / "shorter", "last")
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_optimiser_takes_a_step_along_a_gradient_that_is_not_finite(name: str, value: float) -> None:
    settings = config(optimizer={"name": name, "learning_rate": 0.1}, may_diverge=True)
    module = TrainingModule(nn.Linear(3, 2), settings)
    optimizer = module.configure_optimizers()["optimizer"]
    states = []
    for factor in (1.0, value):
        optimizer.zero_grad()
        (module.model(torch.ones(1, 3)).sum() * factor).backward()
        module.configure_gradient_clipping(optimizer)
        optimizer.step()
        states.append(deepcopy((module.state_dict(), optimizer.state_dict())))
    for after, before in zip(states[1], states[0], strict=True):
        assert_close(after, before, rtol=0, atol=0)
    assert module.diverged


def test_a_run_that_must_not_diverge_is_refused_there() -> None:
    module = TrainingModule(nn.Linear(3, 2), config())
    (module.model(torch.ones(1, 3)).sum() * float("nan")).backward()
    with pytest.raises(ReplicationError, match="the gradient is not finite at update 1; lower"):
        module.configure_gradient_clipping(None)


def test_an_average_needs_all_updates() -> None:
    with pytest.raises(ValidationError, match="leave out patience and may_diverge"):
        config(average={"last": 2, "every": 2}, may_diverge=True)
