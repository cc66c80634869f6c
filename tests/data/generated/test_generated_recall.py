"""The generated recalls, read by a reader that shares nothing with the generator."""

import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.recall import Recall, vocabulary


def values(**changes):
    return SMALL["recall"] | changes


def only(low, high, count):
    return {"splits": {"train": {"buckets": [[low, high]], "per_bucket": count}}}


@pytest.fixture(scope="module")
def shipped(pytestconfig, generated):
    """The card's parameters, and what is generated from them."""
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_recall.yaml")["sources"][0]["parameters"]
    return build(Recall, parameters, where="card"), generated("recall", parameters)


class Reading(NamedTuple):
    """What a text says."""

    recalls: list[tuple[int, int]]  # their places, and of what they repeat
    facts: list[tuple[str, str]]  # key and value of each that is set
    could: int  # places where a key could have been set
    did_not: int  # those of them with a filler
    waiting: dict[str, int]  # key to the place of the fact that was not asked for


def read(text, keys):
    """From left to right: each of the keys is set, then asked for and repeated, then free to be set."""
    words = text.split()
    known, recalls, facts, could, did_not = {}, [], [], 0, 0
    for i, word in enumerate(words):
        key, mark, value = re.fullmatch(r"([a-z]+)([:?]?)([a-z]*)", word).groups()
        if mark == "?":
            earlier = known.pop(key)
            assert words[i + 1] == words[earlier]
            recalls.append((i + 1, earlier))
        elif not recalls or recalls[-1][0] != i:
            could += len(known) < keys
            did_not += len(known) < keys and not mark
            if mark:
                assert key not in known
                known[key] = i
                facts.append((key, value))
    return Reading(recalls, facts, could, did_not, known)


def check(parameters, corpus):
    """Every text against the rule; returns the sums of all readings."""
    shortest, longest = parameters.distances
    late = 2 * (parameters.keys - 1)
    readings = []
    for segment in itertools.chain(*corpus.values()):
        text, recalls = segment.texts
        reading = read(text, parameters.keys)
        assert recalls == " ".join(f"{place}-{earlier}" for place, earlier in reading.recalls)
        assert all(shortest <= place - earlier <= longest + late for place, earlier in reading.recalls)
        # What was not asked for had no room.
        room = len(text.split()) - longest - late
        assert all(place >= room for place in reading.waiting.values())
        readings.append(reading)
    return readings


def distances(readings):
    return [place - earlier for reading in readings for place, earlier in reading.recalls]


def test_the_shipped_recalls_follow_from_the_texts(shipped):
    assert len(check(*shipped)) == 490


@given(
    seed=st.integers(0, 1000),
    keys=st.integers(1, 12),
    shortest=st.integers(3, 9),
    more=st.integers(0, 20),
    filler_share=st.floats(0, 0.9),
)
@settings(deadline=None, max_examples=30)
def test_recalls_follow_from_the_texts_for_any_parameters(seed, keys, shortest, more, filler_share):
    changed = values(seed=seed, keys=keys, distances=[shortest, shortest + more], filler_share=filler_share) | only(
        40, 60, 10
    )
    assert len(check(build(Recall, changed, where="test"), generate("recall", changed))) == 10


def test_distances_are_log_uniform_where_no_question_waits_for_another():
    # Of a single key every distance is as drawn; in texts this long next to none would fall beyond the end.
    changed = values(keys=1, distances=[3, 40]) | only(20_000, 20_000, 10)
    found = np.sort(distances(check(build(Recall, changed, where="test"), generate("recall", changed))))
    assert len(found) > 8000
    assert (found[0], found[-1]) == (3, 40)
    upper = np.arange(3, 41)
    below = np.searchsorted(found, upper, side="right") / len(found)
    expected = np.minimum(np.log((upper + 0.5) / 3) / np.log(40 / 3), 1)
    # Kolmogorov's statistic; beyond 2.2 / sqrt(8000) in one of 8,000 cases.
    assert np.abs(below - expected).max() < 0.025


def test_the_later_of_two_questions_that_fall_due_together_waits():
    # Both keys are set at once, with the same distance: the second question is due in place of the first repetition.
    changed = values(keys=2, distances=[3, 3], filler_share=0) | only(12, 12, 1)
    text = generate("recall", changed)["train"][0].texts[0]
    a, b = (word.partition(":")[0] for word in text.split()[:2])
    forms = [re.sub(":.*", ":", word) for word in text.split()]
    assert forms[:6] == [f"{a}:", f"{b}:", f"{a}?", f"{a}:", f"{b}?", f"{b}:"]
    assert generate("recall", changed)["train"][0].texts[1].split()[:2] == ["3-0", "5-1"]


def test_names_show_the_part_they_play_and_mean_only_one_thing():
    words = vocabulary(build(Recall, values(), where="test"))
    assert [len(part) for part in words] == [4, 3, 6]
    assert len({*itertools.chain(*words)}) == 13
    stem = "[^aeiou][aeiou][^aeiou]"
    assert [{re.sub(stem, "", word) for word in part} for part in words] == [{"o"}, {"a"}, {"u"}]
