import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.generated import AdjacentSwap, generate, lexicon, translate
from shared.errors import ReplicationError


def parameters(**changes):
    small = {
        "test": {"buckets": [[3, 5], [6, 10]], "per_bucket": 20},
        "valid": {"buckets": [[3, 10]], "per_bucket": 30},
        "train": {"buckets": [[3, 10]], "per_bucket": 200},
    }
    return {"seed": 1, "nouns": 5, "adjectives": 4, "others": 3, "splits": small} | changes


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
        moved_right = (
            s + 1 < len(words) and words[s] in LANGUAGE.adjectives and words[s + 1] in LANGUAGE.nouns
        )
        moved_left = s > 0 and words[s] in LANGUAGE.nouns and words[s - 1] in LANGUAGE.adjectives
        assert t - s == int(moved_right) - int(moved_left)


def test_only_the_adjective_next_to_the_noun_swaps():
    adjective, noun = min(LANGUAGE.adjectives), min(LANGUAGE.nouns)
    assert translate([adjective, adjective, noun, noun], LANGUAGE)[1] == [(0, 0), (1, 2), (2, 1), (3, 3)]


def test_every_bucket_has_its_count_and_lengths_and_no_sentence_comes_twice():
    corpus = generate("adjacent_swap", parameters())
    everything = [segment for split in corpus.values() for segment in split]
    assert len({segment.texts[0] for segment in everything}) == len(everything) == 270
    assert len({segment.texts[1] for segment in everything}) == len(everything)
    lengths = [len(segment.texts[0].split()) for segment in corpus["test"]]
    assert set(lengths[:20]) == {3, 4, 5}
    assert set(lengths[20:]) <= {6, 7, 8, 9, 10}


def test_a_larger_train_split_changes_nothing_before_it():
    base = generate("adjacent_swap", parameters())
    splits = parameters()["splits"] | {"train": {"buckets": [[3, 10]], "per_bucket": 500}}
    larger = generate("adjacent_swap", parameters(splits=splits))
    assert larger["test"] == base["test"]
    assert larger["valid"] == base["valid"]
    assert list(larger["train"])[:200] == base["train"]


def test_the_seed_alone_decides():
    assert generate("adjacent_swap", parameters()) == generate("adjacent_swap", parameters())
    assert generate("adjacent_swap", parameters()) != generate("adjacent_swap", parameters(seed=2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sed": 1}, "did you mean 'seed'"),
        ({"nouns": 200}, "at most 160 word types"),
        ({"splits": {"train": {"buckets": [[1, 1]], "per_bucket": 100}}}, "too few distinct sentences"),
        ({"splits": {"train": {"buckets": [[5, 3]], "per_bucket": 100}}}, "not a range of lengths"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    with pytest.raises(ReplicationError, match=message):
        generate("adjacent_swap", parameters(**changes))


def test_an_unknown_task_is_named_with_the_known_ones():
    with pytest.raises(ReplicationError, match="no generated task 'swap'; known tasks: adjacent_swap"):
        generate("swap", {})
