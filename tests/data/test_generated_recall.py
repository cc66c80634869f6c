"""The generated recalls, read by a reader that shares nothing with the generator."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated_recall import Recall, vocabulary
from shared.data.language import LanguageCorpusConfig, PreparedLanguage, prepare_language
from shared.data.splits import write_corpus
from shared.errors import ReplicationError


def values(**changes):
    small = {
        "seed": 1,
        "keys": 8,
        "values": 4,
        "fillers": 6,
        "distances": [[3, 6], [7, 20]],
        "per_range": 2,
        "splits": {
            "test": {"buckets": [[48, 52], [60, 70]], "per_bucket": 10},
            "valid": {"buckets": [[48, 70]], "per_bucket": 10},
            "train": {"buckets": [[48, 70]], "per_bucket": 20},
        },
    }
    return small | changes


@pytest.fixture(scope="module")
def shipped(pytestconfig):
    """The card's parameters, and what is generated from them."""
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_recall.yaml")["sources"][0]["parameters"]
    return build(Recall, parameters, where="card"), generate("recall", parameters)


def read(text):
    """The recalls of a text, from left to right: what is got must be what was set, and is set and got once."""
    known, links = {}, []
    words = text.split()
    for i, (said, key, value) in enumerate(zip(words, words[1:], words[2:], strict=False)):
        if said == "set":
            assert key not in known
            known[key] = value, i + 2
        elif said == "get":
            expected, earlier = known[key]
            assert value == expected
            links.append((i + 2, earlier))
            known[key] = None, None
    assert set(known.values()) <= {(None, None)}
    return " ".join(f"{place}-{earlier}" for place, earlier in links)


def distances(segment):
    return [
        int(place) - int(earlier) for place, earlier in (link.split("-") for link in segment.texts[1].split())
    ]


def check(parameters, corpus):
    """Every text against the rule; the numbers of its parts against the parameters."""
    words = vocabulary(parameters)
    for segment in itertools.chain(*corpus.values()):
        text, recalls = segment.texts
        assert read(text) == recalls
        ranges = Counter(
            next(bounds for bounds in parameters.distances if bounds[0] <= distance <= bounds[1])
            for distance in distances(segment)
        )
        assert ranges == dict.fromkeys(parameters.distances, parameters.per_range)
        facts = len(parameters.distances) * parameters.per_range
        kinds = Counter(
            "said"
            if word in ("set", "get")
            else next(name for name in words._fields if word in getattr(words, name))
            for word in text.split()
        )
        assert kinds["said"] == kinds["keys"] == kinds["values"] == 2 * facts


def test_the_shipped_recalls_follow_from_the_texts(shipped):
    check(*shipped)


@given(
    seed=st.integers(0, 1000),
    ranges=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    per_range=st.integers(1, 3),
    more=st.integers(0, 10),
)
@settings(deadline=None, max_examples=30)
def test_recalls_follow_from_the_texts_for_any_parameters(seed, ranges, per_range, more):
    ends = list(itertools.accumulate(ranges, initial=3))
    bounds = [[low, high - 1] for low, high in itertools.pairwise(ends)]
    facts = len(bounds) * per_range
    shortest = max(12 * facts, ends[-1] + 2) + more + 20
    splits = {"train": {"buckets": [[shortest, shortest + 5]], "per_bucket": 10}}
    changed = values(seed=seed, keys=facts + more, distances=bounds, per_range=per_range, splits=splits)
    check(build(Recall, changed, where="test"), generate("recall", changed))


def test_distances_and_values_are_as_frequent_as_the_card_says(shipped):
    parameters, corpus = shipped
    found = Counter(distance for segment in corpus["train"] for distance in distances(segment))
    assert set(range(4, 257)) == set(found)
    for low, high in parameters.distances:
        # 5,000 of each range, so five standard deviations of a half's share are 0.035.
        near = sum(found[distance] for distance in range(low, (low + high) // 2 + 1))
        share = ((low + high) // 2 + 1 - low) / (high + 1 - low)
        assert near / sum(found[distance] for distance in range(low, high + 1)) == pytest.approx(
            share, abs=0.035
        )
    set_values = Counter(
        value
        for segment in corpus["train"]
        for said, _, value in zip(*(segment.texts[0].split()[i:] for i in range(3)), strict=False)
        if said == "set"
    )
    assert set_values.total() == 30_000
    # A share of 1/16 of 30,000 has a standard deviation of 0.0014.
    assert {value: count / 30_000 for value, count in set_values.items()} == pytest.approx(
        dict.fromkeys(vocabulary(parameters).values, 1 / 16), abs=0.007
    )


def test_the_marked_symbols_of_a_stream_repeat_the_ones_at_their_distance(tmp_path):
    corpus = generate("recall", values())
    (tmp_path / "made").mkdir()
    write_corpus(corpus, ["text", "recall"], tmp_path / "made", compared=["text"])
    config = {"dataset": "made", "recalls": "recall", "tokenizer": {"kind": "words", "size": 100}}
    out = tmp_path / "out"
    out.mkdir()
    prepare_language(build(LanguageCorpusConfig, config, where="test"), tmp_path / "made", out)
    stream = PreparedLanguage.load(out).split("test")
    marked = np.flatnonzero(stream.distances)
    assert len(marked) == 20 * 4
    assert (stream.symbols[marked] == stream.symbols[marked - stream.distances[marked]]).all()
    expected = sorted(itertools.chain.from_iterable(map(distances, corpus["test"])))
    assert sorted(stream.distances[marked].tolist()) == expected


def test_buckets_have_their_count_and_lengths_and_no_text_comes_twice():
    corpus = generate("recall", values())
    lengths = [len(segment.texts[0].split()) for segment in corpus["test"]]
    assert [48 <= length <= 52 for length in lengths] == [True] * 10 + [False] * 10
    assert all(60 <= length <= 70 for length in lengths[10:])
    everything = [segment.texts[0] for segments in corpus.values() for segment in segments]
    assert len(set(everything)) == len(everything) == 50


def test_the_seed_alone_decides_and_later_splits_change_nothing_before_them():
    base = generate("recall", values())
    assert generate("recall", values()) == base
    assert generate("recall", values(seed=2)) != base
    splits = values()["splits"] | {"train": {"buckets": [[48, 70]], "per_bucket": 25}}
    larger = generate("recall", values(splits=splits))
    assert larger | {"train": larger["train"][:20]} == base


def test_words_show_the_part_they_play_and_mean_only_one_thing():
    words = vocabulary(build(Recall, values(), where="test"))
    assert [len(part) for part in words] == [8, 4, 6]
    assert len({"set", "get", *itertools.chain(*words)}) == 20
    stem = "[^aeiou][aeiou][^aeiou]"
    assert [{re.sub(stem, "", word) for word in part} for part in words] == [{"o"}, {"a"}, {"u"}]


def only(low, high, count):
    return {"splits": {"train": {"buckets": [[low, high]], "per_bucket": count}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filler": 1}, "did you mean 'fillers'"),
        ({"values": 1}, "greater than 1"),
        ({"fillers": 389}, "at most 400 words can be named, not 401"),
        ({"distances": []}, "'distances'"),
        ({"distances": [[2, 5]]}, r"\[2, 5\] is not a range of distances, which are at least 3"),
        ({"distances": [[5, 4]]}, r"\[5, 4\] is not a range of distances"),
        ({"distances": [[3, 7], [7, 20]]}, "must ascend and not overlap"),
        ({"keys": 3}, "a text has 4 recalls, so at least as many keys are needed"),
        (only(47, 60, 1), "texts of 48 words are needed, but the shortest has 47"),
        ({"distances": [[3, 6], [7, 46]]}, "texts of 49 words are needed, but the shortest has 48"),
        (only(60, 50, 1), "is not a range of lengths"),
        (
            {"distances": [[3, 3]], "per_range": 1, "keys": 1, "values": 2, "fillers": 1} | only(12, 12, 20),
            "of the split 'train', or no new one; make texts longer or 'per_range' smaller",
        ),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    with pytest.raises(ReplicationError, match=message):
        generate("recall", values(**changes))
