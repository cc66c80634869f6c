"""A run that two processes share is the run of one; either continues what the other began.

Weights differ by the order in which gradients are added up. In runs of two batches an update, whose sum has no order,
they are the same bits.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from shared.errors import ReplicationError
from shared.pipeline.files import alone
from shared.tasks.language.corpus import Stream
from shared.training.checkpoints import load_checkpoint
from shared.training.processes import Group
from tests.pipeline.scratch import ROOT, change_yaml, copy_files, pipeline
from tests.refused import assert_refused
from tests.tasks.language.toy_language_models import random_stream
from tests.training.together import CHANGED

SCALE = "replications/transformer/smoke/params.yaml"
TOGETHER = "tests.training.together"
TRAIN = ["shared.pipeline", "train", "transformer.corpus-base", "--scale", "smoke"]


def torchrun(arguments: list[str], folder: Path, machines: int) -> str:
    """Start a program in two processes, under one torchrun or under two that meet over TCP; what was said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", f"--nnodes={machines}", f"--nproc-per-node={2 // machines}",
        "--master-addr=127.0.0.1", f"--master-port={port}",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(
            [*command, f"--node-rank={rank}", "-m", *arguments], cwd=folder, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for rank in range(machines)
    ]  # fmt: skip
    said = "\n".join(process.communicate(timeout=600)[0] for process in started)
    assert [process.returncode for process in started] == [0] * machines, said
    return said


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of one process and of two, and those that one began and two ended, and the other way round."""
    folder = tmp_path_factory.mktemp("runs")
    one, two, begun_by_one, begun_by_two = (str(folder / name) for name in ("one", "two", "one-two", "two-one"))
    alone = [sys.executable, "-m", TOGETHER]
    subprocess.run([*alone, one, f"{begun_by_one}:early"], cwd=ROOT, check=True)
    torchrun([TOGETHER, two, f"{begun_by_two}:early", begun_by_one], ROOT, machines=1)
    subprocess.run([*alone, begun_by_two], cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.parametrize("name", ["two", "one-two", "two-one"])
def test_processes_that_share_a_run_train_what_one_does(runs: Path, name: str, kind: str) -> None:
    ours, theirs = runs / "one" / kind, runs / name / kind
    assert (ours / "curve.csv").read_text() == (theirs / "curve.csv").read_text()
    checkpoints = sorted(path.name for path in (ours / "checkpoints").iterdir())
    assert checkpoints == sorted(path.name for path in (theirs / "checkpoints").iterdir())
    for checkpoint in checkpoints:
        one, other = (load_checkpoint(folder / "checkpoints" / checkpoint) for folder in (ours, theirs))
        same_bits = kind in ("translation", "classification", "captioning")
        tolerance = {"rtol": 0.0, "atol": 0.0} if same_bits else {"rtol": 0.0, "atol": 1e-5}
        assert_close(one["state_dict"], other["state_dict"], **tolerance)
        if "memory" in one:
            assert_close(one["memory"], other["memory"], rtol=0.0, atol=1e-5)


def test_tokens_of_all_processes_are_counted_once(runs: Path) -> None:
    for kind in CHANGED:
        one, two = (load_checkpoint(runs / name / kind / "checkpoints" / "last.ckpt") for name in ("one", "two"))
        assert one["tokens"] == two["tokens"] > 0


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vaswani et al. at smoke scale: updates of corpus-base have two batches, and here it has two seeds."""
    folder = copy_files(tmp_path_factory.mktemp("shared") / "project")
    change_yaml(folder / SCALE, lambda content: content["tasks"]["corpus"].update(seeds=[1, 2]))
    pipeline(folder, *(f"{stage} transformer.corpus --scale smoke" for stage in ("fetch", "prepare")))
    return folder


def test_the_train_stage_is_shared_and_recorded(project: Path) -> None:
    train = project / "runs" / "smoke" / "transformer" / "corpus-base" / "train"
    assert torchrun(TRAIN, project, machines=2).count("updates in") == 2
    assert [json.loads((train / seed / "run.json").read_text())["processes"] for seed in ("seed1", "seed2")] == [2, 2]
    shared = load_checkpoint(train / "seed1" / "checkpoints" / "last.ckpt")["state_dict"]
    (train / "seed1" / "checkpoints" / "last.ckpt").unlink()
    said = pipeline(project, " ".join(TRAIN[1:]))
    assert "transformer.corpus-base seed 2: finished before, kept." in said
    assert json.loads((train / "seed1" / "run.json").read_text())["processes"] == 1
    alone = load_checkpoint(train / "seed1" / "checkpoints" / "last.ckpt")["state_dict"]
    assert_close(alone, shared, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_are_dealt_out_in_turn(size: int) -> None:
    dealt = [Group(rank, size, 1).deal(iter(range(24)), 12, continues=False) for rank in range(size)]
    assert {per_update for _, per_update in dealt} == {12 // size}
    for rank, (batches, _) in enumerate(dealt):
        assert [*batches] == [read * size + rank for read in range(24 // size)]  # by which they are seeded


@pytest.mark.parametrize("size", [1, 2, 4])
def test_columns_of_a_text_are_shared_out_and_joined(size: int) -> None:
    text = random_stream(200, seed=1)
    whole = next(text.training_batches(columns=4, length=5, seed=1))
    parts = [next(_columns(text, Group(rank, size, 1))) for rank in range(size)]
    assert torch.equal(torch.cat([part.targets for part in parts]), whole.targets)
    assert sum(part.tokens for part in parts) == whole.tokens
    assert all(part.reset == whole.reset for part in parts)


def _columns(text: Stream, group: Group):
    return group.deal(text.training_batches(columns=4, length=5, seed=1), 1, continues=True)[0]


@pytest.mark.parametrize(("share", "sentence"), [
    (
        lambda: Group(0, 3, 1).deal(iter(()), 4, continues=False),
        r"an update of 4 batches .* cannot be shared equally by 3 processes",
    ),
    (lambda: next(_columns(random_stream(200, seed=1), Group(0, 3, 1))), r"4 columns of text .* by 3 processes"),
])  # fmt: skip
def test_what_cannot_be_shared_equally_is_refused(share: Callable[[], object], sentence: str) -> None:
    assert_refused(sentence, share)


def test_without_torchrun_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert Group.here() == Group(0, 1, 1)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert Group.here() == Group(1, 4, 2)


def test_a_stage_that_is_not_shared_is_refused_under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ReplicationError, match="one process makes the reports of toy; start it without torchrun"):
        alone("reports")(lambda name, scale: None)("toy", "smoke")
