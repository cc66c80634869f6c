"""Checkpoints and arrays from elsewhere run no code: each is refused in a sentence, by every stage that reads it."""

import errno
import os
import pickle
import re
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import replications  # noqa: F401  before a project of toys puts its own in its place
from shared.data.storage import load_arrays, save_arrays
from shared.pipeline.__main__ import main
from shared.pipeline.runs import check_weights
from shared.tasks.captioning import trial as captioning_trial
from tests.data.odd import EXAMPLES, NAME, PIECE
from tests.data.test_fuzz_binary import pictures
from tests.pipeline.toys import SEEDS, copy, enter
from tests.refused import assert_refused

VARIANT = "long"


class Evil:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def paper(made, tmp_path, monkeypatch):
    """A copy that a test may spoil."""
    return copy("translation", made("translation"), tmp_path / "project", monkeypatch)


def checkpoints(paper):
    """The folder of those of the first seed."""
    return paper.runs / VARIANT / "train" / f"seed{SEEDS[0]}" / "checkpoints"


def refusal(paper, stage, capsys):
    """What the command of a stage says that refuses a checkpoint."""
    if stage == "train":
        checkpoints(paper).with_name("run.json").unlink()
    capsys.readouterr()
    assert main([stage, f"{paper.name}.{VARIANT}", *(["anna"] if stage == "try" else []), "--scale", "smoke"]) == 2
    return capsys.readouterr().err


SPOILED = {
    "plain pickle": lambda whole, weights, evil: pickle.dumps(evil),
    "a page": lambda whole, weights, evil: b"<!DOCTYPE html><html></html>",
    "pickled code": lambda whole, weights, evil: evil,
    "code among the weights": lambda whole, weights, evil: whole | {"state_dict": weights | {"model.say.bias": evil}},
    "code beside the weights": lambda whole, weights, evil: whole | {"note": evil},
    "a list": lambda whole, weights, evil: [1, 2],
    "no weights": lambda whole, weights, evil: {key: whole[key] for key in whole if key != "state_dict"},
    "weights of nothing": lambda whole, weights, evil: whole | {"state_dict": {}},
    "weights of other sizes": lambda whole, weights, evil: (
        whole | {"state_dict": {key: weights[key][:1] for key in weights}}
    ),
    "a text for weights": lambda whole, weights, evil: whole | {"state_dict": "weights"},
}


def spoil(path, how, marker):
    """Put something else in the place of a checkpoint."""
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-1000])
        return
    whole = torch.load(path, weights_only=True)
    content = SPOILED[how](whole, whole["state_dict"], Evil(marker))
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("how", [*SPOILED, "cut"])
@pytest.mark.parametrize("stage", ["train", "evaluate", "try"])
def test_a_checkpoint_of_another_kind_is_refused_and_runs_nothing(paper, capsys, tmp_path, stage, how):
    marker = tmp_path / "made by a checkpoint"
    for name in ("last", "best"):
        spoil(checkpoints(paper) / f"{name}.ckpt", how, marker)
    said = refusal(paper, stage, capsys)
    assert not marker.exists()
    assert re.search(rf"seed ?{SEEDS[0]}\b", said)
    assert "Traceback" not in said


def overwrite_weights(path):
    """Put other bytes in the place of the largest tensor, as a failing disk does; torch would load them."""
    with zipfile.ZipFile(path) as archive:
        tensors = [member for member in archive.infolist() if "/data/" in member.filename]
        weights = archive.read(max(tensors, key=lambda member: member.file_size))
    content = path.read_bytes()
    path.write_bytes(content.replace(weights, bytes(byte ^ 1 for byte in weights), 1))
    assert torch.load(path, weights_only=True)


@pytest.mark.parametrize(("stage", "name"), [("train", "last"), ("evaluate", "best"), ("try", "best")])
def test_weights_that_have_changed_since_they_were_written_are_refused(paper, capsys, stage, name):
    overwrite_weights(checkpoints(paper) / f"{name}.ckpt")
    place = re.escape(f"train/seed{SEEDS[0]}/checkpoints/{name}.ckpt")
    wrong = r"is damaged; delete it and train again\."
    assert re.search(f"{place} {wrong}", refusal(paper, stage, capsys))


@pytest.mark.parametrize("how", ["whole", "a page", "cut"])
def test_whole_checkpoints_pass_and_those_that_are_no_archive_are_left_to_their_reader(paper, tmp_path, how):
    path = checkpoints(paper) / "best.ckpt"
    if how != "whole":
        spoil(path, how, tmp_path)
    assert check_weights(path) is None


def test_a_checkpoint_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(zipfile, "ZipFile", refuse)  # whoever is root may read everything
    with pytest.raises(PermissionError):  # which the command line and the workers put into words
        check_weights(tmp_path / "a.ckpt")


@pytest.mark.parametrize(("at", "value"), [(8, 99), (6, 1)])
def test_an_overwritten_header_of_an_archive_is_damage(tmp_path, at, value):
    """Of the first member in the directory at the end: the kind of compression, and the mark of a password."""
    path = tmp_path / "a.ckpt"
    torch.save({"weights": torch.ones(9)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\1\2") + at + 2] = value
    path.write_bytes(content)
    assert_refused(r"a\.ckpt is damaged.*; delete it and train again\.", check_weights, path)


def test_arrays_hold_numbers_alone(tmp_path):
    marker = tmp_path / "made by an array"
    save_arrays(tmp_path, {"a": np.arange(3)})
    np.save(tmp_path / "a.npy", np.array([Evil(marker)], dtype=object), allow_pickle=True)
    assert_refused("cannot be read", load_arrays, tmp_path, ["a"])
    assert not marker.exists()


@pytest.fixture
def tried(made, monkeypatch, capsys):
    """From a kind and an input to the exit status and what is printed, an error without the word that begins it."""
    monkeypatch.setattr(captioning_trial, "fetch", lambda dataset: None)

    def asked(kind, text):
        enter(made(kind), monkeypatch)
        capsys.readouterr()
        status = main(["try", f"toy_{kind}.short", "--scale", "smoke", "--", text])
        printed = capsys.readouterr()
        return status, printed.err if status else printed.out

    return asked


@EXAMPLES
@given(drawn=pictures(), cut=st.none() | st.integers(0, 60))
def test_a_picture_of_any_form_has_a_caption_and_what_is_none_is_refused(drawn, cut, tried, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "picture.png"
    content = b"" if cut == 0 else drawn[0] if cut is None else drawn[0][:-cut]
    path.write_bytes(content)
    status, printed = tried("captioning", str(path))
    if cut is None:
        assert status == 0, printed
    if status:
        assert printed.startswith(f"error: '{path}' cannot be read as a picture (")
        assert printed.endswith(" for a picture of the test split.\n")
    else:
        assert "Output" in printed


NUMBERS = ["3", "1 4", "3,1,4", " 2\n6\t", "003", "٣ 1", "8", "-1 2", "1.5", "1e3", "1;2", "9" * 5_000, "3 " * 9_000]
PATHS = ["test:", "/", "~", "a\0b", "\udce9", "https://e.org/a.png"]
ASKED = st.lists(PIECE | st.sampled_from(NUMBERS) | NAME | st.sampled_from(PATHS), max_size=3)


@EXAMPLES
@given(kind=st.sampled_from(["captioning", "sequences", "translation"]), asked=ASKED.map("".join))
def test_any_other_input_is_answered_or_refused_in_a_sentence(kind, asked, tried):
    status, printed = tried(kind, asked)
    numbers = re.fullmatch(r"\s*\d+([\s,]+\d+)*\s*", asked) and [int(each) for each in re.findall(r"\d{1,9}", asked)]
    if kind == "sequences":
        assert (status == 0) == bool(numbers and len(numbers) < 5 and all(0 < each < 7 for each in numbers))
    if kind == "captioning":
        assert (status == 0) == bool(re.fullmatch(r"\s*test:0*[0-7]\s*", asked))
    if status:
        assert printed.startswith("error: ")
        assert printed.endswith(".\n")
        assert len(printed.splitlines()) == 1
        assert len(printed) < 1_500
    else:
        assert "Output" in printed
