"""The generated language whose target words agree with several source words at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.translation import Agreement, agreeing, agreement_words, meant


def values(**changes):
    return SMALL["agreement"] | changes


@pytest.fixture(scope="module")
def shipped(pytestconfig, generated):
    """The card's parameters, and what is generated from them."""
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_agreement.yaml")["sources"][0]["parameters"]
    return build(Agreement, parameters, where="card"), generated("agreement", parameters)


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


@given(
    seed=st.integers(0, 1000),
    places=st.lists(st.integers(-4, 4), min_size=1, max_size=5, unique=True),
    distances=st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
    pronouns=st.floats(0, 0.9),
)
@settings(deadline=None, max_examples=40)
def test_every_target_is_what_the_naive_twin_makes_of_its_source(seed, places, distances, pronouns):
    splits = {"train": {"buckets": [[8, 12]], "per_bucket": 20}}
    drawn = values(seed=seed, places=places, distances=distances, pronouns=pronouns, splits=splits)
    parameters = build(Agreement, drawn, where="test")
    for segment in generate("agreement", drawn)["train"]:
        assert translated(segment.texts[0], parameters) == segment.texts[1]


def test_the_shipped_targets_are_too(shipped):
    parameters, corpus = shipped
    for split in ("test", "valid"):
        assert all(translated(segment.texts[0], parameters) == segment.texts[1] for segment in corpus[split])


def test_a_feature_is_that_of_its_place_and_a_chain_of_pronouns_that_of_its_end():
    assert meant([4, 5, 4, 0, 3], distances=[1, 3], words=4) == [3, 3, 0, 0, 3]
    assert agreeing([3, 0, 2, 1], places=[-1, 1]) == [0, 1 + 2, 0, 0]
