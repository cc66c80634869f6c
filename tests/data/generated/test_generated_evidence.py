"""The generated evidence, read by a reader that shares nothing with the generator."""

import itertools
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.cues import Evidence, vocabulary


def values(**changes):
    return SMALL["evidence"] | changes


@pytest.fixture(scope="module")
def shipped(pytestconfig, generated):
    """The card's parameters, and what is generated from them."""
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_evidence.yaml")["sources"][0]["parameters"]
    return build(Evidence, parameters, where="card"), generated("evidence", parameters)


def meanings(parameters):
    """Every word with the part it plays and what it means (the most frequent form; a filler means nothing)."""
    words = vocabulary("evidence", parameters)
    parts = {"keys": words.keys, "decoys": words.decoys, "values": words.values}
    known = {form: (part, forms[0]) for part, own in parts.items() for forms in own for form in forms}
    return known | dict.fromkeys(words.fillers, ("fillers", ""))


def read(keys, known, reach, text):
    """The label and the evidence, from left to right: a key claims the next value while it is in reach."""
    claimed, positions = {}, []
    waiting = None
    for i, word in enumerate(text.split()):
        part, meaning = known[word]
        if part in ("keys", "decoys"):
            assert waiting is None or i > waiting[0] + reach
            waiting = i, meaning
        elif part == "values" and waiting is not None and i <= waiting[0] + reach:
            place, key = waiting
            if key in keys:
                assert key not in claimed
                claimed[key] = meaning
                positions += [place, i]
            waiting = None
    return "+".join(claimed[key] for key in keys), " ".join(map(str, positions))


def check(parameters, corpus):
    """Every text against the rule; the numbers of its parts against the parameters."""
    known = meanings(parameters)
    keys = [forms[0] for forms in vocabulary("evidence", parameters).keys]
    reach = parameters.gap + 1
    for segment in itertools.chain(*corpus.values()):
        text, label, positions = segment.texts
        assert read(keys, known, reach, text) == (label, positions)
        parts = [known[word][0] for word in text.split()]
        found = Counter(parts)
        assert found["keys"] == parameters.keys
        low, high = parameters.distractors
        assert low <= found["decoys"] <= high
        low, high = parameters.bare
        # Each key in reach of a value claims one; the values that are left over are bare, and out of reach.
        near = [
            "keys" in parts[max(0, i - reach) : i] or "decoys" in parts[max(0, i - reach) : i]
            for i, part in enumerate(parts)
            if part == "values"
        ]
        assert near.count(True) == found["keys"] + found["decoys"]
        assert low <= near.count(False) <= high


def test_the_shipped_labels_and_evidence_follow_from_the_texts(shipped):
    check(*shipped)


@given(
    seed=st.integers(0, 1000),
    keys=st.integers(1, 3),
    forms=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    gap=st.integers(0, 4),
    distractors=st.tuples(st.integers(0, 2), st.integers(2, 4)),
    bare=st.tuples(st.integers(0, 1), st.integers(1, 3)),
    spare=st.integers(0, 8),
)
@settings(deadline=None, max_examples=30)
def test_labels_and_evidence_follow_from_the_texts_for_any_parameters(seed, keys, forms, gap, distractors, bare, spare):
    shortest = 2 * (keys + distractors[1]) + bare[1] * (gap + 1) + spare
    splits = {"train": {"buckets": [[shortest, shortest + 5]], "per_bucket": 30}}
    changes = {"seed": seed, "keys": keys, "gap": gap, "distractors": distractors, "bare": bare}
    changes |= {"key_forms": forms[0], "value_forms": forms[1]}
    parameters = values(splits=splits, **changes)
    check(build(Evidence, parameters, where="test"), generate("evidence", parameters))


def test_the_classes_are_balanced_and_named_by_the_most_frequent_forms(shipped):
    parameters, corpus = shipped
    names = [forms[0] for forms in vocabulary("evidence", parameters).values]
    classes = {"+".join(label) for label in itertools.product(names, repeat=parameters.keys)}
    assert len(classes) == 16
    for segments in corpus.values():
        counts = Counter(segment.texts[1] for segment in segments)
        assert counts.keys() == classes
        assert max(counts.values()) - min(counts.values()) <= 1


def test_words_show_the_part_they_play_and_mean_only_one_thing():
    words = vocabulary("evidence", build(Evidence, values(), where="test"))
    assert [[len(forms) for forms in part] for part in words[:3]] == [[2] * 2, [2] * 3, [3] * 3]
    parts = [*(list(itertools.chain(*part)) for part in words[:3]), words.fillers]
    assert [len(part) for part in parts] == [4, 6, 9, 12]
    assert len(set(itertools.chain(*parts))) == 31
    stem = "([^aeiou][aeiou]){1,2}[^aeiou]"
    assert [{re.sub(stem, "", word) for word in part} for part in parts] == [{"o"}, {"a"}, {""}, {"u"}]
