"""A run that is killed and started again ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
import torch

from shared.training.checkpoints import load_checkpoint
from shared.training.run import resolve_precision
from tests.training.killed import Outcome, Server, assert_same_run, validated, weights

STOPS_EARLY = {"patience": 2, "updates": 200, "optimizer": {"name": "adam", "learning_rate": 0.3}}
# An epoch has ten batches; a validation comes every six updates, after it the checkpoints best, if it is, and last.
POINTS = {
    "in the middle of an epoch": "train:9",
    "at the end of an epoch": "trained:10",
    "at the first batch of an epoch": "train:11",
    "before a validation": "trained:12",
    "in a validation": "valid:4",
    "before the best checkpoint is written": "save:3",
    "between the two checkpoints": "save:4",
    "after a checkpoint": "train:13",
    "before anything was saved": "train:1",
    "when all is done but the end": "end:1",
}


@pytest.fixture(scope="module")
def whole(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A run of 18 updates that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, train(folder, updates=18)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_a_killed_run_ends_the_same(train: Server, whole: tuple[Path, Outcome], tmp_path: Path, point: str) -> None:
    assert train(tmp_path / "run", updates=18, kill=point).status == -signal.SIGKILL
    resumed = train(tmp_path / "run", updates=18)
    assert resumed.record == whole[1].record
    assert ("continuing from update" in resumed.output) == (point != "train:1")
    assert_same_run(whole[0], tmp_path / "run")


def test_several_kills_in_a_row_at_random_end_the_same(
    train: Server, whole: tuple[Path, Outcome], tmp_path: Path
) -> None:
    seed = random.randrange(10**6)
    generator = random.Random(seed)
    kills = [f"{generator.choice(['train', 'trained'])}:{generator.randint(1, 14)}" for _ in range(4)]
    outcomes = [train(tmp_path / "run", updates=18, kill=kill) for kill in kills]
    assert {outcome.status for outcome in outcomes} <= {0, -signal.SIGKILL}, f"seed {seed}: {kills}"
    assert train(tmp_path / "run", updates=18).record == whole[1].record, f"seed {seed}: {kills}"
    assert_same_run(whole[0], tmp_path / "run")


@pytest.mark.parametrize("point", ["valid:9", "save:7", "end:1"])
def test_a_run_that_stops_early_does_so_at_the_same_update_after_a_kill(
    train: Server, tmp_path: Path, point: str
) -> None:
    undisturbed = train(tmp_path / "whole", **STOPS_EARLY)
    assert train(tmp_path / "run", kill=point, **STOPS_EARLY).status == -signal.SIGKILL
    assert train(tmp_path / "run", **STOPS_EARLY).record == undisturbed.record
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_run_continued_in_another_folder_keeps_its_best_checkpoint(train: Server, tmp_path: Path) -> None:
    undisturbed = train(tmp_path / "whole", **STOPS_EARLY).record
    last = max(validated(tmp_path / "whole"))
    killed = train(tmp_path / "run", kill=f"train:{last - 4}", **STOPS_EARLY)  # after the best, before the last
    assert killed.status == -signal.SIGKILL
    (tmp_path / "run").rename(tmp_path / "moved")
    assert train(tmp_path / "moved", **STOPS_EARLY).record == undisturbed
    best = load_checkpoint(tmp_path / "moved" / "checkpoints" / "best.ckpt")
    assert best["global_step"] == undisturbed["best_update"] < last


def test_patience_ends_a_run_and_the_best_checkpoint_is_of_the_least_loss(train: Server, tmp_path: Path) -> None:
    record = train(tmp_path / "run", **STOPS_EARLY).record
    losses = validated(tmp_path / "run")
    best = min(losses, key=lambda update: losses[update])
    assert record["stopped_because"] == "no better for 2 validations"
    assert record["best_update"] == best
    assert record["best_valid_loss"] == pytest.approx(losses[best], rel=1e-5)
    assert record["updates"] == max(losses) == best + 2 * 6 < 200
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "best.ckpt")["global_step"] == best


def test_the_last_checkpoint_is_of_the_last_update_even_if_no_validation_is_due(train: Server, tmp_path: Path) -> None:
    record = train(tmp_path / "run", updates=8).record
    assert (record["updates"], record["best_update"]) == (8, 6)
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["global_step"] == 8
    assert train(tmp_path / "run", updates=8).record == record


@pytest.mark.parametrize("point", ["train:15", "trained:20", "train:43"])
def test_accumulated_batches_make_one_update_and_survive_a_kill(train: Server, tmp_path: Path, point: str) -> None:
    undisturbed = train(tmp_path / "whole", updates=24, accumulate=2)
    assert list(validated(tmp_path / "whole")) == [6, 12, 18, 24]
    assert train(tmp_path / "run", updates=24, accumulate=2, kill=point).status in (0, -signal.SIGKILL)
    assert train(tmp_path / "run", updates=24, accumulate=2).record == undisturbed.record
    assert_same_run(tmp_path / "whole", tmp_path / "run")


AVERAGED = {"updates": 18, "schedule": {"name": "constant"}}
AVERAGE = {"average": {"last": 3, "every": 4}, **AVERAGED}  # of the updates 10, 14 and 18


@pytest.fixture(scope="module")
def averaged(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A run with an average that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "averaged"
    return folder, train(folder, **AVERAGE)


def test_the_average_is_of_the_weights_that_runs_ending_there_have(
    train: Server, averaged: tuple[Path, Outcome], tmp_path: Path
) -> None:
    for updates in (10, 14, 18):
        assert train(tmp_path / str(updates), **AVERAGED | {"updates": updates}).status == 0
    states = [weights(tmp_path / str(updates), "last") for updates in (10, 14, 18)]
    mean = weights(averaged[0], "average")
    assert mean.keys() == states[0].keys()
    for name, value in mean.items():
        by_hand = torch.stack([state[name].double() for state in states]).mean(0)
        assert value.dtype == states[0][name].dtype
        torch.testing.assert_close(value.double(), by_hand, atol=1e-7, rtol=1e-6)
    assert_same_run(averaged[0], tmp_path / "18")  # to keep weights changes nothing of training


# Of the updates averaged one comes before and one after the validation, and its checkpoint, of update 12.
@pytest.mark.parametrize("point", ["train:10", "train:11", "save:4", "train:13", "train:15", "train:18", "end:1"])
def test_a_killed_run_has_the_same_average(
    train: Server, averaged: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    assert train(tmp_path / "run", kill=point, **AVERAGE).status == -signal.SIGKILL
    resumed = train(tmp_path / "run", **AVERAGE)
    assert resumed.record == averaged[1].record
    assert "continuing from update" in resumed.output
    assert_same_run(averaged[0], tmp_path / "run", "average")
    names = {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}
    assert names == {"best.ckpt", "last.ckpt", "average.ckpt"}


@pytest.mark.parametrize(("missing", "point"), [("update10.ckpt", "train:14"), ("average.ckpt", "")])
def test_without_what_its_average_is_made_of_a_run_starts_anew(
    train: Server, averaged: tuple[Path, Outcome], tmp_path: Path, missing: str, point: str
) -> None:
    train(tmp_path / "run", kill=point, **AVERAGE)
    (tmp_path / "run" / "checkpoints" / missing).unlink()
    again = train(tmp_path / "run", **AVERAGE)
    assert again.record == averaged[1].record
    assert "continuing" not in again.output
    assert_same_run(averaged[0], tmp_path / "run")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_polite_signal_ends_the_run_at_once_and_the_next_start_continues(
    train: Server, whole: tuple[Path, Outcome], tmp_path: Path, number: int, status: int
) -> None:
    assert train(tmp_path / "run", updates=18, kill="train:9", number=number).status == status
    resumed = train(tmp_path / "run", updates=18)
    assert "continuing from update 6" in resumed.output
    assert resumed.record == whole[1].record
    assert_same_run(whole[0], tmp_path / "run")


def test_a_checkpoint_of_something_else_is_not_continued(
    train: Server, whole: tuple[Path, Outcome], tmp_path: Path
) -> None:
    assert train(tmp_path / "run", updates=18, kill="train:9", seed=8).status == -signal.SIGKILL
    anew = train(tmp_path / "run", updates=18, fingerprint="another")
    assert "have changed since the last checkpoint: starting anew" in anew.output
    assert_same_run(whole[0], tmp_path / "run")


def test_another_seed_is_another_run(train: Server, whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    assert train(tmp_path / "run", updates=18, seed=8).status == 0  # of dropout: the model starts the same
    first, second = weights(whole[0], "last"), weights(tmp_path / "run", "last")
    assert [key for key in first if torch.equal(first[key], second[key])] == []


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_checkpoint_is_named(train: Server, tmp_path: Path, damage: str) -> None:
    train(tmp_path / "run", updates=12, kill="train:9")
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    content = last.read_bytes()
    last.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "other": b"no archive" * 99}[damage])
    outcome = train(tmp_path / "run", updates=12)
    assert outcome.status == 2
    assert outcome.output.startswith(f"error: {last} is damaged")
    last.unlink()  # as the message asks
    assert train(tmp_path / "run", updates=12).status == 0


def test_without_its_best_checkpoint_a_run_starts_anew(
    train: Server, whole: tuple[Path, Outcome], tmp_path: Path
) -> None:
    train(tmp_path / "run", updates=18, kill="train:14")
    (tmp_path / "run" / "checkpoints" / "best.ckpt").unlink()
    assert train(tmp_path / "run", updates=18).record == whole[1].record
    assert_same_run(whole[0], tmp_path / "run")


def test_a_gradient_that_is_no_number_stops_the_run_before_it_does_harm(
    train: Server, whole: tuple[Path, Outcome], tmp_path: Path
) -> None:
    outcome = train(tmp_path / "run", updates=18, poison=9)
    assert outcome.status == 2
    assert "the gradient is not finite at update 9" in outcome.output
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["global_step"] == 6
    assert train(tmp_path / "run", updates=18).record == whole[1].record
    assert_same_run(whole[0], tmp_path / "run")


def test_mixed_precision_learns_as_well(train: Server, tmp_path: Path) -> None:
    """The difference between the types is far below that between seeds, and both have learnt."""
    updates, losses = 60, {}
    for precision in ("32-true", "bf16-mixed"):
        for seed in (1, 2, 3):
            record = train(tmp_path / f"{precision}{seed}", updates=updates, precision=precision, seed=seed).record
            assert record["precision"] == precision
            losses[precision, seed] = record["best_valid_loss"]
    exact = torch.tensor([losses["32-true", seed] for seed in (1, 2, 3)])
    mixed = torch.tensor([losses["bf16-mixed", seed] for seed in (1, 2, 3)])
    assert float((exact - mixed).abs().mean()) < 0.02
    assert float(mixed.max()) < 2.1 < validated(tmp_path / "bf16-mixed1")[6]


@pytest.mark.parametrize(("gpu", "chosen"), [(None, "32-true"), (False, "32-true"), (True, "bf16-mixed")])
def test_automatic_precision_is_the_same_on_all_processors(
    monkeypatch: pytest.MonkeyPatch, gpu: bool | None, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: gpu)
    assert resolve_precision("auto") == chosen
    assert resolve_precision("32-true") == "32-true"
    assert resolve_precision("bf16-mixed") == "bf16-mixed"
