"""Generated texts, read by readers that share nothing with the generators: one contract over all tasks with a rule."""

import functools
import itertools
import re
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL, only

from shared.config import build, load_yaml
from shared.data.generated import cues, generate, sequences
from shared.data.generated.sequences import Copy
from shared.data.generated.translation import (
    AdjacentSwap,
    Agreement,
    Grammar,
    agreement_words,
    exchanged,
    grammar_words,
    swap_lexicon,
    swapped,
)


def values(task, **changes):
    return SMALL[task] | changes


def assert_balanced(corpus, forms, keys=1):
    """Every split has each class as often as the others; a class is named by the most frequent forms."""
    classes = ["+".join(label) for label in itertools.product([own[0] for own in forms], repeat=keys)]
    for segments in corpus.values():
        counts = Counter(segment.texts[1] for segment in segments)
        found = [counts.pop(name, 0) for name in classes]
        assert not counts
        assert max(found) - min(found) <= 1


# Agreement


def word_meant(sentence, place, distances):
    """Follow the pronouns of a sentence of numbers, whose pronouns are negative, one hop after the other."""
    while sentence[place] < 0:
        place += distances[-sentence[place] - 1]
    return sentence[place]


def translated(source, parameters):
    """Word for word and feature for feature: the naive twin."""
    words, pronouns, names = agreement_words(parameters)
    numbers = {word: number for number, word in enumerate(words)}
    numbers |= {word: -number for number, word in enumerate(pronouns, start=1)}
    sentence = [numbers[word] for word in source.split()]
    target = []
    for place in range(len(sentence)):
        features = 0
        for feature, far in enumerate(parameters.places):
            if 0 <= place + far < len(sentence):
                features += 2**feature * (word_meant(sentence, place + far, parameters.distances) // 2**feature % 2)
        target.append(names[features])
    return " ".join(target)


def check_agreement(parameters, corpus):
    for segment in itertools.chain(*corpus.values()):
        assert translated(segment.texts[0], parameters) == segment.texts[1]


# Documents


def check_documents(parameters, corpus):
    """Every document against the rule: the first value of the one sentence with a key is the class."""
    words = cues.document_words(parameters)
    (keys,), (topics,) = words.keys, words.decoys
    meaning = {form: forms[0] for forms in words.values for form in forms}
    for segment in itertools.chain(*corpus.values()):
        text, label, positions = segment.texts
        assert text.endswith(" .")
        sentences = [sentence.split() for sentence in text.removesuffix(" .").split(" . ")]
        assert parameters.sentences[0] <= len(sentences) <= parameters.sentences[1]
        deciding = [number for number, sentence in enumerate(sentences) if {*sentence} & {*keys}]
        assert len(deciding) == 1
        for number, sentence in enumerate(sentences):
            values = [meaning[word] for word in sentence if word in meaning]
            assert len({*values}) == len(values) == 2
            assert sum(word in topics for word in sentence) == (number != deciding[0])
            assert number != deciding[0] or values[0] == label
        begin = sum(len(sentence) + 1 for sentence in sentences[: deciding[0]])
        assert positions == " ".join(map(str, range(begin, begin + len(sentences[deciding[0]]) + 1)))
    assert_balanced(corpus, words.values)


# Grammar


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


def derives(rules, words, symbol, node, sentence):
    """Whether ``symbol`` can be expanded into ``node`` above the words of ``sentence``."""
    if node is None:
        return sentence[0] in words.get(symbol, ())
    label, children, _ = node
    starts = [sum(map(size, children[:i])) for i in range(len(children) + 1)]
    parts = [sentence[start:end] for start, end in itertools.pairwise(starts)]
    return symbol.split("-")[0] == label and any(
        len(right.split()) == len(children)
        and all(map(functools.partial(derives, rules, words), right.split(), children, parts))
        for right in rules.get(symbol, ())
    )


def check_grammar(parameters, corpus):
    words = grammar_words(parameters)
    for segment in itertools.chain(*corpus.values()):
        sentence, tree = segment.texts
        assert derives(parameters.rules, words, "S", nested(tree), sentence.split())
        assert tree.split().count("XX") == len(sentence.split())


# Recall


def read_recalls(text):
    """From left to right: each of the keys is set, then asked for and repeated, then free to be set.

    Returns: of each repetition its place and that of what it repeats, and the places of the facts not asked for.
    """
    words = text.split()
    known, recalls = {}, []
    for i, word in enumerate(words):
        key, mark, _ = re.fullmatch(r"([a-z]+)([:?]?)([a-z]*)", word).groups()
        if mark == "?":
            earlier = known.pop(key)
            assert words[i + 1] == words[earlier]
            recalls.append((i + 1, earlier))
        elif mark and (not recalls or recalls[-1][0] != i):
            assert key not in known
            known[key] = i
    return recalls, known


def check_recalls(parameters, corpus):
    """Every text against the rule."""
    shortest, longest = parameters.distances
    late = 2 * (parameters.keys - 1)
    for segment in itertools.chain(*corpus.values()):
        text, recalls = segment.texts
        found, waiting = read_recalls(text)
        assert recalls == " ".join(f"{place}-{earlier}" for place, earlier in found)
        own = [place - earlier for place, earlier in found]
        assert all(shortest <= distance <= longest + late for distance in own)
        # What was not asked for had no room.
        assert all(place >= len(text.split()) - longest - late for place in waiting.values())


# Tally


def check_tally(parameters, corpus):
    """Every text against the rule, in which the value after a key is the next word that is not a filler."""
    words = cues.vocabulary(parameters)
    keys = {form: forms[0] for forms in words.keys for form in forms}
    meaning = {form: forms[0] for forms in words.values for form in forms}
    for segment in itertools.chain(*corpus.values()):
        text, label, positions = segment.texts
        told = [(i, word) for i, word in enumerate(text.split()) if word not in words.fillers]
        votes = {forms[0]: Counter() for forms in words.keys}
        places = []
        assert len(told) % 2 == 0
        for (at, key), (after, value) in zip(told[::2], told[1::2], strict=True):
            assert after - at - 1 <= parameters.gap
            if key in keys:
                votes[keys[key]][meaning[value]] += 1
                places += at, after
        answers = [counts.most_common(2) for counts in votes.values()]
        assert label == "+".join(first[0] for first, *_ in answers)
        assert all(len(counts) == 1 or counts[0][1] > counts[1][1] for counts in answers)
        low, high = parameters.votes
        assert all(low <= counts.total() <= high for counts in votes.values())
        assert parameters.distractors[0] <= len(told) / 2 - len(places) / 2 <= parameters.distractors[1]
        assert positions == " ".join(map(str, places))
    assert_balanced(corpus, words.values, parameters.keys)


# All


class Rule(NamedTuple):
    parameters: type
    check: object
    drawn: st.SearchStrategy  # what differs from SMALL


def lengths(shortest, count=20):
    return {"splits": {"train": {"buckets": [[shortest, shortest + 5]], "per_bucket": count}}}


seeds, spare = st.integers(0, 1000), st.integers(0, 8)
RULES = {
    "agreement": Rule(Agreement, check_agreement, st.fixed_dictionaries({
        "places": st.lists(st.integers(-4, 4), min_size=1, max_size=5, unique=True),
        "distances": st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
        "pronouns": st.floats(0, 0.9), "splits": st.just(only(8, 12, 20)["splits"]),
    })),
    "documents": Rule(cues.Documents, check_documents, st.builds(
        lambda values, most, more: {"values": values, "sentences": [1, most]} | lengths(4 * most + more),
        st.integers(2, 4), st.integers(1, 4), spare,
    )),
    "grammar": Rule(Grammar, check_grammar, st.just({})),
    "recall": Rule(sequences.Recall, check_recalls, st.builds(
        lambda keys, shortest, more, share: {
            "keys": keys, "distances": [shortest, shortest + more], "filler_share": share,
        } | only(40, 60, 10),
        st.integers(1, 12), st.integers(3, 9), st.integers(0, 20), st.floats(0, 0.9),
    )),
    "tally": Rule(cues.Tally, check_tally, st.builds(
        lambda keys, votes, gap, more: {"keys": keys, "votes": votes, "gap": gap}
        | lengths(2 * (keys * votes[1] + 2) + more),
        st.integers(1, 3), st.tuples(st.integers(1, 3), st.integers(3, 5)), st.integers(0, 3), spare,
    )),
}  # fmt: skip


@pytest.mark.parametrize("task", RULES)
@given(data=st.data())
@settings(max_examples=30)
def test_texts_follow_their_rule_for_any_parameters(task, data):
    parameters, check, differing = RULES[task]
    drawn = values(task, seed=data.draw(seeds), **data.draw(differing))
    corpus = generate(task, drawn)
    assert corpus.keys() == drawn["splits"].keys()
    check(build(parameters, drawn, where="test"), corpus)


def parameters(**changes):
    return SMALL["adjacent_swap"] | changes


def noisy(**changes):
    return SMALL["noisy_swap"] | changes


WORDS = swap_lexicon(AdjacentSwap.model_validate(parameters()))


@given(words=st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=12))
def test_an_adjective_and_the_noun_behind_it_change_places_and_nothing_else_moves(words):
    order = swapped(words)
    assert sorted(order) == list(range(len(words)))
    for t, s in enumerate(order):
        moved_right = s + 1 < len(words) and words[s][-1] + words[s + 1][-1] == "ao"
        moved_left = s > 0 and words[s - 1][-1] + words[s][-1] == "ao"
        assert t - s == int(moved_right) - int(moved_left)


@pytest.mark.parametrize("length", range(1, 8))
def test_the_halves_change_places_after_a_marking_word_and_only_then(length):
    words = [f"w{i}u" for i in range(length)]
    assert exchanged(words) == list(range(length))
    cut = length // 2
    assert exchanged(["mi", *words[1:]]) == [*range(cut, length), *range(cut)]


def test_a_clean_target_is_no_target_of_another_split_though_noise_hides_it():
    tight = {"test": {"buckets": [[1, 1]], "per_bucket": 1}, "train": {"buckets": [[1, 1]], "per_bucket": 2}}
    for seed in range(20):
        values = noisy(seed=seed, splits=tight, noise={"train": 1.0})
        language = swap_lexicon(AdjacentSwap.model_validate(parameters(seed=seed)))
        corpus = generate("noisy_swap", values)
        seen = [segment.texts[0] for split in corpus.values() for segment in split]
        assert len(set(seen)) == 3
        written = {segment.texts[1] for segment in corpus["test"]}
        train = corpus["train"]
        hidden = {language[segment.texts[0]] for segment in train}
        assert not written & (hidden | {segment.texts[1] for segment in train})


@pytest.fixture(scope="module")
def shipped(pytestconfig):
    values = load_yaml(pytestconfig.rootpath / "data/generated_copy.yaml")["sources"][0]["parameters"]
    return build(Copy, values, where="card")


def test_the_same_sequences_are_drawn_everywhere(shipped):
    drawn = [4, 8, 10, 2, 10]
    assert list(shipped.draw("test", 0, 5, ())) == drawn
    longer = shipped.draw("test", 0, 9, ())
    assert list(longer[:5]) == drawn
    others = shipped.draw("valid", 0, 5, ()), shipped.draw("test", 1, 5, ())
    reseeded = Copy(seed=1, symbols=10).draw("test", 0, 5, ())
    assert len({*map(bytes, others), bytes(reseeded), longer[:5]}) == 4


def test_what_is_excluded_is_drawn_anew():
    parameters = Copy(seed=0, symbols=2)
    plain = {parameters.draw("train", number, 3, ()) for number in range(100)}
    assert len(plain) == 8
    excluded = {*plain} - {bytes([1, 2, 1])}
    assert {parameters.draw("train", number, 3, excluded) for number in range(20)} == {bytes([1, 2, 1])}
