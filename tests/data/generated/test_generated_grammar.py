"""The generated trees, checked by a chart parser that shares nothing with the generator."""

import functools
import itertools

import pytest

from shared.config import build, load_yaml
from shared.data.generated.grammar import Grammar, vocabulary


def values(**changes):
    small = {
        "seed": 1,
        "start": "S",
        "rules": {
            "S": {"NP-a VP": 0.5, "NP-b VP": 0.5},
            "NP-a": {"N-a": 0.7, "NP-a AND NP-a": 0.3},
            "NP-b": {"N-b": 0.7, "NP-b AND NP-b": 0.3},
            "VP": {"V": 0.5, "V NP-a": 0.5},
        },
        "words": {"AND": 1, "N-a": 6, "N-b": 6, "V": 6},
        "splits": {
            "test": {"buckets": [[2, 3], [4, 6]], "per_bucket": 30},
            "valid": {"buckets": [[2, 6]], "per_bucket": 40},
            "train": {"buckets": [[2, 6]], "per_bucket": 100},
        },
    }
    return small | changes


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
