"""Settings of the models of sequences that do not suit one another are refused before any work."""

import pytest
import torch

from replications.linear_transformer import replication as linear_transformer
from replications.performer import replication as performer
from shared.tasks.settings import check_model
from tests.refused import assert_refused
from tests.replications.small_sequences import SIZES, VOCABULARY, small, symbols
from tests.tasks.in_process import run_config

COPIES = {
    "of": "copies", "dataset": "generated_copy", "shortest": 2, "longest": 4,
    "sequences": {"train": 9, "valid": 3, "test": 3},
}  # fmt: skip
PIXELS = {"of": "pixels", "dataset": "mnist", "levels": 8, "pool": 4}
PROTEINS = {"of": "proteins", "dataset": "generated_proteins", "length": 9}
PAPERS = {
    "linear": (linear_transformer, {"attention": "linear", "max_length": 49}),
    "performer": (performer, {"attention": "positive"}),
}


def check(paper, *, corpus=COPIES, evaluation=None, **model):
    replication, section = PAPERS[paper]
    updates = {"updates": 5, "validate_every": 5}
    sections = {"model": SIZES | section | model, "training": updates, "evaluation": evaluation or {}}
    run = run_config("sequences", corpus, **sections)
    check_model(replication.REPLICATION.settings, run)
    return run.checked_model(replication.settings.ModelConfig)


def test_what_suits_is_let_pass():
    assert check("linear", max_length=9).max_length == 9
    assert check("linear", corpus=PIXELS, output="logistics").max_length == 49
    assert check("linear", corpus=PROTEINS, max_length=9).output == "categorical"
    assert check("performer", swap_at=4).swap_at == 4
    assert check("performer", evaluation={"swapped": {"no-redraws": {"redraw_every": None}, "m_8": {"features": 8}}})


@pytest.mark.parametrize(("paper", "changes", "message"), [
    ("linear", {"max_length": 8}, "task 'toy': max_length 8 is less than the 9 symbols of the longest"),
    ("linear", {"corpus": PIXELS, "max_length": 48}, "max_length 48 is less than the 49 symbols"),
    ("linear", {"output": "logistics"}, "output: logistics is for levels of pixels only"),
    ("linear", {"corpus": PIXELS | {"dataset": "digits"}}, r"there is no card data/digits\.yaml"),
    ("linear", {"corpus": PIXELS | {"dataset": "snli"}}, r"data/snli\.yaml does not say how large a picture is"),
    ("linear", {"width": 7, "heads": 1}, r"width \(7\) must be a multiple of 2: sinusoids come in pairs"),
    ("linear", {"width": 6, "positions": "concatenated"}, r"width \(6\) must be a multiple of 4"),
    ("linear", {"width": 12, "positions": "rows and columns"}, r"width \(12\) must be a multiple of 8"),
    ("linear", {"width": 8, "max_length": 50, "positions": "rows and columns"}, r"max_length \(50\) is no square"),
    ("performer", {"width": 7, "heads": 1}, r"width \(7\) must be even"),
    ("performer", {"evaluation": {"swapped": {"?": {}}}}, "'evaluation.swapped.*match pattern"),
    ("linear", {"corpus": PIXELS, "evaluation": {"swapped": {"a": {}}}}, "leave out evaluation.swapped"),
])  # fmt: skip
def test_what_does_not_suit_is_refused(paper, changes, message):
    assert_refused(message, check, paper, **changes)


def test_a_model_that_takes_over_weights_after_the_swap_is_swapped_too():
    inputs = symbols(2, 9)
    trained, other = (small("positive", swap_at=2, redraw_every=None) for _ in range(2))
    trained.at_update(2)
    other.load_state_dict(dict(trained.named_parameters()), strict=False)
    before = other(inputs)
    other.at_update(5)  # as far as training went; it was never told of update 2
    assert not any(attention.exact for attention in other.attentions)
    assert not torch.isclose(before, other(inputs)).all()
    assert int(inputs.max()) < VOCABULARY
