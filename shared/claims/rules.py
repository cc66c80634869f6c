"""The numbers behind every verdict; a frozen plan writes down all but the last, which came after the first plans."""

ALPHA = 0.05
"""Chance of any false verdict on a paper; half of it on either side."""
FEWEST_SEEDS = 5
"""Paired seeds that a primary comparison needs."""
LEARNED = 0.8
"""Share of a variant's seeds that must reach the floor of its task."""
LEFT = 0.5
"""Share of the gap at half of the updates, and of the effect with twice the updates, that must be left."""
DOUBLED_SEEDS = 3
"""Seeds that a comparison with twice the updates needs."""
AGREE = 0.5
"""Rank correlation between the seeds' orders of the variants that a correlation over variants needs."""
