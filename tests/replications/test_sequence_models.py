"""What models of sequences of both papers must do, each beside its rivals; settings that do not suit one another."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.linear_transformer import replication as linear_transformer
from replications.linear_transformer.report import DRAWN
from replications.performer import replication as performer
from shared.tasks.examples import read_arrays
from shared.tasks.settings import check_model
from tests.refused import assert_refused
from tests.replications.small_sequences import (
    F64,
    MODELS,
    PERFORMERS,
    SIZES,
    TRANSFORMERS,
    VOCABULARY,
    N,
    drawn,
    padded,
    small,
    symbols,
)
from tests.tasks.in_process import run_config

models = pytest.mark.parametrize("name", MODELS)
both_ways = pytest.mark.parametrize("causal", [True, False], ids=["causal", "both ways"])
SORTED = ("lsh, 1 round", "lsh, 4 rounds")
"""Those whose sums are of one another's order, which later symbols change, and so the last digit."""


@models
def test_a_resumed_model_draws_the_same_and_other_updates_draw_otherwise(name):
    (first, second), inputs = (small(name) for _ in range(2)), symbols(2, 9)
    assert first.origin != second.origin
    first.at_update(3)
    second.load_state_dict(first.state_dict())
    third = drawn(first)
    torch.manual_seed(5)
    first.at_update(4)
    torch.manual_seed(6)
    second.at_update(4)
    assert torch.equal(second(inputs), first(inputs))
    fourth, again = drawn(first), drawn(second)
    random = name in SORTED or name in ("positive", "hyperbolic", "trigonometric")
    assert bool(fourth) == random
    for key, numbers in fourth.items():
        assert torch.equal(numbers, again[key])
        assert not torch.isclose(numbers, third[key]).any()
    if random:  # no two layers have the same
        own = [numbers for _, numbers in sorted(fourth.items())]
        assert not torch.isclose(own[0], own[1]).any()


@pytest.mark.parametrize(
    ("kind", "name", "changes"),
    [
        ("softmax", "linear", {}), ("exact", "relu", {}), ("exact", "hyperbolic", {}), ("exact", "trigonometric", {}),
        *(("exact", "positive", {**each}) for each in ({}, {"features": 50}, {"directions": "iid"}, {"swap_at": 3})),
    ],
    ids=str,
)  # fmt: skip
def test_with_one_seed_all_kinds_of_attention_begin_with_the_same_weights(kind, name, changes):
    """FAVOR+ adds none."""
    models = []
    for attention, more in ((kind, {}), (name, changes)):
        torch.manual_seed(4)
        models.append(small(attention, std=None, **more))
    softmax, other = (dict(model.named_parameters()) for model in models)
    assert softmax.keys() == other.keys()
    assert all(torch.equal(weight, other[key]) for key, weight in softmax.items())
    assert models[0].origin == models[1].origin


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@models
@both_ways
def test_a_gpu_computes_the_same(name, causal):
    model = small(name, causal=causal)
    inputs, mask = padded([70, 33])
    found = []
    for device in ("cpu", "cuda"):
        model.to(device)
        found.append(model(inputs.to(device), mask.to(device)).cpu()[mask])
    torch.testing.assert_close(found[1], found[0], atol=1e-8, rtol=1e-8)
    model.at_update(1)
    assert model(inputs.cuda(), mask.cuda()).isfinite().all()


ESTIMATORS = ("positive", "hyperbolic", "trigonometric")
estimators = pytest.mark.parametrize("name", ESTIMATORS)
estimated = pytest.mark.parametrize("name", [name for name in PERFORMERS if name != "exact"])


def with_weights_of(model, name, **changes):
    """Another kind of attention on the same weights; what is drawn is its own."""
    other = small(name, **changes)
    found = other.load_state_dict(dict(model.named_parameters()), strict=False)
    assert not found.unexpected_keys
    return other


def exact(model):
    return [bool(attention.exact) for attention in model.attentions]


# When features are drawn


@estimators
@pytest.mark.parametrize(("every", "at"), [(1, {0, 1, 2, 3, 4, 5, 6}), (3, {0, 3, 6}), (None, set())])
def test_features_are_drawn_anew_as_often_as_is_asked(name, every, at):
    model, before = small(name, redraw_every=every), None
    for number in range(7):
        before = drawn(model)
        model.at_update(number)
        after = drawn(model)
        changed = {not torch.equal(after[key], numbers) for key, numbers in before.items()}
        assert changed == {number in at}


@estimators
def test_what_is_drawn_is_of_the_settings(name):
    model = small(name, features=4, redraw_every=1)
    model.at_update(0)
    for attention in model.attentions:
        w = attention.features.w
        norms = w.norm(dim=1, keepdim=True)
        torch.testing.assert_close((w / norms) @ (w / norms).T, torch.eye(4, dtype=F64), atol=1e-6, rtol=0)
    w = small(name, features=4, directions="iid").attentions[0].features.w
    assert (w @ w.T).fill_diagonal_(0).abs().max() > 1e-3


# When attention is replaced


@estimated
@both_ways
def test_attention_is_exact_until_it_is_swapped_and_then_has_features(name, causal):
    inputs, mask = padded([9, 4])
    model = small(name, causal=causal, swap_at=2, redraw_every=None)
    softmax, performer = (with_weights_of(model, kind, causal=causal) for kind in ("exact", name))
    performer.load_state_dict(drawn(model), strict=False)
    for number in range(5):
        model.at_update(number)
        assert exact(model) == [number < 2] * N
        expected = (softmax if number < 2 else performer)(inputs, mask)
        torch.testing.assert_close(model(inputs, mask)[mask], expected[mask], atol=1e-12, rtol=1e-12)
    assert not torch.isclose(softmax(inputs, mask), performer(inputs, mask)).all()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_checkpoint_remembers_whether_attention_is_exact(number):
    """Of a run that ends before, at or after the swap, and of one that is continued there."""
    inputs = symbols(2, 9)
    model, judged = (small("positive", swap_at=2) for _ in range(2))
    for update in range(number + 1):
        model.at_update(update)
    judged.load_state_dict(model.state_dict())
    assert exact(judged) == [number < 2] * N
    assert torch.equal(judged(inputs), model(inputs))
    for each in (model, judged):
        each.at_update(number + 1)
    assert exact(judged) == [number + 1 < 2] * N
    assert torch.equal(judged(inputs), model(inputs))


RECURRENT = [name for name in TRANSFORMERS if not name.startswith("lsh")]
recurrent = pytest.mark.parametrize("name", RECURRENT)
everyone = pytest.mark.parametrize("name", TRANSFORMERS)
many = settings(max_examples=8)
seeds = st.integers(0, 2**31)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@everyone
@many
@given(given=st.integers(1, 5), length=st.integers(1, 9), seed=seeds)
def test_what_is_generated_is_what_the_whole_prefix_gives_with_the_same_draws(name, given, length, seed):
    torch.manual_seed(seed)
    model, prefix = small(name), symbols(3, given)
    found = model.generate(prefix, length, seeded(seed))
    read, generator = prefix, seeded(seed)
    for _ in range(length):
        read = torch.cat((read, model.output.sample(model(read)[:, -1], generator).unsqueeze(1)), dim=1)
    assert found.dtype == torch.int64
    assert torch.equal(found, read[:, given:])


@recurrent
def test_sequences_may_be_as_long_as_the_model_is_built_for(name):
    model = small(name, max_length=9)
    found = model.generate(symbols(2, 3), 7, seeded())  # the last one drawn is not read
    assert found.shape == (2, 7)


@everyone
def test_training_goes_on_after_a_long_sequence_was_drawn(name):
    model = small(name)
    model.generate(symbols(1, 2), 70, seeded())
    inputs = symbols(1, 72)
    model.train().output(model(inputs), inputs).sum().backward()
    assert model.embedding.weight.grad.isfinite().all()


def test_a_damaged_file_of_pictures_is_refused(tmp_path):
    path = tmp_path / "pictures.npz"
    path.write_bytes(b"PK")
    assert_refused(r"pictures\.npz cannot be read", read_arrays, path, *DRAWN)
    np.savez(path, samples=np.zeros((1, 2, 2, 1), np.uint8))
    assert_refused(r"pictures\.npz cannot be read", read_arrays, path, *DRAWN)
    assert read_arrays(tmp_path / "none.npz", *DRAWN) == {}


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
