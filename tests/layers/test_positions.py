"""Sinusoids are those of section 3.5 wherever they stand, and learned positions end where they end."""

import math

import pytest
import torch

from shared.layers.positions import LearnedPositions, SinusoidalPositions, sinusoids
from tests.refused import assert_refused

F64 = torch.float64


@pytest.mark.parametrize("width", [2, 6, 512])
def test_the_equation_by_hand(width):
    positions = [0, 1, 2, 17, 63, 64, 4095]
    found = sinusoids(torch.tensor(positions), width)
    assert found.shape == (len(positions), width)
    for row, position in zip(found.tolist(), positions, strict=True):
        for i in range(width // 2):
            angle = position / 10_000 ** (2 * i / width)
            assert row[2 * i : 2 * i + 2] == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


@pytest.mark.parametrize("position", [123_456, 10**7 + 3])
def test_far_positions_are_as_accurate_as_near_ones(position):
    """Rounding the angle to float32 would be wrong by more than a tenth of a turn here."""
    width = 64
    angles = [position / 10_000 ** (2 * i / width) for i in range(width // 2)]
    expected = [f(angle) for angle in angles for f in (math.sin, math.cos)]
    assert sinusoids(torch.tensor([position]), width)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_table_grows_and_keeps_its_values():
    positions = SinusoidalPositions(width=8)
    expected = sinusoids(torch.arange(500), 8)
    near = positions(3, 9).clone()
    assert torch.equal(positions(60, 131), expected[60:131])
    assert torch.equal(positions(3, 9), near)
    assert torch.equal(near, expected[3:9])
    assert torch.equal(positions(499, 500), expected[499:])
    assert positions(7, 7).shape == (0, 8)


def test_a_grown_table_is_of_the_model_s_type_and_no_part_of_its_state():
    positions = SinusoidalPositions(width=8).to(F64)
    assert positions(0, 300).dtype == F64
    assert not positions.state_dict()
    assert not list(positions.parameters())
    torch.testing.assert_close(positions(250, 300), sinusoids(torch.arange(250, 300), 8).to(F64))


def test_a_long_sequence_leaves_the_buffers_as_they_were():
    """Processes that share a run broadcast their buffers, so these must not depend on what a process has read."""
    positions = SinusoidalPositions(width=8)
    before = [buffer.shape for buffer in positions.buffers()]
    positions(0, 1_000)
    assert before
    assert [buffer.shape for buffer in positions.buffers()] == before


def test_learned_positions_are_rows_of_a_parameter():
    positions = LearnedPositions(count=6, width=4)
    assert torch.equal(positions(2, 6), positions.table[2:6])
    positions(2, 4).sum().backward()
    assert positions.table.grad.any(1).tolist() == [False, False, True, True, False, False]


def test_learned_positions_begin_as_large_as_embeddings_before_their_scaling():
    assert LearnedPositions(count=2000, width=64).table.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_there_are_only_so_many_learned_positions():
    positions = LearnedPositions(count=6, width=4)
    assert_refused("there are 6 learned positions, and a sequence has 7 symbols", positions, 6, 7)
