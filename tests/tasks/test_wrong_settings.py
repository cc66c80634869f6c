"""Wrong settings of every kind of task: a sentence with the key and what to do, before any work."""

import pytest

from shared.tasks.classification.settings import check_texts
from tests.refused import assert_refused
from tests.tasks.in_process import run_config

WORDS = {"kind": "words", "size": 20}
PIECES = {"kind": "sentencepiece", "size": 20}
COUNTS = {"train": 9, "valid": 3, "test": 4}
CORPORA = {
    "translation": {"source": "a", "target": "b", "tokenizer": WORDS},
    "translation, pieces": {"source": "a", "target": "b", "tokenizer": PIECES},
    "classification": {"tokenizer": WORDS},
    "captioning": {"encoder": {"name": "efficientnet-lite0", "layer": "block15"}, "tokenizer": WORDS},
    "language": {"tokenizer": WORDS},
    "copies": {"of": "copies", "shortest": 2, "longest": 8, "sequences": COUNTS},
    "pixels": {"of": "pixels"},
    "proteins": {"of": "proteins"},
    "sets": {"asked": "count", "numbers": 4, "sizes": [1, 3]},
}
CASES = {
    "translation": [
        ("corpus", {"dictionary": True, "tokenizer": PIECES}, "a dictionary is of words"),
        ("evaluation", {"ensemble": True}, "ensemble needs at least two seeds"),
        ("evaluation", {"compounds": True}, "compounds needs moses"),
        ("decoding", {"minimum_ratio": 3.0, "maximum_ratio": 1.0}, "may not exceed maximum_ratio"),
    ],
    "translation, pieces": [
        ("decoding", {"replace_unknown": True}, "replace_unknown needs a tokenizer of kind 'words'"),
    ],
    "classification": [
        ("corpus", {"evidence": "a", "tokenizer": PIECES}, "evidence counts the words"),
        ("corpus", {"evidence": "a", "tokenizer": WORDS | {"split": "13a"}}, "with split: space"),
        ("corpus", {"evidence": "a", "texts": ["text", "text"]}, "evidence counts the words .* of one text"),
        ("corpus", {"classes": ["a", "b", "a"]}, "a class is listed twice"),
        ("corpus", {"tokenizer": WORDS | {"joint": True}}, "leave out tokenizer.joint"),
    ],
    "captioning": [
        ("corpus", {"test": ["test_long"]}, "the first of 'test' must be the split 'test'"),
        ("corpus", {"test": ["test", "valid"]}, "must name every split once"),
        ("corpus", {"tokenizer": WORDS | {"joint": True}}, "leave out tokenizer.joint"),
        ("corpus", {"images": {"tests": 3}}, "'images' limits tests, but the splits are train, valid, test"),
    ],
    "language": [
        ("corpus", {"tokenizer": WORDS | {"joint": True}}, "leave out tokenizer.joint"),
        ("corpus", {"unit": "byte"}, "kind words has the unit word, not byte"),
        ("corpus", {"tokenizer": {"kind": "characters"}, "unit": "byte"}, "has the unit character, not byte"),
        ("corpus", {"recalls": "why", "tokenizer": PIECES}, "recalls count the words"),
        ("corpus", {"recalls": "why", "shuffled": True}, "leave out 'shuffled'"),
        ("evaluation", {"reach": {"memory": 0, "same_length": True}}, "same_length needs a memory greater than 0"),
        ("evaluation", {"reach": {"memory": 9, "same_length": True}, "memories": [0]}, "needs memories greater than 0"),
        ("evaluation", {"sliding": {"context": 9}, "reach": {"memory": 9}}, r"set reach\.memory to 0"),
        ("evaluation", {"sliding": {"context": 9, "stride": 10}}, r"stride \(10\) must not exceed context \(9\)"),
        ("evaluation", {"contexts": {"step": 4, "most": 9, "positions": 9}}, r"most \(9\) must be a multiple of step"),
    ],
    "copies": [
        ("corpus", {"shortest": 9}, r"'shortest' \(9\) must not exceed 'longest' \(8\)"),
        ("corpus", {"sequences": {"train": 5}}, "'sequences' must have a number for each of train, valid, test"),
        ("evaluation", {"pictures": {"samples": 3}}, r"only models of pixels .* leave out evaluation\.pictures"),
        ("evaluation", {"baseline": True}, r"only proteins .* leave out evaluation\.baseline"),
    ],
    "pixels": [
        ("corpus", {"images": {"tset": 3}}, "'images' limits tset, but the splits are train, valid, test"),
        ("evaluation", {"swapped": {"other": {}}}, r"leave out evaluation\.swapped"),
        ("training", {"monitor": "error"}, r"no error is measured of pixels; leave out training\.monitor"),
    ],
    "sets": [
        ("corpus", {"asked": "sum"}, "'number', 'count' or 'mixture'"),
        ("corpus", {"sizes": [3, 2]}, "is not a range"),
        ("corpus", {"sizes": [0, 2]}, "greater than or equal to 1"),
        ("corpus", {"composed": {"train": 9}}, "'composed' must have a number for each of train, valid, test"),
        ("corpus", {"composed": COUNTS, "asked": "number"}, "labels of pictures are counted"),
        ("corpus", {"components": 2}, "only a mixture has components"),
        ("evaluation", {"shown": -1}, r"'evaluation\.shown': input should be greater than or equal to 0"),
    ],
}


def config(name, **sections):
    corpus = CORPORA[name] | sections.pop("corpus", {})
    return run_config("sequences" if "of" in corpus else name.partition(",")[0], corpus, **sections)


@pytest.mark.parametrize("corpus", CORPORA)
def test_what_is_right_is_let_pass(corpus):
    assert config(corpus).corpus.splits == ["train", "valid", "test"]


@pytest.mark.parametrize(
    ("corpus", "section", "changes", "words"), [(corpus, *case) for corpus, cases in CASES.items() for case in cases]
)
def test_what_is_wrong_is_refused(corpus, section, changes, words):
    assert_refused(words, config, corpus, **{section: changes})


def test_pairs_of_texts_are_for_networks_that_read_two():
    of_pairs = config("classification", corpus={"texts": ["premise", "hypothesis"]})
    assert_refused("reads one text at once, but its corpus has 2", check_texts, of_pairs, "here", pairs=False)
    check_texts(of_pairs, "here", pairs=True)
