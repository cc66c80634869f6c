"""What holds of every generated task, from the registry; and every wrong parameter is refused in a sentence."""

import io

import numpy as np
import pytest

from shared.data.generated import TASKS, generate
from shared.data.readers import read
from tests.refused import assert_refused


def buckets(low, high, test=20, train=60):
    """Three splits of texts of these lengths; the test split has two buckets."""
    middle = (low + high) // 2
    return {"test": {"buckets": [[low, middle], [middle + 1, high]], "per_bucket": test},
            "valid": {"buckets": [[low, high]], "per_bucket": test},
            "train": {"buckets": [[low, high]], "per_bucket": train}}  # fmt: skip


SWAP = {"seed": 1, "nouns": 5, "adjectives": 4, "others": 3, "splits": buckets(3, 10)}
SMALL = {
    "adjacent_swap": SWAP,
    "agreement": {"seed": 1, "places": [-1, 0, 2], "distances": [1, 3], "pronouns": 0.4,
                  "splits": buckets(3, 9, test=10)},
    "copy": {"seed": 1, "symbols": 10},
    "documents": {"seed": 1, "keys": 2, "topics": 3, "values": 3, "value_forms": 3, "fillers": 12, "sentences": [1, 4],
                  "splits": buckets(16, 30)},
    "exchanged_halves": {"seed": 1, "marking": 6, "others": 6, "splits": buckets(3, 10)},
    "grammar": {
        "seed": 1, "start": "S", "splits": buckets(2, 6), "words": {"AND": 1, "N-a": 6, "N-b": 6, "V": 6},
        "rules": {
            "S": {"NP-a VP": 0.5, "NP-b VP": 0.5},
            "NP-a": {"N-a": 0.7, "NP-a AND NP-a": 0.3},
            "NP-b": {"N-b": 0.7, "NP-b AND NP-b": 0.3},
            "VP": {"V": 0.5, "V NP-a": 0.5},
        },
    },
    "maxima": {"seed": 1, "sizes": [2, 5], "splits": {"test": 5, "valid": 4, "train": 30}},
    "mixtures": {"seed": 1, "sizes": [2, 5], "components": 2, "splits": {"test": 5, "valid": 4, "train": 30}},
    "noisy_swap": SWAP | {"noise": {"train": 0.25, "valid": 1.0}},
    "pictures": {"seed": 1, "side": 12, "strokes": 2, "splits": {"test": 5, "valid": 4, "train": 30}},
    "proteins": {
        "seed": 1, "lengths": [10, 30], "changed": 0.25,
        "splits": {"test": {"families": 2, "members": 3}, "valid": {"families": 3, "members": 1},
                   "train": {"families": 40, "members": 20}},
    },
    "recall": {"seed": 1, "keys": 4, "values": 3, "fillers": 6, "distances": [3, 20], "filler_share": 0.3,
               "splits": buckets(48, 70, test=10, train=20)},
    "tally": {"seed": 1, "keys": 2, "decoys": 3, "values": 3, "key_forms": 2, "value_forms": 3, "fillers": 12, "gap": 1,
              "votes": [1, 4], "distractors": [0, 2], "splits": buckets(20, 26)},
}  # fmt: skip
ARRAYS = ("maxima", "mixtures", "pictures")
TEXTS = [task for task in SMALL if task not in ("copy", "proteins", *ARRAYS)]


def made(task, **changes):
    """Split to what it has, segments, pictures or sets, each as something that can be compared."""
    corpus = generate(task, SMALL[task] | changes)
    if task == "copy":
        return {"test": [corpus.files["copy.json"]]}
    if task in ARRAYS:
        arrays = {name.partition(".")[0]: np.load(io.BytesIO(file)) for name, file in corpus.files.items()}
        if task != "pictures":
            arrays = {split: np.split(of["elements"], of["sizes"].cumsum()[:-1]) for split, of in arrays.items()}
        return {split: [each.tobytes() for each in own] for split, own in arrays.items()}
    return {split: list(segments) for split, segments in corpus.items()}


def test_every_task_is_tried_here():
    assert SMALL.keys() == TASKS.keys()


@pytest.mark.parametrize("task", SMALL)
def test_the_seed_alone_decides(task):
    base = made(task)
    assert made(task) == base
    other = made(task, seed=2)
    assert all(other[split] != base[split] for split in base)


@pytest.mark.parametrize("task", [task for task in SMALL if task != "copy"])
def test_later_splits_change_nothing_before_them_and_a_longer_split_begins_as_the_shorter_one(task):
    splits = SMALL[task]["splits"]
    longer = {"proteins": {"families": 41, "members": 20}, **dict.fromkeys(ARRAYS, 40)}.get(
        task, splits["train"] | {"per_bucket": splits["train"].get("per_bucket", 0) + 9} if task in TEXTS else None
    )
    base, larger = made(task), made(task, splits=splits | {"train": longer})
    assert len(larger["train"]) > len(base["train"])
    assert larger | {"train": larger["train"][: len(base["train"])]} == base


@pytest.mark.parametrize("task", [task for task in SMALL if task != "copy"])
def test_nothing_comes_twice_within_a_split_or_in_two(task):
    everything = [each for split in made(task).values() for each in split]
    texts = [each if isinstance(each, bytes) else each.texts[0] for each in everything]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("task", TEXTS)
def test_every_bucket_has_its_count_and_its_lengths(task):
    corpus, splits = made(task), SMALL[task]["splits"]
    for split, segments in corpus.items():
        wanted = splits[split]
        assert len(segments) == len(wanted["buckets"]) * wanted["per_bucket"]
        for i, segment in enumerate(segments):
            low, high = wanted["buckets"][i // wanted["per_bucket"]]
            assert low <= len(segment.texts[0].split()) <= high
    assert len({len(segment.texts[0].split()) for segment in corpus["train"]}) > (high - low) / 3


def only(low, high, count):
    return {"splits": {"train": {"buckets": [[low, high]], "per_bucket": count}}}


def with_rules(**rules):
    return {"rules": SMALL["grammar"]["rules"] | rules}


WRONG = [
    ("adjacent_swap", {"nouns": 200}, "at most 160 word types can be named, not 207"),
    ("adjacent_swap", only(1, 1, 100), "12 word types make too few distinct sentences of length 1"),
    ("adjacent_swap", only(5, 3, 100), r"\[5, 3\] is not a range"),
    ("agreement", {"places": [1, 1]}, "'places' has a number twice"),
    ("agreement", {"places": [0]}, "2 words make too few distinct"),
    ("documents", {"sentences": [0, 2]}, "a document without one has no class"),
    ("documents", only(15, 20, 10), "sentences can take 16 words, but the shortest text has 15"),
    ("grammar", {"start": "T"}, "T has neither rules nor words"),
    ("grammar", with_rules(VP={"V": 0.5, "V NP-a": 0.4}), "the probabilities of VP do not sum to 1"),
    ("grammar", with_rules(VP={" ": 1}), "VP has an empty expansion"),
    ("grammar", with_rules(VP={"V": 0.5, "V NP": 0.5}), "NP has neither rules nor words"),
    ("grammar", with_rules(VP={"V": 0.5, "V XP": 0.5}, XP={"V XP": 1}), "XP never comes down to words"),
    ("grammar", with_rules(XP={"V": 1}), "XP cannot be derived from S"),
    ("grammar", with_rules(V={"V": 1}), "V has both rules and words"),
    ("grammar", {"words": SMALL["grammar"]["words"] | {"V": 500}}, "at most 385 words can be named, not 513"),
    ("grammar", {"words": dict.fromkeys(SMALL["grammar"]["words"], 1)} | only(2, 2, 3), "too few different texts of 2"),
    ("grammar", only(1, 1, 1), "too few different texts of 1 to 1 words"),
    ("maxima", {"sizes": [0, 2]}, "greater than or equal to 1"),
    ("mixtures", {"components": 0}, "'components'.*greater than 0"),
    ("mixtures", {"splits": {"train": 0}}, "greater than 0"),
    ("noisy_swap", {"noise": {"trian": 0.1}}, "'noise' names the split 'trian', which is not made"),
    ("recall", {"fillers": 394}, "at most 400 keys, values and fillers can be named, not 401"),
    ("recall", {"distances": [3, 48]}, "the shortest text has 48 words, not 49 or more"),
    ("recall", {"keys": 1, "values": 2, "fillers": 1, "distances": [3, 3], "filler_share": 0} | only(12, 12, 9),
     "too few different texts of 12 to 12 words for the split 'train'"),
    ("tally", {"fillers": 1442}, "at most 1460 words can be named, not 1461"),
    ("tally", {"keys": 7}, "7 keys with 3 values make more than 1000 classes"),
    ("tally", {"distractors": [3, 1]}, r"\[3, 1\] is not a range"),
    ("tally", {"decoys": 0}, "'distractors' need decoys, and there are none"),
    ("tally", {"keys": 1, "key_forms": 1, "value_forms": 1, "votes": [1, 1], "distractors": [0, 0], "gap": 0}
     | only(2, 2, 4), "too few different texts of 2 to 2 words for the split 'train'; ask for fewer or for longer"),
    ("tally", {"votes": [0, 2]}, "a key without a cue has no answer"),
    ("tally", {"votes": [1, 5]}, "keys and values can take 24 words, but the shortest text has 20"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "changes", "message"), WRONG)
def test_wrong_parameters_are_refused(task, changes, message):
    assert_refused(f"(?i){message}", generate, task, SMALL[task] | changes)


def test_unknown_names_are_refused_with_the_nearest_one(tmp_path):
    assert_refused(r"no generated task 'taly' \(did you mean 'tally'\?\)", generate, "taly", {})
    assert_refused(r"no reader 'bibel' \(did you mean 'bible'\?\)", read, "bibel", tmp_path, ["en"], {})
