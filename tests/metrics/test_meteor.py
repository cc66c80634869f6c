"""METEOR from summed statistics against what METEOR's own EVAL said of them, and what a process may do."""

import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics.captioning import Meteor, coco, corpus_meteor
from tests.refused import assert_refused

# Hypothesis, references, METEOR 1.5's SCORE less the chunk of a hypothesis that is its reference, its EVAL.
RECORDED = [
    ("a man riding a horse", ["a man rides a horse"],
     "5 5 2 2 2 2 2 2 1 1 0 0 0 0 0 0 0 0 0 0 0 5 5", 0.890909090909091),
    ("a large dog", ["a big dog"], "3 3 1 1 1 1 1 1 0 0 0 0 1 1 0 0 0 0 0 0 0 3 3", 0.9142857142857143),
    ("car", ["automobile"], "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("he is running quickly", ["he ran quick"], "4 3 2 1 0 0 1 1 0 0 0 0 0 0 0 0 0 1 1 0 1 2 2", 0.16614596939906975),
    ("a red car on the road", ["an automobile drives down the street"],
     "6 6 3 2 0 0 1 1 0 0 0 0 0 0 0 0 1 1 0 0 1 2 2", 0.09762591632573075),
    ("people are sitting on a bench", ["a group of persons sits on the benches"],
     "6 8 4 4 0 0 2 2 1 1 0 0 0 0 0 0 0 1 1 1 3 4 5", 0.17626464716324963),
    ("a dog", [""], "2 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("", [""], "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("DOGS, run!", ["dogs run"], "4 2 1 0 2 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 2 2", 0.36363636363636365),
]  # fmt: skip
HYPOTHESES, REFERENCES = [row[0] for row in RECORDED], [row[1] for row in RECORDED]
STATISTICS = np.array([row[2].split() for row in RECORDED], dtype=np.int64)
SCORES = np.array([row[3] for row in RECORDED])


def test_scores_are_meteors():
    assert corpus_meteor(STATISTICS) == pytest.approx(100 * SCORES)


@given(st.lists(st.lists(st.integers(0, 3), min_size=len(RECORDED), max_size=len(RECORDED)), max_size=4))
def test_resamples_score_as_each_alone_and_within_bounds(counts):
    sums = np.array(counts, dtype=np.int64).reshape(-1, len(RECORDED)) @ STATISTICS
    scores = corpus_meteor(sums)
    assert scores == pytest.approx([float(corpus_meteor(row)) for row in sums])
    assert ((scores >= 0) & (scores <= 100)).all()


def test_a_segment_twice_scores_as_once():
    assert corpus_meteor(3 * STATISTICS) == pytest.approx(corpus_meteor(STATISTICS))


def test_segments_are_sent_a_line_each(fake_java):
    fake_java('for line in sys.stdin:\n    print(*[line.count("|||"), len(line), *[0] * 21], flush=True)')
    with Meteor() as meteor:
        found = meteor.statistics(["a  b ||| c\n", "d"], [["e", "f \u2028 g"], ["h"]])
        process = meteor._process
    assert found[:, :2].tolist() == [[3, len("SCORE ||| e ||| f g ||| a b c\n")], [2, len("SCORE ||| h ||| d\n")]]
    assert process.poll() is not None


@pytest.mark.parametrize(("body", "before", "said"), [
    ('sys.stdin.readline(); sys.exit("x\\njava.lang.OutOfMemoryError: no heap\\n\\tat Meteor.main(Unknown Source)")',
     False, r"no heap\); see that .* 1 GB of memory"),
    ('print("java.lang.OutOfMemoryError: no heap"); sys.exit(1)', False, r"no heap\); see that .* 1 GB of memory"),
    ('print("Error occurred during initialization of VM\\nno heap"); sys.exit(1)', True, r"has failed \(no heap\)"),
    ("", False, "it does not say why"),
], ids=["later", "at the start", "before it is asked", "without a word"])  # fmt: skip
def test_a_process_that_ends_says_why(fake_java, body, before, said):
    fake_java(body)
    with Meteor() as meteor:
        if before:
            meteor._process.wait()
        assert_refused(said, meteor.statistics, ["a"] * 1000, [["b"]] * 1000)


@pytest.mark.slow  # METEOR reads its paraphrases for ten seconds
def test_meteor_itself_agrees():
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    several = [*REFERENCES[1:], ["a man rides a horse", "people sat on benches", "a dog"]]
    everything = [(HYPOTHESES, REFERENCES), (HYPOTHESES, several)]
    with Meteor() as meteor:
        assert meteor.statistics(HYPOTHESES, REFERENCES).tolist() == STATISTICS.tolist()
        for hypotheses, references in everything:
            score, scores = its_own(meteor, hypotheses, references)
            found = meteor.statistics(hypotheses, references)
            assert corpus_meteor(found) == pytest.approx(100 * np.array(scores))
            assert float(corpus_meteor(found.sum(axis=0))) == pytest.approx(100 * score)


def its_own(meteor, hypotheses, references):
    """What pycocoevalcap's Meteor computes, on the process that is open already."""
    scorer = coco("meteor.meteor").Meteor
    itself = SimpleNamespace(meteor_p=meteor._process, lock=threading.Lock())
    itself._stat = lambda hypothesis, captions: scorer._stat(itself, hypothesis, captions)
    captions = {number: [caption] for number, caption in enumerate(hypotheses)}
    return scorer.compute_score(itself, dict(enumerate(references)), captions)
