"""The generated evidence, read by a reader that shares nothing with the generator."""

import itertools
import math
import re
import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.cues import Evidence, vocabulary


def values(**changes):
    small = {
        "seed": 1,
        "keys": 2,
        "decoys": 3,
        "values": 3,
        "key_forms": 2,
        "value_forms": 3,
        "fillers": 12,
        "gap": 2,
        "distractors": [1, 3],
        "bare": [0, 2],
        "splits": {
            "test": {"buckets": [[16, 20], [21, 30]], "per_bucket": 30},
            "valid": {"buckets": [[16, 30]], "per_bucket": 40},
            "train": {"buckets": [[16, 30]], "per_bucket": 100},
        },
    }
    return small | changes


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


def deciding(segment):
    """The relevant keys of a text with their values, as its evidence says."""
    text, places = segment.texts[0].split(), list(map(int, segment.texts[2].split()))
    return [(text[key], text[value]) for key, value in zip(places[::2], places[1::2], strict=True)]


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


def test_every_number_and_distance_that_the_parameters_allow_occurs(shipped):
    parameters, corpus = shipped
    known = meanings(parameters)
    texts = [segment.texts[0].split() for segment in corpus["train"]]
    counts = [Counter(known[word][0] for word in text) for text in texts]
    gaps = Counter()
    for segment in corpus["train"]:
        positions = list(map(int, segment.texts[2].split()))
        gaps.update(value - key - 1 for key, value in zip(positions[::2], positions[1::2], strict=True))
    assert {count["decoys"] for count in counts} == {3, 4, 5, 6}
    assert {count["values"] for count in counts} == set(range(2 + 3, 2 + 6 + 3 + 1))
    # 8,000 facts, so 0.03 is more than five standard deviations.
    assert {gap: count / gaps.total() for gap, count in gaps.items()} == pytest.approx(
        dict.fromkeys(range(3), 1 / 3), abs=0.03
    )
    assert len(known) == (2 + 6) * 3 + 4 * 300 + 150
    never = known.keys() - set(itertools.chain(*texts))
    # The rarest forms of a value are expected 4 times in training, so a few of the 1,200 can be missing.
    assert [known[word][0] for word in never] == ["values"]


def test_forms_follow_zipfs_law_whether_they_decide_the_class_or_not(shipped):
    parameters, corpus = shipped
    words = vocabulary("evidence", parameters)
    evident, others = Counter(), Counter()
    for segment in corpus["train"]:
        places = set(map(int, segment.texts[2].split()))
        for i, word in enumerate(segment.texts[0].split()):
            (evident if i in places else others)[word] += 1
    for counts, group in (
        *((evident, key) for key in words.keys),
        *((others, decoy) for decoy in words.decoys),
        *((counts, value) for counts in (evident, others) for value in words.values),
    ):
        mentions = sum(counts[form] for form in group)
        expected = list(itertools.accumulate(1 / rank for rank in range(1, len(group) + 1)))
        assert mentions >= 2000
        # Cumulative, as most forms of a value are too rare to be judged alone. A share of 2,000 mentions has a
        # standard deviation of at most 0.011.
        found = itertools.accumulate(counts[form] for form in group)
        shares = [sofar / mentions for sofar in found]
        assert shares == pytest.approx([sofar / expected[-1] for sofar in expected], abs=0.05)


def test_forms_of_a_key_do_not_tell_its_value(shipped):
    parameters, corpus = shipped
    known = meanings(parameters)
    pairs = [pair for segment in corpus["train"] for pair in deciding(segment)]
    keys = Counter(key for key, _ in pairs)
    joint = Counter((key, known[value][1]) for key, value in pairs)
    names = [forms[0] for forms in vocabulary("evidence", parameters).values]
    # The rarest form of a key has about 730 mentions, so 0.08 is five standard deviations.
    assert {pair: count / keys[pair[0]] for pair, count in joint.items()} == pytest.approx(
        dict.fromkeys(itertools.product(keys, names), 1 / 4),
        abs=0.08,
    )


def test_as_many_deciding_words_are_rare_in_training_as_the_card_says(shipped):
    parameters, corpus = shipped
    words = vocabulary("evidence", parameters)
    pairs = Counter(pair for segment in corpus["train"] for pair in deciding(segment))
    forms = Counter(value for segment in corpus["train"] for _, value in deciding(segment))
    named = set(itertools.chain(*words.values))
    assert (sum(map(len, words.keys)) * len(named), len(pairs)) == (7200, 2698)
    assert (len(named), len(named - forms.keys())) == (1200, 159)
    tests = [deciding(segment) for segment in corpus["test"]]
    shares = [
        statistics.fmean(any(pairs[pair] < 1 for pair in text) for text in tests),
        statistics.fmean(any(pairs[pair] < 3 for pair in text) for text in tests),
        statistics.fmean(any(forms[value] < 1 for _, value in text) for text in tests),
        statistics.fmean(any(forms[value] < 3 for _, value in text) for text in tests),
        statistics.fmean((1 / 4) ** len({value for _, value in text} - forms.keys()) for text in tests),
    ]
    assert shares == pytest.approx([0.3715, 0.638, 0.054, 0.295, 0.959], abs=0.0005)


def test_the_classes_are_balanced_and_named_by_the_most_frequent_forms(shipped):
    parameters, corpus = shipped
    names = [forms[0] for forms in vocabulary("evidence", parameters).values]
    classes = {"+".join(label) for label in itertools.product(names, repeat=parameters.keys)}
    assert len(classes) == 16
    for segments in corpus.values():
        counts = Counter(segment.texts[1] for segment in segments)
        assert counts.keys() == classes
        assert max(counts.values()) - min(counts.values()) <= 1


def test_counting_words_without_their_order_gets_no_further_than_the_card_says(shipped):
    parameters, corpus = shipped
    known = meanings(parameters)
    best = [[], []]  # the probability of the best guess, with the value of no key known, and of one
    for segment in itertools.chain(*corpus.values()):
        parts = (known[word] for word in segment.texts[0].split())
        counts = Counter(meaning for part, meaning in parts if part == "values")
        label = segment.texts[1].split("+")
        for found, guess in enumerate(best):
            guess.append(best_guess(counts - Counter(label[:found]), len(label) - found))
    assert [statistics.fmean(guess) for guess in best] == pytest.approx([0.189, 0.461], abs=0.0005)


def best_guess(counts, keys):
    """Which of the values the keys have is one of all ordered choices without replacement, equally likely."""

    def ways(guess):
        return math.prod(math.perm(counts[value], times) for value, times in Counter(guess).items())

    guesses = itertools.combinations_with_replacement(counts, keys)
    return max(map(ways, guesses)) / math.perm(counts.total(), keys)


def test_words_show_the_part_they_play_and_mean_only_one_thing():
    words = vocabulary("evidence", build(Evidence, values(), where="test"))
    assert [[len(forms) for forms in part] for part in words[:3]] == [[2] * 2, [2] * 3, [3] * 3]
    parts = [*(list(itertools.chain(*part)) for part in words[:3]), words.fillers]
    assert [len(part) for part in parts] == [4, 6, 9, 12]
    assert len(set(itertools.chain(*parts))) == 31
    stem = "([^aeiou][aeiou]){1,2}[^aeiou]"
    assert [{re.sub(stem, "", word) for word in part} for part in parts] == [{"o"}, {"a"}, {""}, {"u"}]
