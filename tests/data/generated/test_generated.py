import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.generated import generate
from shared.data.generated.translation import AdjacentSwap, exchange, lexicon, translate


def parameters(**changes):
    small = {
        "test": {"buckets": [[3, 5], [6, 10]], "per_bucket": 20},
        "valid": {"buckets": [[3, 10]], "per_bucket": 30},
        "train": {"buckets": [[3, 10]], "per_bucket": 200},
    }
    return {"seed": 1, "nouns": 5, "adjectives": 4, "others": 3, "splits": small} | changes


def halves(**changes):
    splits = parameters()["splits"]
    return {"seed": 1, "marking": 6, "others": 6, "splits": splits} | changes


def noisy(**changes):
    return parameters(noise={"train": 0.25, "valid": 1.0}) | changes


LANGUAGE = lexicon(AdjacentSwap.model_validate(parameters()))


def test_the_lexicon_is_one_to_one_and_of_the_size_asked_for():
    assert len(LANGUAGE.translation) == len(set(LANGUAGE.translation.values())) == 12
    assert (len(LANGUAGE.nouns), len(LANGUAGE.adjectives)) == (5, 4)
    assert not LANGUAGE.translation.keys() & set(LANGUAGE.translation.values())


@given(words=st.lists(st.sampled_from(list(LANGUAGE.translation)), min_size=1, max_size=12))
def test_gold_links_are_a_bijection_onto_the_translations(words):
    target, links = translate(words, LANGUAGE)
    assert sorted(s for s, _ in links) == sorted(t for _, t in links) == list(range(len(words)))
    assert all(target[t] == LANGUAGE.translation[words[s]] for s, t in links)
    for s, t in links:
        moved_right = s + 1 < len(words) and words[s] in LANGUAGE.adjectives and words[s + 1] in LANGUAGE.nouns
        moved_left = s > 0 and words[s] in LANGUAGE.nouns and words[s - 1] in LANGUAGE.adjectives
        assert t - s == int(moved_right) - int(moved_left)


def test_only_the_adjective_next_to_the_noun_swaps():
    adjective, noun = min(LANGUAGE.adjectives), min(LANGUAGE.nouns)
    assert translate([adjective, adjective, noun, noun], LANGUAGE)[1] == [(0, 0), (1, 2), (2, 1), (3, 3)]


@pytest.mark.parametrize("length", range(1, 8))
def test_the_halves_change_places_after_a_marking_word_and_only_then(length):
    words = [f"w{i}u" for i in range(length)]
    assert exchange(words, {word: word for word in words}) == (words, [(i, i) for i in range(length)])
    words[0] = "mi"
    target, links = exchange(words, {word: word for word in words})
    cut = length // 2
    assert target == words[cut:] + words[:cut]
    assert [s for s, _ in links] == list(range(length))
    assert [target[t] for _, t in links] == words


def test_the_generated_halves_follow_their_rule():
    segments = [segment for split in generate("exchanged_halves", halves()).values() for segment in split]
    pairs = [(segment.texts[0].split(), segment.texts[1].split(), segment.links) for segment in segments]
    translation = {source[0]: target[0] for source, target, _ in pairs if source[0].endswith("u")}
    moved = 0
    for source, target, links in pairs:
        cut = len(source) // 2 if source[0].endswith("i") else 0
        moved += cut > 0
        expected = sorted((s, (s - cut) % len(source)) for s in range(len(source)))
        assert links == " ".join(f"{s}-{t}" for s, t in expected)
        assert all(target[t] == translation.get(source[s], target[t]) for s, t in expected)
    assert len(segments) / 3 < moved < len(segments) * 2 / 3
    assert {len(source) for source, _, _ in pairs} == set(range(3, 11))


def test_noise_replaces_its_share_of_target_words_and_leaves_sources_and_links():
    splits = parameters()["splits"] | {"train": {"buckets": [[8, 10]], "per_bucket": 2000}}
    corpus = generate("noisy_swap", noisy(splits=splits))
    changed = {}
    for split, segments in corpus.items():
        pairs = []
        for segment in segments:
            clean, links = translate(segment.texts[0].split(), LANGUAGE)
            assert segment.links == " ".join(f"{s}-{t}" for s, t in links)
            pairs += zip(clean, segment.texts[1].split(), strict=True)
        assert {found for _, found in pairs} == set(LANGUAGE.translation.values())
        changed[split] = sum(found != right for right, found in pairs) / len(pairs)
    # One in twelve random words is the right one; 18,000 words of train, so 0.02 is six standard deviations.
    assert changed["test"] == 0
    assert changed["train"] == pytest.approx(0.25 * 11 / 12, abs=0.02)
    assert changed["valid"] == pytest.approx(11 / 12, abs=0.15)


def test_a_clean_target_is_no_target_of_another_split_though_noise_hides_it():
    tight = {
        "test": {"buckets": [[1, 1]], "per_bucket": 1},
        "train": {"buckets": [[1, 1]], "per_bucket": 2},
    }
    for seed in range(20):
        values = noisy(seed=seed, splits=tight, noise={"train": 1.0})
        language = lexicon(AdjacentSwap.model_validate(parameters(seed=seed)))
        corpus = generate("noisy_swap", values)
        seen = [segment.texts[0] for split in corpus.values() for segment in split]
        assert len(set(seen)) == 3
        written = {segment.texts[1] for segment in corpus["test"]}
        train = corpus["train"]
        hidden = {" ".join(translate(segment.texts[0].split(), language)[0]) for segment in train}
        assert not written & (hidden | {segment.texts[1] for segment in train})
