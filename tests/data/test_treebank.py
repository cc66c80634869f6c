"""Hand-made files in the Penn Treebank's format."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.readers.treebank import linearise, parse

ASKED = """
( (S
    (NP-SBJ-1 (DT The) (NN-X board) )
    (VP (VBD was)
      (VP (VBN asked)
        (NP-2 (-NONE- *-1) )
        (S (NP-SBJ (-NONE- *) )
          (VP (TO to)
            (VP (VB give) (PRT|ADVP (RP up) ) (-LRB- -LRB-) (SBAR=3 (-NONE- 0) (S (-NONE- *T*-2) )))))))
    (. .) ))
"""
ASKED_WORDS = "The board was asked to give up -LRB- ."
ASKED_TREE = "(S (NP XX XX )NP (VP XX (VP XX (S (VP XX (VP XX (PRT XX )PRT XX )VP )VP )S )VP )VP XX )S"


def linearised(text):
    return [(" ".join(words), " ".join(symbols)) for words, symbols in map(linearise, parse(text))]


def test_traces_function_tags_and_empty_constituents_go():
    assert linearised(ASKED) == [(ASKED_WORDS, ASKED_TREE)]


@pytest.mark.parametrize(("text", "expected"), [
    ("(S (UH Yes))", [("Yes", "(S XX )S")]),
    ("(TOP (S (UH Yes)))(ROOT(S1 (FRAG (UH No))))", [("Yes", "(S XX )S"), ("No", "(FRAG XX )FRAG")]),
    ("( (UH Yes) )", [("Yes", "XX")]),
    ("( (NP (NP (NN a)) (SBAR (-NONE- *T*))) )", [("a", "(NP (NP XX )NP )NP")]),
    ("( (S (-NONE- *)) ) ()", [("", ""), ("", "")]),
    ("", []),
])  # fmt: skip
def test_roots_are_not_constituents_and_chains_stay(text, expected):
    assert linearised(text) == expected


LABELS = st.sampled_from(["S", "NP-SBJ", "VP", "PP-LOC=2", "-NONE-"])
LEAVES = st.tuples(st.sampled_from(["NN", "VB", "-NONE-"]), st.sampled_from(["a", "b", "*T*-1"])).map(list)
few = partial(st.lists, min_size=1, max_size=3)
TREES = st.recursive(LEAVES, lambda inner: st.builds(lambda label, below: [label, *below], LABELS, few(inner)))


def written(tree):
    return tree if isinstance(tree, str) else f"({' '.join(map(written, tree))})"


@given(TREES)
def test_any_tree_comes_back_and_its_line_is_balanced(tree):
    assert list(parse(written(tree))) == [tree]
    words, symbols = linearise(tree)
    assert symbols.count("XX") == len(words) == written(tree).count("(NN ") + written(tree).count("(VB ")
    opened = []
    for before, symbol in zip(["", *symbols], symbols, strict=False):
        if symbol.startswith("("):
            opened.append(symbol[1:])
        elif symbol.startswith(")"):
            assert symbol[1:] == opened.pop()
            assert not before.startswith("(")  # no constituent without words
    assert not opened
