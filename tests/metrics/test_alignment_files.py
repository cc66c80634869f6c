"""Whole alignment files against gold ones, in the formats that people exchange."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ReplicationError
from shared.metrics.alignment import alignment_error_rate, alignment_statistics, hard_alignment, parse_pharaoh

# Three sentences, many to many, the third with nothing found:
# |A∩S| = 2 + 1 + 0, |A∩P| = 3 + 1 + 0, |A| = 4 + 2 + 0, |S| = 3 + 2 + 1.
GOLD = ["0-0 1-1 1-2 2p2 2p1", "0-1 1-0", "2-2 0p0"]
FOUND = ["0-0 1-1 2-1 3-3", "0-1 0-1 1-1", ""]
FIGURES = (4 / 6, 3 / 6, 1 - 7 / 12)

GOLD_NAACL = """0001 1 1 S
0001 2 2 S
0001 2 3 S
0001 3 3 P
0001 3 2 P
0002 1 2 S
0002 2 1 S
0003 3 3 S
0003 1 1 P""".splitlines()
FOUND_NAACL = [
    "1 1 1",
    "1 2 2 S 0.9",
    "1 3 2 P 1e-05",
    "1 4 4",
    "0002 1 2",
    "2 1 2 P",
    "2 2 2",
    "2 0 1",
    "2 3 0",
    "",
]


def figures(agreement):
    return agreement.precision, agreement.recall, agreement.error_rate


def shifted(lines, separators="-p"):
    """The same links counted from one."""
    out = []
    for line in lines:
        fields = [(f.replace("p", "-").split("-"), "p" if "p" in f else "-") for f in line.split()]
        out.append(" ".join(f"{int(s) + 1}{mark}{int(t) + 1}" for (s, t), mark in fields))
    return out


def test_pharaoh_files_by_hand():
    assert figures(alignment_error_rate(FOUND, GOLD)) == pytest.approx(FIGURES)


def test_positions_from_one():
    assert figures(alignment_error_rate(shifted(FOUND), shifted(GOLD), first=1)) == pytest.approx(FIGURES)
    mixed = alignment_error_rate(FOUND, shifted(GOLD), first=0, first_gold=1)
    assert figures(mixed) == pytest.approx(FIGURES)
    with pytest.raises(ReplicationError, match="counted from 1"):
        alignment_error_rate(FOUND, GOLD, first=1)


def test_naacl_files_by_hand():
    # Numbers with and without zeros, links to the empty word, a sentence without links, a blank last line.
    agreement = alignment_error_rate(FOUND_NAACL, GOLD_NAACL, format="naacl")
    assert figures(agreement) == pytest.approx(FIGURES)


def test_naacl_sentences_without_gold_links_are_not_scored():
    more = [*FOUND_NAACL, "17 1 1"]
    assert figures(alignment_error_rate(more, GOLD_NAACL, format="naacl")) == pytest.approx(FIGURES)


def test_naacl_positions_from_nought():
    found, gold = ["1 0 0", "1 1 2"], ["1 0 0 S", "1 1 1 S"]
    assert alignment_error_rate(found, gold, format="naacl", first=0).recall == 0.5


def test_possible_links_in_a_file_of_their_own_need_not_include_the_sure_ones():
    sure = ["0-0 1-1 1-2", "0-1 1-0", "2-2"]
    assert figures(alignment_error_rate(FOUND, sure, possible=["2-2 2-1", "", "0-0"])) == pytest.approx(FIGURES)
    both = ["2-2 2-1 0-0 1-1 1-2", "0-1 1-0", "0-0 2-2"]
    assert figures(alignment_error_rate(FOUND, sure, possible=both)) == pytest.approx(FIGURES)


def test_a_hypothesis_of_the_other_direction():
    swapped = ["0-0 1-1 1-2 3-3", "1-0 1-0 1-1", ""]
    assert figures(alignment_error_rate(swapped, GOLD, reverse=True)) == pytest.approx(FIGURES)


def test_a_link_that_is_sure_and_possible_is_sure():
    assert figures(alignment_error_rate(["0-0"], ["0-0 0p0"])) == (1, 1, 0)


@pytest.mark.parametrize("arguments", [{}, {"possible": ["0-0"]}])
def test_pharaoh_files_of_different_length_are_refused(arguments):
    found = FOUND if arguments else FOUND[:2]
    with pytest.raises(ReplicationError, match="one line per sentence"):
        alignment_error_rate(found, GOLD, **arguments)


links = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9)
corpora = st.lists(st.tuples(links, links.filter(bool), links), min_size=1, max_size=6)


@given(corpus=corpora)
def test_any_corpus_is_scored_as_by_sets_in_both_formats(corpus):
    both = [(a, s, s | p) for a, s, p in corpus]
    in_sure = sum(len(a & s) for a, s, _ in both)
    in_possible = sum(len(a & p) for a, _, p in both)
    found, sure = (sum(len(sets[k]) for sets in both) for k in (0, 1))
    expected = (
        in_possible / found if found else np.nan,
        in_sure / sure,
        1 - (in_sure + in_possible) / (found + sure),
    )

    def line(pairs, mark):
        return " ".join(f"{s}{mark}{t}" for s, t in pairs)

    pharaoh = [line(a, "-") for a, _, _ in both], [f"{line(s, '-')} {line(p, '?')}" for _, s, p in both]
    assert figures(alignment_error_rate(*pharaoh)) == pytest.approx(expected, nan_ok=True)
    naacl = (
        [f"{n} {s + 1} {t + 1}" for n, (a, _, _) in enumerate(both) for s, t in a],
        [f"{n} {s + 1} {t + 1} {m}" for n, (_, *gold) in enumerate(both) for m, pairs in zip("SP", gold, strict=True)
         for s, t in pairs],
    )  # fmt: skip
    assert figures(alignment_error_rate(*naacl, format="naacl")) == pytest.approx(expected, nan_ok=True)


NOWHERE = np.array([[0.9, 0.1], [0.0, 0.0], [0.2, 0.8]])


@pytest.mark.parametrize("method", ["argmax", "intersection", "threshold"])
def test_a_word_that_attends_nowhere_gets_no_link(method):
    assert sorted(hard_alignment(NOWHERE, method=method).tolist()) == [[0, 0], [1, 2]]


def test_a_word_that_attends_nowhere_is_a_word_but_no_hit_no_offset_and_no_link():
    gold = parse_pharaoh("0-0 1-1 0-2")
    assert alignment_statistics(NOWHERE, gold) == {
        "hits": 1,
        "words": 3,
        "offsets": {"0": 1, "1": 1},
        "aer": [1, 1, 2, 3],
    }


def test_an_aligners_many_to_many_links_all_count():
    linked = np.array([[1, 1, 0], [0, 0, 1]])
    statistics = alignment_statistics(linked, parse_pharaoh("0-0 1-0 2-1"), method="threshold")
    assert statistics == {"hits": 2, "words": 2, "offsets": {"0": 2}, "aer": [3, 3, 3, 3]}
