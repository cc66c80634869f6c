"""Relative effective context length, by hand and against the words of the paper's appendix C."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from replications.transformer_xl.figures import relative_effective_context_length

CONTEXTS = [10, 20, 30, 40]


def as_written(losses, contexts, r, threshold=0.01):
    """Appendix C, word by word; l[i][c][t] is the loss of model i on position t with the context c."""
    models = list(losses)
    positions = range(losses[models[0]].shape[1])
    found = {}
    for i in models:
        k = 0
        while k + 1 < len(contexts):
            b = {t: min(losses[j][k][t] for j in models) for t in positions}
            top = sorted(positions, key=lambda t: -b[t])[: max(1, round(r * len(positions)))]
            f_short = sum(min(b[t], losses[i][k][t]) for t in top) / len(top)
            f_long = sum(min(b[t], losses[i][k + 1][t]) for t in top) / len(top)
            if (math.exp(f_short) - math.exp(f_long)) / math.exp(f_short) < threshold:
                break
            k += 1
        found[i] = contexts[k]
    return found


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.1, 0.5, 1.0]), st.data())
def test_it_is_what_the_paper_says(models, contexts, positions, r, data):
    tenths = arrays(np.int64, (contexts, positions), elements=st.integers(0, 60))
    losses = {f"m{i}": data.draw(tenths) / 10 for i in range(models)}
    found = relative_effective_context_length(losses, CONTEXTS[:contexts], r)
    assert found == as_written(losses, CONTEXTS[:contexts], r)
