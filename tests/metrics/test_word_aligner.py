import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.metrics import word_aligner
from shared.metrics.word_aligner import WordAligner

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
