"""Generated translations, sequences to be copied, pictures and proteins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.sequences import Copy
from shared.data.generated.translation import AdjacentSwap, exchanged, swap_lexicon, swapped


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
