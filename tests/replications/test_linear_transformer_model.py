"""The Linear Transformer and its rivals as recurrent networks, and pictures that they have drawn."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.linear_transformer.report import DRAWN
from shared.tasks.examples import read_arrays
from tests.refused import assert_refused
from tests.replications.small_sequences import TRANSFORMERS, small, symbols

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
