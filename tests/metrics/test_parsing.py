"""Labelled brackets: by hand on well-formed trees, and defined for whatever a model writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics.parsing import bracket_counts, brackets

TREE = "(S (NP XX XX )NP (VP XX (NP XX )NP )VP )S"
tokens = st.sampled_from(["(S", "(NP", "(VP", ")S", ")NP", ")VP", "XX"])


def constituents(tree):
    return dict(brackets(tree))


def test_constituents_are_labelled_spans():
    assert constituents(TREE) == {("S", 0, 4): 1, ("NP", 0, 2): 1, ("VP", 2, 4): 1, ("NP", 3, 4): 1}


def test_equal_spans_count_as_often_as_they_stand_there():
    assert constituents("(NP (NP XX )NP )NP") == {("NP", 0, 1): 2}
    assert bracket_counts("(NP (NP XX )NP )NP", "(NP XX )NP") == (1, 2, 1)


def test_a_constituent_at_the_wrong_place_or_with_the_wrong_label_does_not_match():
    # The object hangs from the sentence: of four brackets only the verb phrase ends elsewhere.
    assert bracket_counts("(S (NP XX XX )NP (VP XX )VP (NP XX )NP )S", TREE) == (3, 4, 4)
    assert bracket_counts("(S (PP XX XX )PP (VP XX (NP XX )NP )VP )S", TREE) == (3, 4, 4)


def test_the_root_is_not_counted():
    assert constituents(f"(TOP {TREE} )TOP") == constituents(TREE) == constituents(f"(S1 {TREE} )S1")


@pytest.mark.parametrize(("written", "means"), [
    ("(S (NP XX )NP (VP XX", "(S (NP XX )NP (VP XX )VP )S"),  # closed at the end
    ("(S (NP XX )NP (VP XX )S", "(S (NP XX )NP (VP XX )VP )S"),  # closed with what holds it
    ("(S XX )NP XX )S )S", "(S XX XX )S"),  # nothing to close
    (")S (S XX )S", "(S XX )S"),
    ("(S (NP (NP XX )NP XX )S", "(S (NP (NP XX )NP XX )NP )S"),  # the innermost of two
    ("(S (NP ( XX ) )NP XX )S", "(S (NP XX XX XX )NP XX )S"),  # brackets that are words
])  # fmt: skip
def test_malformed_trees_mean_something(written, means):
    assert brackets(written) == brackets(means)
    assert brackets(written).total() > 0


def test_nothing_written_matches_nothing():
    assert bracket_counts("", TREE) == (0, 0, 4)
    assert constituents("(NP )NP") == {("NP", 0, 0): 1}


@given(st.lists(tokens, max_size=20).map(" ".join), st.lists(tokens, max_size=20).map(" ".join))
def test_every_opening_bracket_is_one_constituent(one, other):
    matched, predicted, gold = bracket_counts(one, other)
    assert predicted == one.count("(")
    assert gold == other.count("(")
    assert matched <= min(predicted, gold)
    assert bracket_counts(one, one) == (predicted, predicted, predicted)
