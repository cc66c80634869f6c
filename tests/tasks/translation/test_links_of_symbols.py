"""Links between words, drawn between the pieces that the words are made of."""

import numpy as np

from shared.tasks.translation.evaluation import _between_symbols


def test_a_link_holds_between_all_pieces_of_its_words():
    links = np.array([(0, 1), (2, 0)])
    assert _between_symbols(links, [0, 0, 1, 2], [0, 1, 1]).tolist() == [[0, 1], [0, 2], [1, 1], [1, 2], [3, 0]]


def test_whole_words_keep_their_links_and_none_stay_none():
    links = np.array([(0, 1), (1, 0)])
    assert _between_symbols(links, [0, 1], [0, 1]).tolist() == links.tolist()
    assert _between_symbols(np.empty((0, 2), dtype=np.int64), [0, 1], [0]).shape == (0, 2)
