import itertools
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.homology import AMINO_ACIDS, families

few = settings(max_examples=60, deadline=None)
texts = st.lists(st.text("ACDX", max_size=12), min_size=1, max_size=8)


def words(text, k):
    """Every run of k letters that are all standard amino acids."""
    runs = {text[i : i + k] for i in range(len(text) - k + 1)}
    return {word for word in runs if set(word) <= set(AMINO_ACIDS)}


def sequence(generator, length):
    return "".join(generator.choices(AMINO_ACIDS, k=length))


def mutated(generator, text, share):
    return "".join(generator.choice(AMINO_ACIDS) if generator.random() < share else x for x in text)


def by_hand(sequences, k, jaccard, containment, kin):
    """Families by definition: the first member of whatever links connect."""
    sets = [words(text, k) for text in sequences]
    home = list(range(len(sequences)))
    for i, j in itertools.combinations(range(len(sequences)), 2):
        common, smaller = len(sets[i] & sets[j]), min(len(sets[i]), len(sets[j]))
        near = common and (common / len(sets[i] | sets[j]) >= jaccard or common / smaller >= containment)
        if near or (kin[i] is not None and kin[i] == kin[j]):
            home = [min(home[i], home[j]) if x in (home[i], home[j]) else x for x in home]
    return home


@few
@given(texts, st.integers(1, 4), st.floats(0.01, 1), st.floats(0.01, 1), st.randoms(use_true_random=False))
def test_families_are_what_links_connect(sequences, k, jaccard, containment, generator):
    kin = [generator.choice([None, "a", "b"]) if generator.random() < 0.4 else None for _ in sequences]
    found = families(sequences, k=k, jaccard=jaccard, containment=containment, kin=kin)
    assert found.tolist() == by_hand(sequences, k, jaccard, containment, kin)


def test_more_sequences_than_are_compared_at_once(monkeypatch):
    generator = random.Random(0)
    sequences = [sequence(generator, 30) for _ in range(40)]
    sequences += sequences[::-1]
    whole = families(sequences, k=5, jaccard=0.5, containment=1.0)
    assert whole.tolist() == [*range(40), *range(39, -1, -1)]
    monkeypatch.setattr("shared.data.homology._ROWS", 7)
    assert np.array_equal(families(sequences, k=5, jaccard=0.5, containment=1.0), whole)
