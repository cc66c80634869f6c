import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics import alignment
from tests.refused import assert_refused

links = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def pairs(array: np.ndarray) -> set[tuple[int, int]]:
    return {tuple(link) for link in array.tolist()}


@given(found=links, sure=links, possible=links)
def test_counts_are_those_of_sets(found: set, sure: set, possible: set) -> None:
    counts = alignment.agreement_counts(alignment.as_links(found), alignment.GoldAlignment.of(sure, possible))
    assert counts.tolist() == [len(found & sure), len(found & (sure | possible)), len(found), len(sure)]


def test_agreement_without_links_is_not_a_number() -> None:
    scores = alignment.agreement(alignment.agreement_counts(alignment.as_links([]), alignment.parse_pharaoh("")))
    assert all(math.isnan(x) for x in (scores.precision, scores.recall, scores.error_rate))


def test_pharaoh_lines() -> None:
    gold = alignment.parse_pharaoh("3-1 1-2 1-1 0?4 3p3 1?1\n")
    assert pairs(gold.sure) == {(3, 1), (1, 2), (1, 1)}
    assert pairs(gold.possible) == {(3, 1), (1, 2), (1, 1), (0, 4), (3, 3)}
    assert alignment.parse_pharaoh("").possible.shape == (0, 2)


@pytest.mark.parametrize("line", ["1-2 3:4", "1-", "a-b", "1--2"])
def test_malformed_pharaoh_is_refused(line: str) -> None:
    assert_refused("not an alignment link", alignment.parse_pharaoh, line)


WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.1, 0.3, 0.6], [0.1, 0.45, 0.45]])  # (T, S)


def test_hard_alignments() -> None:
    assert alignment.hard_alignment(WEIGHTS).tolist() == [[0, 0], [0, 1], [2, 2], [1, 3]]
    assert pairs(alignment.hard_alignment(WEIGHTS, method="threshold")) == {(0, 0), (0, 1), (2, 2)}


@given(gold=links.map(alignment.GoldAlignment.of), seed=st.integers(0, 99))
def test_offsets_equal_a_search_word_by_word(gold: alignment.GoldAlignment, seed: int) -> None:
    weights = np.random.default_rng(seed).random((6, 6))
    expected = []
    for target in range(6):
        distances = [int(weights[target].argmax()) - s for s, t in gold.possible.tolist() if t == target]
        expected += [min(distances, key=lambda d: (abs(d), -d))] if distances else []
    assert alignment.alignment_offsets(weights, gold).tolist() == expected


def test_links_outside_of_the_weights_are_refused() -> None:
    for line in ("3-0", "0-4"):
        with pytest.raises(ValueError, match="4 x 3"):
            alignment.alignment_offsets(WEIGHTS, alignment.parse_pharaoh(line))


def test_statistics_of_an_example() -> None:
    statistics = alignment.alignment_statistics(WEIGHTS, alignment.parse_pharaoh("0-0 1-1 2-2 2-3 1?3"))
    expected = {"hits": 3, "words": 4, "offsets": {"-1": 1, "0": 3}, "aer": [2, 3, 4, 4]}
    assert json.loads(json.dumps(statistics)) == expected


def test_merging_pieces_by_hand() -> None:
    weights = [[0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.2, 0.2], [0.0, 0.0, 0.5, 0.5]]
    merged = alignment.merge_pieces(weights, source_words=[0, 0, 1, -1], target_words=[0, 0, -1])
    assert merged == pytest.approx(np.array([[(0.3 + 0.6) / 2, (0.3 + 0.2) / 2]]))


def test_several_sentences_by_hand() -> None:
    # Many to many, and nothing found in the third: |A∩S| = 2 + 1 + 0, |A∩P| = 3 + 1 + 0, |A| = 4 + 2, |S| = 3 + 2 + 1.
    gold = map(alignment.parse_pharaoh, ["0-0 1-1 1-2 2p2 2p1", "0-1 1-0", "2-2 0p0"])
    found = map(alignment.parse_pharaoh, ["0-0 1-1 2-1 3-3", "0-1 0-1 1-1", ""])
    counts = [alignment.agreement_counts(some.sure, all) for some, all in zip(found, gold, strict=True)]
    scores = alignment.agreement(np.sum(counts, axis=0))
    assert (scores.precision, scores.recall, scores.error_rate) == pytest.approx((4 / 6, 3 / 6, 1 - 7 / 12))


NOWHERE = np.array([[0.9, 0.1], [0.0, 0.0], [0.2, 0.8]])


@pytest.mark.parametrize("method", ["argmax", "threshold"])
def test_a_word_that_attends_nowhere_gets_no_link(method: str) -> None:
    assert sorted(alignment.hard_alignment(NOWHERE, method=method).tolist()) == [[0, 0], [1, 2]]


def test_a_word_that_attends_nowhere_is_a_word_but_no_hit_no_offset_and_no_link() -> None:
    statistics = alignment.alignment_statistics(NOWHERE, alignment.parse_pharaoh("0-0 1-1 0-2"))
    assert statistics == {"hits": 1, "words": 3, "offsets": {"0": 1, "1": 1}, "aer": [1, 1, 2, 3]}


def test_an_aligners_many_to_many_links_all_count() -> None:
    linked = np.array([[1, 1, 0], [0, 0, 1]])
    statistics = alignment.alignment_statistics(linked, alignment.parse_pharaoh("0-0 1-0 2-1"), method="threshold")
    assert statistics == {"hits": 2, "words": 2, "offsets": {"0": 2}, "aer": [3, 3, 3, 3]}


def test_a_link_between_words_is_one_between_all_their_pieces() -> None:
    links = np.array([(0, 1), (2, 0)])
    assert alignment.split_links(links, [0, 0, 1, 2], [0, 1, 1]).tolist() == [[0, 1], [0, 2], [1, 1], [1, 2], [3, 0]]
    assert alignment.split_links(links[:0], [0, 1], [0]).shape == (0, 2)
