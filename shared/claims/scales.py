"""The scales of a replication, from the smallest to the largest."""

from __future__ import annotations

from typing import Literal, get_args

Scale = Literal["smoke", "quick", "bench", "paper_scale"]
SCALES: tuple[str, ...] = get_args(Scale)
TESTS = "smoke"
"""The scale that tests the pipeline and decides no claim."""
