"""Batches of sequences of whatever."""

import pytest
import torch

from shared.tasks.sequences.batches import SequenceBatch

INPUTS = torch.tensor([[1, 2, 3], [1, 2, 0]])
READ = INPUTS != 0


@pytest.mark.parametrize("mask", [None, READ])
def test_a_batch_goes_to_a_device_as_a_whole(mask):
    batch = SequenceBatch(INPUTS, INPUTS + 1, READ, mask)
    moved = batch.to("meta")
    parts = [moved.inputs, moved.targets, moved.scored, *([] if mask is None else [moved.mask])]
    assert [part.device.type for part in parts] == ["meta"] * len(parts)
    same = batch.to("cpu")
    assert torch.equal(same.inputs, INPUTS)
    assert torch.equal(same.targets, INPUTS + 1)
    assert torch.equal(same.scored, READ)
    assert (moved.mask is None) == (same.mask is None) == (mask is None)


def test_what_is_scored_is_counted():
    scored = torch.tensor([[False, True, True], [False, True, False]])
    assert SequenceBatch(INPUTS, INPUTS, scored, READ).tokens == 3
