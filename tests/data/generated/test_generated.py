"""Generated translations, sequences to be copied, pictures and proteins."""

import io
import itertools

import numpy as np
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


def drawn(**changes):
    files = generate("pictures", SMALL["pictures"] | changes).files
    return {name.removesuffix(".images.npy"): np.load(io.BytesIO(file)) for name, file in files.items()}


def test_all_but_the_strokes_is_black_and_strokes_are_neither_faint_nor_thin_and_have_no_gap():
    for image in drawn(strokes=1)["train"]:
        greys = np.unique(image)
        assert (len(greys), greys[0]) == (2, 0)
        assert greys[1] >= 128
        rows, columns, _ = np.nonzero(image)
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert min(height, width) >= 3
        assert len(rows) >= 3 * max(height, width)
        for axis in (0, 1):
            touched = np.flatnonzero(image[..., 0].any(axis))
            assert all(later - earlier == 1 for earlier, later in itertools.pairwise(touched))


def families(segments):
    found = {}
    for segment in segments:
        name, _, accession = segment.key.partition(":")
        found.setdefault(name, {})[accession] = segment.texts[0]
    return found


def test_families_are_in_one_split(pytestconfig):
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_proteins.yaml")["sources"][0]["parameters"]
    corpus = generate("proteins", parameters)
    assert {*corpus} == {"train", "valid", "test", "test_families"}
    homes = {split: families(segments) for split, segments in corpus.items()}
    for split, own in homes.items():
        wanted = parameters["splits"][split]
        assert [len(members) for members in own.values()] == [wanted["members"]] * wanted["families"]
    names = [name for own in homes.values() for name in own]
    assert len({*names}) == len(names)
