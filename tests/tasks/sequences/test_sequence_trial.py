"""Sequences of pixels and letters that are completed for a reader."""

import numpy as np
import pytest
import torch
from PIL import Image

from shared.tasks.sequences.corpus import PreparedSequences
from shared.tasks.sequences.pixels import pictures
from shared.tasks.sequences.settings import VOCABULARY
from shared.tasks.sequences.trial import ADDED, try_input
from shared.tasks.tried import UNSEEN
from tests.refused import assert_refused
from tests.tasks.in_process import run_config
from tests.tasks.sequences.toy_sequence_readers import MeanReader


@pytest.fixture
def pixels(prepared):
    corpus = {"of": "pixels", "levels": 8}
    return prepared(corpus), run_config("sequences", corpus)


def test_the_upper_half_of_a_test_picture_is_given_and_kept(pixels):
    text, run = pixels
    tried = try_input(MeanReader(text.symbols, True, levels=8), text, run, "test:1", 3)
    given, completed, true = (each.pixels for each in tried.pictures)
    expected = pictures(text.split("test").batch(np.array([1])).targets[0].numpy(), (4, 4, 1), 8)
    assert (true == expected).all()
    assert (completed[:2] == expected[:2]).all()
    assert (given[:2] == expected[:2]).all()
    assert (given[2:] == UNSEEN).all()
    assert tried.output == "8 of 16 pixels, row by row after the 8 given"


def test_pixels_may_be_given_as_numbers_or_as_a_file(pixels, tmp_path):
    text, run = pixels
    model = MeanReader(text.symbols, True, levels=8)
    tried = try_input(model, text, run, "7 0, 7", 3)
    assert tried.pictures[1].pixels.reshape(-1, 3)[:3, 0].tolist() == [255, 0, 255]
    picture = np.zeros((8, 8), dtype=np.uint8)
    picture[:4] = 255
    Image.fromarray(picture).save(tmp_path / "p.png")
    tried = try_input(model, text, run, str(tmp_path / "p.png"), 3)
    assert (tried.pictures[2].pixels[0] == 255).all()
    assert (tried.pictures[2].pixels[3] == 0).all()


@pytest.mark.parametrize(("asked", "message"), [
    ("test:23", "from test:0 to test:22"), ("1 8", "8 is no symbol"), ("1 " * 16, "the input has 16 symbols"),
    ("none.png", "there is no file .none.png"), ("", "the input is empty"),
])  # fmt: skip
def test_what_is_no_picture_is_refused(asked, message, pixels):
    text, run = pixels
    assert_refused(message, try_input, None, text, run, asked, 3)


def proteins(masked):
    run = run_config("sequences", {"of": "proteins", "masked": masked, "length": 100})
    return PreparedSequences(None, run.corpus, {}), run, MeanReader(VOCABULARY, causal=not masked)


def test_a_protein_is_prolonged():
    text, run, model = proteins(False)
    tried = try_input(model, text, run, "mkta", 3)
    assert tried.input == "MKTA"
    assert len(tried.output) <= ADDED
    assert model.reads[-1][0][1:5] == model.reads[0][0][1:5]  # the letters given, after the start symbol
    assert tried == try_input(model, text, run, "MKTA", 4)


def test_gaps_are_filled_with_the_likeliest_letters_and_the_rest_is_kept():
    text, run, model = proteins(True)
    tried = try_input(model, text, run, "MK?A", 3)
    assert tried.output.startswith("MK")
    assert tried.output.endswith("A")
    assert tried.output[2:-1] == tried.shares[0][0]
    with torch.inference_mode():
        shares = model.output.log_probs(model(torch.tensor(model.reads[-1]))[0, 2]).exp()
    assert tried.shares[0][1] == pytest.approx(float(shares.max()), rel=1e-5)
    assert "Letter 3: " in tried.lines[0]
    for asked, message in (("MKA", "0 gaps in 3 letters"), ("??", "2 gaps in 2"), ("MK1?", "'1' stands for no")):
        assert_refused(message, try_input, model, text, run, asked, 3)
