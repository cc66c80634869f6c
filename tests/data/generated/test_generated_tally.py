"""The generated tally, read by a reader that shares nothing with the generator."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.cues import Tally, vocabulary


def values(**changes):
    return SMALL["tally"] | changes


def check(parameters, corpus):
    """Every text against the rule, in which the value after a key is the next word that is not a filler."""
    words = vocabulary("tally", parameters)
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


def test_the_shipped_labels_follow_from_the_texts(pytestconfig, generated):
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_tally.yaml")["sources"][0]["parameters"]
    corpus = generated("tally", parameters)
    check(build(Tally, parameters, where="card"), corpus)
    for segments in corpus.values():
        counts = Counter(segment.texts[1] for segment in segments)
        assert len(counts) == 9
        assert max(counts.values()) - min(counts.values()) <= 1


@given(
    seed=st.integers(0, 1000),
    keys=st.integers(1, 3),
    votes=st.tuples(st.integers(1, 3), st.integers(3, 5)),
    gap=st.integers(0, 3),
    spare=st.integers(0, 8),
)
@settings(deadline=None, max_examples=30)
def test_labels_follow_from_the_texts_for_any_parameters(seed, keys, votes, gap, spare):
    shortest = 2 * (keys * votes[1] + 2) + spare
    splits = {"train": {"buckets": [[shortest, shortest + 5]], "per_bucket": 20}}
    parameters = values(seed=seed, keys=keys, votes=votes, gap=gap, splits=splits)
    check(build(Tally, parameters, where="test"), generate("tally", parameters))
