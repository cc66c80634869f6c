"""A run that is killed and started again ends as if nothing had happened, whatever is trained and however."""

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from shared.reports.curves import DIVERGED
from shared.training.checkpoints import load_checkpoint
from shared.training.run import resolve_precision
from tests.training.killed import Outcome, Server, assert_same_run, last, unequal, validated, weights

# An epoch has ten batches; every six updates come a validation of two batches or more, and checkpoints.
POINTS = ("train:1", "train:9", "trained:10", "trained:12", "valid:3", "save:2", "train:13", "save:4")
CONSTANT: dict[str, Any] = {"schedule": {"name": "constant"}}
LANGUAGE: dict[str, Any] = {"kind": "language", "batch": {"sentences": 4, "length": 5}, "memory": 9}
SEQUENCES: dict[str, Any] = {"kind": "sequences", "optimizer": {"name": "radam", "learning_rate": 0.05}}
RUNS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "translation": ({}, POINTS),
    "accumulated": ({"accumulate": 2}, ("train:15", "trained:9", "train:27", "save:4")),
    # Of the updates averaged, 10, 14 and 18, one comes before and one after the checkpoint of update 12.
    "averaged": (CONSTANT | {"average": {"last": 3, "every": 4}}, ("trained:10", "save:2", "train:15", "save:4")),
    "stops early": (
        {"patience": 2, "updates": 200, "optimizer": {"name": "adam", "learning_rate": 0.3}},
        ("valid:5", "save:2", "save:3"),
    ),
    "diverges": (
        CONSTANT | {"may_diverge": True, "poison": 9},
        ("train:8", "train:9", "trained:9", "valid:3", "save:2", "save:3"),
    ),
    # The update of the least error, 12, is not that of the least loss.
    "classification": (
        {"kind": "classification", "average": {"last": 3, "every": 4},
         "optimizer": {"name": "adagrad", "learning_rate": 0.4, "weight_decay": 0.001}},
        ("train:11", "valid:3", "save:2", "train:17", "save:4"),
    ),
    # BLEU is highest at update 18, and two validations later the run ends, though its loss still falls.
    "captioning": (
        CONSTANT | {"kind": "captioning", "updates": 200, "patience": 2, "loss_per": "sentence",
         "batch": {"sentences": 8, "equal_lengths": True}, "optimizer": {"name": "rmsprop", "learning_rate": 0.005}},
        ("train:1", "valid:12", "save:4", "train:13", "valid:35", "save:6"),
    ),
    # A pass over the text has ten batches, and what is remembered goes on from one to the next.
    "language": (LANGUAGE, POINTS),
    "segments": (LANGUAGE | {"accumulate": 2, "loss_on": "last_half"}, ("train:15", "train:33")),
    # What is masked and what the model draws for itself are others at every update.
    "sequences": (SEQUENCES, ("train:9", "train:11", "valid:3", "save:2", "train:13", "save:4")),
    "sequences accumulated": (SEQUENCES | {"accumulate": 2}, ("train:15", "train:33")),
}  # fmt: skip
Whole = Callable[[str], tuple[Path, Outcome]]


@pytest.fixture(scope="module")
def whole(train: Server, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The runs above that nobody disturbed, each made when it is asked for."""
    made: dict[str, tuple[Path, Outcome]] = {}

    def run(name: str) -> tuple[Path, Outcome]:
        if name not in made:
            folder = tmp_path_factory.mktemp("runs") / "whole"
            made[name] = folder, train(folder, **RUNS[name][0])
        return made[name]

    return run


@pytest.mark.parametrize(("name", "point"), [(name, point) for name, (_, points) in RUNS.items() for point in points])
def test_a_killed_run_ends_the_same(train: Server, whole: Whole, tmp_path: Path, name: str, point: str) -> None:
    folder, outcome = whole(name)
    assert train(tmp_path / "run", kill=point, **RUNS[name][0]).status == -signal.SIGKILL
    begun = (tmp_path / "run" / "checkpoints" / "last.ckpt").exists()
    resumed = train(tmp_path / "run", **RUNS[name][0])
    assert resumed.record == outcome.record
    assert ("continuing from update" in resumed.output) == begun
    assert_same_run(folder, tmp_path / "run")


def test_several_kills_in_a_row_at_random_end_the_same(train: Server, whole: Whole, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    generator = random.Random(seed)
    kills = [f"{generator.choice(['train', 'trained'])}:{generator.randint(1, 14)}" for _ in range(4)]
    outcomes = [train(tmp_path / "run", kill=kill) for kill in kills]
    assert {outcome.status for outcome in outcomes} <= {0, -signal.SIGKILL}, f"seed {seed}: {kills}"
    assert train(tmp_path / "run").record == whole("translation")[1].record, f"seed {seed}: {kills}"
    assert_same_run(whole("translation")[0], tmp_path / "run")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_polite_signal_ends_the_run_at_once_and_the_next_start_continues_in_another_folder(
    train: Server, whole: Whole, tmp_path: Path, number: int, status: int
) -> None:
    assert train(tmp_path / "run", kill="train:9", number=number).status == status
    (tmp_path / "run").rename(tmp_path / "moved")
    assert "continuing from update 6" in train(tmp_path / "moved").output
    assert_same_run(whole("translation")[0], tmp_path / "moved")


@pytest.mark.parametrize("name", ["translation", "averaged", "stops early", "diverges"])
def test_a_run_that_has_ended_is_left_as_it_is(train: Server, whole: Whole, tmp_path: Path, name: str) -> None:
    settings = RUNS[name][0]
    assert train(tmp_path / "run", **settings).record == whole(name)[1].record
    if name == "averaged":
        (tmp_path / "run" / "checkpoints" / "average.ckpt").unlink()  # its sums are in the last checkpoint
    assert train(tmp_path / "run", **settings | {"poison": 0}).record == whole(name)[1].record
    assert_same_run(whole(name)[0], tmp_path / "run")


def test_patience_ends_a_run_and_the_best_checkpoint_is_of_the_least_loss(whole: Whole) -> None:
    folder, outcome = whole("stops early")
    record, losses = outcome.record, validated(folder)
    best = min(losses, key=lambda update: losses[update])
    assert record["stopped_because"] == "no better for 2 validations"
    assert record["best_update"] == best
    assert record["best_valid_loss"] == pytest.approx(losses[best], rel=1e-5)
    assert record["updates"] == max(losses) == best + 2 * 6 < 200
    assert load_checkpoint(folder / "checkpoints" / "best.ckpt")["global_step"] == best


@pytest.mark.parametrize(
    ("name", "metric", "sign", "update"), [("classification", "error", 1, 12), ("captioning", "bleu", -1, 18)]
)
def test_another_quantity_than_the_loss_may_decide(
    whole: Whole, name: str, metric: str, sign: int, update: int
) -> None:
    folder, outcome = whole(name)
    losses, values = validated(folder), validated(folder, metric)
    best = min(values, key=lambda update: sign * values[update])
    assert outcome.record["best_update"] == best == update < min(losses, key=lambda update: losses[update])
    assert outcome.record["best_valid_loss"] == pytest.approx(losses[best], rel=1e-5)
    assert load_checkpoint(folder / "checkpoints" / "best.ckpt")["global_step"] == best


def test_the_last_checkpoint_is_of_the_last_update_even_if_no_validation_is_due(train: Server, tmp_path: Path) -> None:
    record = train(tmp_path / "run", updates=8).record
    assert (record["updates"], record["best_update"]) == (8, 6)
    assert last(tmp_path / "run")["global_step"] == 8


def test_the_average_is_of_the_weights_that_runs_ending_there_have(train: Server, whole: Whole, tmp_path: Path) -> None:
    for updates in (10, 14, 18):
        assert train(tmp_path / str(updates), updates=updates, **CONSTANT).status == 0
    states, mean = (
        [weights(tmp_path / str(updates)) for updates in (10, 14, 18)],
        weights(whole("averaged")[0], "average"),
    )
    assert mean.keys() == states[0].keys()
    for name, value in mean.items():
        exact = torch.stack([state[name].double() for state in states]).mean(0)
        assert torch.equal(value, exact.to(states[0][name].dtype))
    assert unequal(whole("averaged")[0], tmp_path / "18") == []  # to average changes nothing of training


def test_what_a_run_that_diverges_had_learnt_is_kept(train: Server, whole: Whole, tmp_path: Path) -> None:
    """Weights and what the optimiser remembers are those of a run that ends one update earlier."""
    folder, outcome = whole("diverges")
    train(tmp_path / "shorter", updates=8, **CONSTANT)
    for part in (lambda end: end["state_dict"], lambda end: end["optimizer"]["state"]):
        assert_close(part(last(folder)), part(last(tmp_path / "shorter")), rtol=0, atol=0)
    record, losses = outcome.record, validated(folder)
    assert record["stopped_because"] == "the gradient was not finite at update 9, which was not made"
    assert record["stopped_because"].startswith(DIVERGED)  # by which figures know such a run
    assert losses.keys() == {6, 9}  # of the weights after as many batches
    assert record["best_valid_loss"] == pytest.approx(min(losses.values()), rel=1e-5)
    assert (record["updates"], record["best_update"]) == (8, 6 if losses[6] <= losses[9] else 8)


@pytest.mark.parametrize(("poison", "updates"), [(1, 0), (3, 2), (6, 5), (18, 17)])
def test_whenever_a_run_diverges_there_is_a_best_checkpoint(
    train: Server, tmp_path: Path, poison: int, updates: int
) -> None:
    record = train(tmp_path / "run", **RUNS["diverges"][0] | {"poison": poison, "accumulate": 2}).record
    assert record["updates"] == updates
    assert 0 <= record["best_update"] <= updates
    assert all(value.isfinite().all() for value in weights(tmp_path / "run", "best").values())


def test_a_gradient_that_is_no_number_stops_a_run_that_must_not_diverge(
    train: Server, whole: Whole, tmp_path: Path
) -> None:
    outcome = train(tmp_path / "run", poison=9)
    assert outcome.status == 2
    assert "the gradient is not finite at update 9; lower" in outcome.output
    assert last(tmp_path / "run")["global_step"] == 6
    assert train(tmp_path / "run").status == 0
    assert_same_run(whole("translation")[0], tmp_path / "run")


def test_a_checkpoint_of_something_else_or_without_the_best_is_not_continued(
    train: Server, whole: Whole, tmp_path: Path
) -> None:
    assert train(tmp_path / "run", kill="train:9", seed=8).status == -signal.SIGKILL
    assert (
        "have changed since the last checkpoint: starting anew" in train(tmp_path / "run", fingerprint="another").output
    )
    assert unequal(whole("translation")[0], tmp_path / "run") == []
    (tmp_path / "run" / "checkpoints" / "best.ckpt").unlink()
    assert "continuing" not in train(tmp_path / "run", fingerprint="another").output
    assert unequal(whole("translation")[0], tmp_path / "run") == []


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_checkpoint_is_named(train: Server, tmp_path: Path, damage: str) -> None:
    train(tmp_path / "run", kill="train:9")
    path = tmp_path / "run" / "checkpoints" / "last.ckpt"
    content = path.read_bytes()
    path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "other": b"no archive" * 99}[damage])
    outcome = train(tmp_path / "run")
    assert outcome.status == 2
    assert outcome.output.startswith(f"error: {path} is damaged")
    path.unlink()  # as the message asks
    assert train(tmp_path / "run").status == 0


@pytest.mark.parametrize(("name", "changes"), [("translation", {"seed": 8}), ("language", {"memory": 0})])
def test_the_seed_of_dropout_and_what_is_remembered_decide_all_weights(
    train: Server, whole: Whole, tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    assert train(tmp_path / "run", **RUNS[name][0] | changes).status == 0
    assert len(unequal(whole(name)[0], tmp_path / "run")) == len(weights(tmp_path / "run"))


def test_mixed_precision_learns_as_well(train: Server, tmp_path: Path) -> None:
    """The difference between the types is far below that between seeds, and both have learnt."""
    losses = {}
    for precision in ("32-true", "bf16-mixed"):
        for seed in (1, 2, 3):
            record = train(tmp_path / f"{precision}{seed}", updates=60, precision=precision, seed=seed).record
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
