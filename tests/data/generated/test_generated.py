from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_generators import SMALL

from shared.data.generated import generate
from shared.data.generated.translation import AdjacentSwap, exchanged, swap_lexicon, swapped


def parameters(**changes):
    return SMALL["adjacent_swap"] | changes


def noisy(**changes):
    return SMALL["noisy_swap"] | changes


WORDS = swap_lexicon(AdjacentSwap.model_validate(parameters()))


def test_the_lexicon_is_one_to_one_and_of_the_size_asked_for():
    assert len(WORDS) == len(set(WORDS.values())) == 12
    assert Counter(word[-1] for word in WORDS) == {"o": 5, "a": 4, "u": 3}
    assert not WORDS.keys() & set(WORDS.values())


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


def test_noise_replaces_its_share_of_target_words_and_leaves_sources_and_links():
    splits = parameters()["splits"] | {"train": {"buckets": [[8, 10]], "per_bucket": 2000}}
    corpus = generate("noisy_swap", noisy(splits=splits))
    changed = {}
    for split, segments in corpus.items():
        pairs = []
        for segment in segments:
            words = segment.texts[0].split()
            order = swapped(words)
            clean = [WORDS[words[s]] for s in order]
            assert segment.links == " ".join(f"{s}-{t}" for s, t in sorted((s, t) for t, s in enumerate(order)))
            pairs += zip(clean, segment.texts[1].split(), strict=True)
        assert {found for _, found in pairs} == set(WORDS.values())
        changed[split] = sum(found != right for right, found in pairs) / len(pairs)
    # One in twelve random words is the right one; 18,000 words of train, so 0.02 is six standard deviations.
    assert changed["test"] == 0
    assert changed["train"] == pytest.approx(0.25 * 11 / 12, abs=0.02)
    assert changed["valid"] == pytest.approx(11 / 12, abs=0.15)


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
