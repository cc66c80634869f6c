"""The Linear Transformer and its rivals as recurrent networks, and which settings they take."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replications.small_sequences import TRANSFORMERS, VOCABULARY, D, H, N, small, steps, symbols

RECURRENT = [name for name in TRANSFORMERS if not name.startswith("lsh")]
LINEAR = [name for name in RECURRENT if name.startswith("linear")]
recurrent = pytest.mark.parametrize("name", RECURRENT)
everyone = pytest.mark.parametrize("name", TRANSFORMERS)
many = settings(deadline=None, max_examples=8)
seeds = st.integers(0, 2**31)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# Equations (16) to (20)


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_state_is_of_one_size_and_earlier_ones_stay_as_they_are(name):
    model, inputs = small(name), symbols(2, 6)
    state, kept = model.initial_state(2), []
    for read in inputs.unbind(1):
        _, state = model.step(read, state)
        kept.append(state)
    key_size = D // H
    for number, after in enumerate(kept, 1):
        assert after.place == number
        assert [layer.sums.shape for layer in after.layers] == [(2, H, key_size, key_size + 1)] * N
    again, _ = model.step(inputs[:, 3], kept[2])
    torch.testing.assert_close(again, model(inputs[:, :4])[:, -1], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_a_recurrent_network_has_the_gradients_of_the_parallel_one(name):
    model, inputs = small(name).train(), symbols(2, 5)
    weights = [*model.parameters()]
    states = torch.stack([*steps(model, inputs)], dim=1)
    nats = (model.output(h, inputs).sum() for h in (states, model(inputs)))
    found, expected = (torch.autograd.grad(total, weights) for total in nats)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


# Drawing


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


# Sizes


def test_linear_and_softmax_attention_begin_with_the_same_weights():
    models = []
    for attention in ("linear", "softmax"):
        torch.manual_seed(4)
        models.append(small(attention, std=None))
    linear, softmax = (dict(model.named_parameters()) for model in models)
    assert linear.keys() == softmax.keys()
    assert all(torch.equal(weight, softmax[name]) for name, weight in linear.items())


@pytest.mark.parametrize("name", ["lsh, 1 round", "lsh, 4 rounds"])
def test_hashing_has_one_projection_for_queries_and_keys_and_no_other_parameters_less(name):
    hashed, linear = (sum(p.numel() for p in small(each).parameters()) for each in (name, "linear"))
    assert linear - hashed == N * D * (D + 1)


def test_embeddings_and_sinusoids_share_the_width_or_are_added():
    beside, added = small("linear, positions beside"), small("linear")
    assert beside.embedding.weight.shape == (VOCABULARY, D // 2)
    assert added.embedding.weight.shape == (VOCABULARY, D)
    counts = [sum(p.numel() for p in model.parameters()) for model in (added, beside)]
    assert counts[0] - counts[1] == VOCABULARY * D // 2


def test_a_mixture_of_logistics_has_a_level_for_every_symbol_but_the_start():
    pixels = small("linear, pixels")
    assert pixels.output.levels == VOCABULARY - 1
    assert small("linear").output.projection.out_features == VOCABULARY
