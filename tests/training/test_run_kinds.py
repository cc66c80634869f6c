"""Runs of other kinds of tasks than translation, killed and started again."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from shared.training.checkpoints import load_checkpoint
from tests.training.killed import Outcome, Server, assert_same_run, validated, weights

CLASSIFIES = {  # the update of the least error, 12, is not that of the least loss
    "kind": "classification", "updates": 18, "average": {"last": 3, "every": 4},
    "optimizer": {"name": "adagrad", "learning_rate": 0.3, "weight_decay": 0.001},
}  # fmt: skip
CAPTIONS = {  # BLEU is highest at update 18, and two validations later the run ends, though its loss still falls
    "kind": "captioning", "updates": 200, "patience": 2, "batch": {"sentences": 8, "equal_lengths": True},
    "optimizer": {"name": "rmsprop", "learning_rate": 0.005}, "schedule": {"name": "constant"},
    "loss_per": "sentence",
}  # fmt: skip
LANGUAGE = {  # a pass over the text has ten batches, and what is remembered goes on from one to the next
    "kind": "language", "updates": 18, "batch": {"sentences": 4, "length": 5}, "memory": 9,
}  # fmt: skip
SEQUENCES = {  # what is masked and what the model draws for itself are others at every update
    "kind": "sequences", "updates": 18, "optimizer": {"name": "radam", "learning_rate": 0.05},
}  # fmt: skip


@pytest.fixture(scope="module")
def classifier(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A classifier's run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "classifier"
    return folder, train(folder, **CLASSIFIES)


@pytest.mark.parametrize("point", ["train:1", "train:11", "valid:4", "save:4", "train:13", "train:17", "end:1"])
def test_a_killed_classifier_ends_the_same(
    train: Server, classifier: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    assert train(tmp_path / "run", kill=point, **CLASSIFIES).status == -signal.SIGKILL
    assert train(tmp_path / "run", **CLASSIFIES).record == classifier[1].record
    assert_same_run(classifier[0], tmp_path / "run", "average")


def test_of_a_classifier_the_weights_of_least_error_are_best(classifier: tuple[Path, Outcome]) -> None:
    folder, outcome = classifier
    losses, errors = validated(folder), validated(folder, "error")
    best = min(errors, key=lambda update: errors[update])
    assert outcome.record["best_update"] == best == 12 < min(losses, key=lambda update: losses[update])
    assert outcome.record["best_valid_loss"] == pytest.approx(losses[best], rel=1e-5)
    assert load_checkpoint(folder / "checkpoints" / "best.ckpt")["global_step"] == best


@pytest.fixture(scope="module")
def captioner(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A captioner's run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "captioner"
    return folder, train(folder, **CAPTIONS)


@pytest.mark.parametrize("point", ["train:1", "valid:12", "save:4", "train:13", "valid:35", "save:8", "end:1"])
def test_a_killed_captioner_ends_the_same(
    train: Server, captioner: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    """With the places that it draws in training, and the moving average that is a buffer of its model."""
    assert train(tmp_path / "run", kill=point, **CAPTIONS).status == -signal.SIGKILL
    assert train(tmp_path / "run", **CAPTIONS).record == captioner[1].record
    assert_same_run(captioner[0], tmp_path / "run")


def test_of_a_captioner_the_weights_of_the_highest_bleu_are_best(captioner: tuple[Path, Outcome]) -> None:
    folder, outcome = captioner
    losses, bleu = validated(folder), validated(folder, "bleu")
    best = max(bleu, key=lambda update: bleu[update])
    assert outcome.record["best_update"] == best == 18 < min(losses, key=lambda update: losses[update])
    assert outcome.record["stopped_because"] == "no better for 2 validations"
    assert outcome.record["best_valid_loss"] == pytest.approx(losses[best], rel=1e-5)
    states = [weights(folder, name)["model.baseline"] for name in ("best", "last")]
    assert states[0] != states[1] < 0


@pytest.fixture(scope="module")
def language_model(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A language model's run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "language"
    return folder, train(folder, **LANGUAGE)


@pytest.mark.parametrize("point", ["train:1", "train:9", "train:11", "valid:6", "save:3", "train:13", "end:1"])
def test_a_killed_language_model_ends_the_same(
    train: Server, language_model: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    """It is killed inside of a pass and continued there: after six batches, or after the second of the next pass."""
    assert train(tmp_path / "run", kill=point, **LANGUAGE).status == -signal.SIGKILL
    resumed = train(tmp_path / "run", **LANGUAGE)
    assert resumed.record == language_model[1].record
    assert ("continuing from update" in resumed.output) == (point != "train:1")
    assert_same_run(language_model[0], tmp_path / "run")
    ends = [load_checkpoint(run / "checkpoints" / "last.ckpt") for run in (language_model[0], tmp_path / "run")]
    assert_close(*(end["memory"] for end in ends), rtol=0, atol=0)


def test_what_is_remembered_decides_how_a_language_model_is_trained(
    train: Server, language_model: tuple[Path, Outcome], tmp_path: Path
) -> None:
    assert train(tmp_path / "run", **LANGUAGE | {"memory": 0}).status == 0
    first, second = weights(language_model[0], "last"), weights(tmp_path / "run", "last")
    assert [name for name in first if torch.equal(first[name], second[name])] == []


@pytest.mark.parametrize("point", ["train:15", "train:23"])
def test_segments_whose_gradients_are_accumulated_survive_a_kill(train: Server, tmp_path: Path, point: str) -> None:
    settings = LANGUAGE | {"updates": 12, "accumulate": 2, "loss_on": "last_half"}
    undisturbed = train(tmp_path / "whole", **settings)
    assert train(tmp_path / "run", kill=point, **settings).status == -signal.SIGKILL
    assert train(tmp_path / "run", **settings).record == undisturbed.record
    assert_same_run(tmp_path / "whole", tmp_path / "run")


@pytest.fixture(scope="module")
def sequence_model(train: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A run of a model of sequences that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "sequences"
    return folder, train(folder, **SEQUENCES)


@pytest.mark.parametrize("point", ["train:1", "train:9", "train:11", "valid:3", "save:3", "train:13", "end:1"])
def test_a_killed_model_of_sequences_ends_the_same(
    train: Server, sequence_model: tuple[Path, Outcome], tmp_path: Path, point: str
) -> None:
    """With the letters that are masked, and what the model draws at every update, which is a buffer."""
    assert train(tmp_path / "run", kill=point, **SEQUENCES).status == -signal.SIGKILL
    assert train(tmp_path / "run", **SEQUENCES).record == sequence_model[1].record
    assert_same_run(sequence_model[0], tmp_path / "run")
    assert validated(tmp_path / "run", "error").keys() == validated(tmp_path / "run").keys() == {6, 12, 18}


@pytest.mark.parametrize("point", ["train:15", "train:23"])
def test_a_model_of_sequences_whose_batches_accumulate_survives_a_kill(
    train: Server, tmp_path: Path, point: str
) -> None:
    settings = SEQUENCES | {"updates": 12, "accumulate": 2}
    undisturbed = train(tmp_path / "whole", **settings)
    assert train(tmp_path / "run", kill=point, **settings).status == -signal.SIGKILL
    assert train(tmp_path / "run", **settings).record == undisturbed.record
    assert_same_run(tmp_path / "whole", tmp_path / "run")
