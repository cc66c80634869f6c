"""The scales of a replication, and the numbers behind every verdict.

Frozen plans have all of these numbers but the last ones, which are younger.
"""

from typing import Literal, get_args

Scale = Literal["smoke", "quick", "bench", "paper_scale"]
SCALES: tuple[str, ...] = get_args(Scale)
"""From the smallest to the largest."""
TESTS = "smoke"
"""The scale that tests the pipeline and decides no claim."""
ALPHA = 0.05
"""Chance of any false verdict on a paper, over all attempts; half of it on either side."""
FEWEST_SEEDS = 5
"""Paired seeds that a primary comparison needs, and a confirmation."""
LEARNED = 0.8
"""Share of a variant's seeds that must reach the floor of its task."""
LEFT = 0.5
"""Share of the gap at half of the updates, and of the effect with twice the updates, that must be left."""
DOUBLED_SEEDS = 3
"""Seeds that a comparison with twice the updates needs."""
AGREE = 0.5
"""Rank correlation between the seeds' orders of the variants that a correlation over variants needs."""
PILOTS = 3
"""Pilot seeds by which the side of the paper must have been tuned before a claim is contradicted."""
CONFIRMING = 1000
"""The first of the seeds that confirm a verdict; they take no part in reaching it."""
