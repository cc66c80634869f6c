"""The generated trees, checked by a chart parser that shares nothing with the generator."""

import functools
import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.config import build, load_yaml
from shared.data.generated import generate
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


def best_tree(grammar, symbols_of, sentence):
    """The most probable tree, linearised, and how many there are (CKY on rules of any length)."""

    rules = {
        symbol: [(tuple(right.split()), math.log(probability)) for right, probability in expansions.items()]
        for symbol, expansions in grammar.rules.items()
    }

    def among(found):
        if not found:
            return None
        score, tree, _ = max(found, key=lambda analysis: analysis[0])
        return score, tree, sum(count for *_, count in found)

    @functools.cache
    def best(symbol, i, j):
        if symbol in grammar.words:
            known = j == i + 1 and symbol in symbols_of[sentence[i]]
            return (-math.log(grammar.words[symbol]), ("XX",), 1) if known else None
        label = symbol.split("-")[0]
        return among([
            (score + inside[0], (f"({label}", *inside[1], f"){label}"), inside[2])
            for right, score in rules[symbol] if (inside := best_row(right, i, j))
        ])  # fmt: skip

    @functools.cache
    def best_row(right, i, j):
        if len(right) == 1:
            return best(right[0], i, j)
        return among([
            (left[0] + rest[0], left[1] + rest[1], left[2] * rest[2])
            for k in range(i + 1, j - len(right) + 2)
            if (left := best(right[0], i, k)) and (rest := best_row(right[1:], k, j))
        ])  # fmt: skip

    _, tree, count = best(grammar.start, 0, len(sentence))
    return " ".join(tree), count


def spans(node, start=0):
    """Labelled brackets."""
    found = Counter({(node[0], start, start + size(node)): 1})
    for child in node[1]:
        found += spans(child, start) if child else Counter()
        start += size(child)
    return found


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


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_every_tree_of_any_seed_is_a_derivation(seed):
    parameters = values(seed=seed)
    grammar = build(Grammar, parameters, where="test")
    words = vocabulary(grammar)
    for split in generate("grammar", parameters).values():
        for segment in split:
            assert derives(grammar, words, "S", nested(segment.texts[1]), segment.texts[0].split())


def parsed(shipped, alike):
    """Shares of the test trees: exact, ambiguous; and labelled F1, of a parser to which words seem ``alike``."""
    grammar, corpus = shipped
    symbols_of = {
        word: {other for other in grammar.words if alike(other) == alike(symbol)}
        for symbol, words in vocabulary(grammar).items()
        for word in words
    }
    exact = ambiguous = matched = brackets = 0
    for segment in corpus["test"]:
        tree, count = best_tree(grammar, symbols_of, segment.texts[0].split())
        exact += tree == segment.texts[1]
        ambiguous += count > 1
        found, gold = spans(nested(tree)), spans(nested(segment.texts[1]))
        matched += (found & gold).total()
        brackets += found.total() + gold.total()
    return [exact / len(corpus["test"]), ambiguous / len(corpus["test"]), 2 * matched / brackets]


def test_word_classes_resolve_the_ambiguity_as_the_card_says(shipped):
    assert parsed(shipped, lambda symbol: symbol) == pytest.approx([0.94, 0.14, 0.980], abs=0.005)
    families = {"R": "N", "T": "V", "W": "V", "C": "V"}

    def family(symbol):
        return families.get(symbol.split("-")[0], symbol.split("-")[0])

    assert parsed(shipped, family) == pytest.approx([0.67, 1.0, 0.913], abs=0.01)  # there are ties


def test_no_two_symbols_share_a_word():
    words = vocabulary(build(Grammar, values(), where="test"))
    assert {symbol: len(set(own)) for symbol, own in words.items()} == values()["words"]
    assert len({word for own in words.values() for word in own}) == 19
