"""What this machine's processor cannot do."""

from __future__ import annotations

from functools import cache

import pytest
import torch


@cache
def multiplies_bfloat16_in_lstms() -> bool:
    """oneDNN has LSTMs in bfloat16 only for processors with AVX-512; there is no question to ask but a try."""
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        return False
    return True


def skip_without_bfloat16_lstm() -> None:
    """Skip the test that calls this where LSTMs cannot be computed in bfloat16."""
    if not multiplies_bfloat16_in_lstms():
        pytest.skip("oneDNN has no LSTM in bfloat16 for this processor")
