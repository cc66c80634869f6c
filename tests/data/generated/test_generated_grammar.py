"""The generated trees, checked by a chart parser that shares nothing with the generator."""

import functools
import itertools

import pytest
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated.grammar import Grammar, vocabulary


def values(**changes):
    return SMALL["grammar"] | changes


def nested(tree):
    """The linearised tree as (label, children, number of words), a word as None; closing labels must fit."""
    opened = [("", [])]
    for symbol in tree.split():
        if symbol.startswith("("):
            opened.append((symbol[1:], []))
        elif symbol.startswith(")"):
            label, children = opened.pop()
            assert symbol == f"){label}"
            opened[-1][1].append((label, children, sum(map(size, children))))
        else:
            assert symbol == "XX"
            opened[-1][1].append(None)
    ((_, (root,)),) = opened
    return root


def size(node):
    return 1 if node is None else node[2]


def derives(grammar, words, symbol, node, sentence):
    """Whether ``symbol`` can be expanded into ``node`` above the words of ``sentence``."""
    if node is None:
        return sentence[0] in words.get(symbol, ())
    label, children, _ = node
    starts = [sum(map(size, children[:i])) for i in range(len(children) + 1)]
    parts = [sentence[start:end] for start, end in itertools.pairwise(starts)]
    return symbol.split("-")[0] == label and any(
        len(right.split()) == len(children)
        and all(map(functools.partial(derives, grammar, words), right.split(), children, parts))
        for right in grammar.rules.get(symbol, ())
    )


@pytest.fixture(scope="module")
def shipped(pytestconfig, generated):
    """The card's grammar, and what is generated from it."""
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_grammar.yaml")["sources"][0]["parameters"]
    return build(Grammar, parameters, where="card"), generated("grammar", parameters)


@pytest.mark.parametrize("split", ["test", "test_long", "valid"])
def test_every_tree_is_a_derivation_of_its_sentence(shipped, split):
    grammar, corpus = shipped
    words = vocabulary(grammar)
    for segment in corpus[split]:
        sentence, tree = segment.texts
        assert derives(grammar, words, "S", nested(tree), sentence.split())
        assert tree.split().count("XX") == len(sentence.split())


def test_no_two_symbols_share_a_word():
    words = vocabulary(build(Grammar, values(), where="test"))
    assert {symbol: len(set(own)) for symbol, own in words.items()} == values()["words"]
    assert len({word for own in words.values() for word in own}) == 19
