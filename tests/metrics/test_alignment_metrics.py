"""Agreement of alignments by hand, and the statistical aligners behind them."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.metrics import alignment, word_aligner
from shared.metrics.word_aligner import WordAligner
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


@pytest.mark.parametrize(("weights", "gold", "method", "expected"), [
    (WEIGHTS, "0-0 1-1 2-2 2-3 1?3", "argmax",
     {"hits": 3, "words": 4, "offsets": {"-1": 1, "0": 3}, "aer": [2, 3, 4, 4]}),
    # A word that attends nowhere is a word, but no hit, no offset and no link.
    (NOWHERE, "0-0 1-1 0-2", "argmax", {"hits": 1, "words": 3, "offsets": {"0": 1, "1": 1}, "aer": [1, 1, 2, 3]}),
    # An aligner's many-to-many links all count.
    (np.array([[1, 1, 0], [0, 0, 1]]), "0-0 1-0 2-1", "threshold",
     {"hits": 2, "words": 2, "offsets": {"0": 2}, "aer": [3, 3, 3, 3]}),
])  # fmt: skip
def test_statistics_of_an_example(weights, gold, method, expected) -> None:
    statistics = alignment.alignment_statistics(weights, alignment.parse_pharaoh(gold), method=method)
    assert json.loads(json.dumps(statistics)) == expected


def test_a_link_between_words_is_one_between_all_their_pieces() -> None:
    links = np.array([(0, 1), (2, 0)])
    assert alignment.split_links(links, [0, 0, 1, 2], [0, 1, 1]).tolist() == [[0, 1], [0, 2], [1, 1], [1, 2], [3, 0]]
    assert alignment.split_links(links[:0], [0, 1], [0]).shape == (0, 2)


words = st.lists(st.sampled_from("abcde"), max_size=4)
corpora = st.lists(st.tuples(words, words.map(lambda line: [w.upper() for w in line])), min_size=1, max_size=5)

TOY = [(["das", "Haus"], ["the", "house"]), (["das", "Buch"], ["the", "book"]),
       (["ein", "Buch"], ["a", "book"])]  # fmt: skip


def plain_model_1(pairs, iterations):
    """Return t[source][target] by Brown et al.'s equations, word by word; None is the empty word."""
    together = {(s, t) for source, target in pairs for s in (None, *source) for t in target}
    t_of = dict.fromkeys(together, 1 / len({t for _, t in together}))
    for _ in range(iterations):
        expected = dict.fromkeys(together, 0.0)
        for source, target in pairs:
            for t in target:
                total = sum(t_of[s, t] for s in (None, *source))
                for s in (None, *source):
                    expected[s, t] += t_of[s, t] / total
        totals = {s: sum(value for (x, _), value in expected.items() if x == s) for s, _ in together}
        t_of = {pair: value / totals[pair[0]] for pair, value in expected.items()}
    return t_of


@given(pairs=corpora, iterations=st.integers(0, 4))
def test_probabilities_are_those_of_the_equations(pairs, iterations):
    assume(any(target for _, target in pairs))
    expected = plain_model_1(pairs, iterations)
    aligner = WordAligner.train(pairs, iterations=iterations)
    for source, target in pairs:
        by_hand = [[expected[s, t] for s in (None, *source)] for t in target]
        assert aligner.table(source, target) == pytest.approx(np.reshape(by_hand, (len(target), len(source) + 1)))


def test_probabilities_are_those_that_nltk_prints():
    """The example of ``nltk.translate.ibm1.IBMModel1``, after five iterations."""
    lines = ["klein ist das haus|the house is small", "das haus ist ja groß|the house is big",
             "das buch ist ja klein|the book is small", "das haus|the house", "das buch|the book",
             "ein buch|a book"]  # fmt: skip
    aligner = WordAligner.train([tuple(part.split() for part in line.split("|")[::-1]) for line in lines])
    table = aligner.table(["book"], ["buch", "das", "ja"]).round(3)  # given the empty word, and given book
    assert [*table[0], table[1, 1], table[2, 0]] == [0.113, 0.889, 0.062, 0.073]


@given(pairs=corpora.filter(lambda pairs: any(target for _, target in pairs)))
def test_no_iteration_makes_the_training_text_less_likely(pairs):
    aligners = [WordAligner.train(pairs, iterations=k) for k in range(6)]
    losses = [sum(aligner.nll(*pair) for pair in pairs) for aligner in aligners]
    assert all(after <= before + 1e-6 for before, after in itertools.pairwise(losses))


@given(pairs=corpora.filter(lambda pairs: any(target for _, target in pairs)))
def test_blocks_change_nothing(pairs):
    whole = WordAligner.train(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_aligner, "CELLS", 3)
        pieces = WordAligner.train(pairs)
    assert np.array_equal(whole.keys, pieces.keys)
    assert whole.probabilities == pytest.approx(pieces.probabilities)


def test_the_translations_of_a_toy_text_are_found():
    aligner = WordAligner.train(TOY, iterations=20)
    assert aligner.translations() == {"das": "the", "Haus": "house", "Buch": "book", "ein": "a"}
    assert aligner.translations(count=2) == {"das": "the", "Buch": "book"}
    assert aligner.translations(threshold=1.01) == {}
    assert aligner.links(["ein", "Haus"], ["house", "a"]).tolist() == [[1, 0], [0, 1]]
    assert aligner.parameters == 4 + 3 + 2 + 3 + 2  # of the empty word, das, Haus, Buch and ein


def test_words_never_seen_together_get_no_link():
    aligner = WordAligner.train(TOY)
    assert aligner.links(["Haus", "neu"], ["a", "new", "house"]).tolist() == [[0, 2]]
    assert aligner.links([], ["the"]).shape == (0, 2)
    assert aligner.links(["das"], []).shape == (0, 2)
    assert np.isfinite(aligner.nll(["neu"], ["new"]))


def test_what_the_empty_word_explains_better_gets_no_link():
    pairs = [([word], [word.upper(), "!"]) for word in "abcdefgh"]
    aligner = WordAligner.train(pairs, iterations=10)
    assert aligner.links(["c"], ["C", "!"]).tolist() == [[0, 0]]


def test_its_state_is_all_of_it():
    aligner = WordAligner.train(TOY)
    again = WordAligner.from_state(aligner.state())
    assert again.table(*TOY[0]).tolist() == aligner.table(*TOY[0]).tolist()
    assert again.translations(count=2) == aligner.translations(count=2)
