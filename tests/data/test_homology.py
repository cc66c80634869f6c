import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.homology import AMINO_ACIDS, families

shares = st.floats(0.01, 1)
texts = st.lists(st.text("ACDX", max_size=12), min_size=1, max_size=8)


def words(text, k):
    """Every run of k letters that are all standard amino acids."""
    runs = {text[i : i + k] for i in range(len(text) - k + 1)}
    return {word for word in runs if set(word) <= set(AMINO_ACIDS)}


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


@given(texts, st.integers(1, 4), shares, shares, st.integers(1, 9), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_families_are_what_links_connect(sequences, k, jaccard, containment, rows, generator):
    kin = [generator.choice([None, "a", "b"]) if generator.random() < 0.4 else None for _ in sequences]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.data.homology._ROWS", rows)
        found = families(sequences, k=k, jaccard=jaccard, containment=containment, kin=kin if any(kin) else None)
    assert found.tolist() == by_hand(sequences, k, jaccard, containment, kin)
