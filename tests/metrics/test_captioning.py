"""Caption metrics against their official scorers, METEOR against its own EVAL, and what their programs may do."""

import json
import math
import os
import shutil
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics import captioning
from shared.metrics.captioning import Meteor, coco, corpus_meteor
from shared.metrics.translation import corpus_bleu as smoothed_bleu
from tests.refused import assert_refused

corpus_bleu = partial(smoothed_bleu, smooth=False)
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")

HYPOTHESES = ["A man rides a brown horse.", "two dogs", "a kitten sleeping on the sofa", "", "a man in the snow"]
REFERENCES = [
    ["A man is riding a horse.", "a person rides a brown horse", "the man's horse"],
    ["Two dogs play in the snow!", "dogs run, and run -- and run"],
    ["a cat asleep on a sofa", "A kitten sleeping on the sofa"],
    ["An empty road", "a road (empty)"],
    ['a "snow man" in the snow', "a man in a café", "the man of snow in the snow in winter"],
]
caption = st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join)
worded = st.lists(st.sampled_from("abcd"), min_size=1, max_size=7).map(" ".join)
corpora = st.lists(st.tuples(caption, st.lists(worded, min_size=1, max_size=3)), min_size=1, max_size=5).map(
    lambda images: tuple(map(list, zip(*images, strict=True)))
)


def as_coco(hypotheses, references):
    """The two dictionaries that pycocoevalcap's scorers take."""
    return dict(enumerate(references)), {number: [text] for number, text in enumerate(hypotheses)}


def test_only_the_brevity_penalty_punishes_short_captions():
    sums = captioning.bleu_statistics(["a b c d"], [["a b c d e f g h"]])[0]
    assert float(corpus_bleu(sums, brevity_penalty=False)) == pytest.approx(100)
    assert float(corpus_bleu(sums)) == pytest.approx(100 * math.exp(1 - 8 / 4))
    longer = captioning.bleu_statistics(["a b c d e"], [["a b c d"]])[0]
    assert corpus_bleu(longer) == corpus_bleu(longer, brevity_penalty=False)


@given(corpora)
def test_bleu_is_pycocoevalcaps_where_every_order_has_a_match(corpus):
    statistics = captioning.bleu_statistics(*corpus)
    for some in (slice(None), slice(1)):  # all images, and the first alone
        sums = statistics[some].sum(axis=0)
        theirs = captioning.coco("bleu.bleu").Bleu(4)
        expected, _ = theirs.compute_score(*as_coco(*(each[some] for each in corpus)), verbose=0)
        for orders, score in enumerate(expected, start=1):
            ours = float(corpus_bleu(sums, orders=orders))
            assert ours == pytest.approx(100 * score if sums[2 : 2 + orders].all() else 0)


@pytest.mark.parametrize(("measure", "scorer"), [(captioning.rouge_l, "Rouge"), (captioning.cider, "Cider")])
@given(corpora)
def test_values_of_images_have_pycocoevalcaps_mean(measure, scorer, corpus):
    theirs = getattr(captioning.coco(f"{scorer.lower()}.{scorer.lower()}"), scorer)()
    assert measure(*corpus).mean() == pytest.approx(theirs.compute_score(*as_coco(*corpus))[0])


def test_cider_knows_rare_words_by_the_other_images():
    references = [["a red car"], ["a red bus"], ["a dog"]]
    rare, common = captioning.cider(["car", "", ""], references), captioning.cider(["red", "", ""], references)
    assert rare[0] > common[0] > 0
    assert captioning.cider(["car"], [["a red car"]]).tolist() == [0]


@needs_java
def test_captions_are_cut_into_words_as_pycocoevalcap_cuts_them():
    captions = [*HYPOTHESES, *(text for texts in REFERENCES for text in texts), "Can't 1 1/2 U.S. ...", ""]
    folder = captioning.beside("tokenizer.ptbtokenizer")
    before = sorted(folder.iterdir())
    found = captioning.tokenised([*captions, "two\nlines\u2028and\x85more\r"])
    assert found[0] == "a man rides a brown horse"
    assert found[-3:] == ["ca n't 1\xa01/2 u.s.", "", "two lines and more"]
    assert sorted(folder.iterdir()) == before
    if os.access(folder, os.W_OK):  # theirs writes there
        theirs = captioning.coco("tokenizer.ptbtokenizer").PTBTokenizer()
        asked = {number: [{"caption": text}] for number, text in enumerate(captions)}
        assert found[:-1] == [texts[0] for texts in theirs.tokenize(asked).values()]


# Words in capitals for the tokeniser, which is given a class; for METEOR the length of what it is asked.
JAVA = """
for line in sys.stdin:
    if "-cp" in sys.argv:
        print(line.rstrip("\\n").upper())
    else:
        print(len(line), *[0] * 22, flush=True)
"""


def test_a_scorer_gives_every_image_its_statistics(fake_java, monkeypatch):
    fake_java(JAVA)
    monkeypatch.setattr(captioning, "_SPICE_MODELS", ("no.jar",))
    hypotheses, references = ["a dog runs", "a cat"], [["the dog runs", "a dog"], ["a cat"]]
    with captioning.CaptionScorer() as scorer:
        rows = scorer.statistics(hypotheses, references)
        assert scorer.statistics(hypotheses, references) == rows
        signatures = scorer.signatures()
    upper, all_upper = ["A DOG RUNS", "A CAT"], [["THE DOG RUNS", "A DOG"], ["A CAT"]]
    assert json.loads(json.dumps(rows)) == rows
    assert [row["bleu"] for row in rows] == captioning.bleu_statistics(upper, all_upper).tolist()
    assert [row["rouge_l"] for row in rows] == captioning.rouge_l(upper, all_upper).tolist()
    assert [row["cider"] for row in rows] == captioning.cider(upper, all_upper).tolist()
    assert rows[1]["meteor"] == [len("SCORE ||| A CAT ||| A CAT\n"), *[0] * 22]
    assert [*rows[0]] == [name for name in signatures if "not computed" not in signatures[name]]
    assert "PTB tokeniser" in signatures["meteor"]


def test_spice_is_left_out_without_its_models(fake_java, monkeypatch):
    fake_java("")
    monkeypatch.setattr(captioning, "_SPICE_MODELS", ("no.jar", "such.jar"))
    with captioning.CaptionScorer(["spice", "rouge_l"], tokenisation="none") as scorer:
        assert scorer.statistics(["a"], [["a"]]) == [{"rouge_l": 1.0}]
        why = "not computed: no.jar and such.jar are not in pycocoevalcap/spice/lib"
        assert scorer.signatures()["spice"] == why
    with captioning.CaptionScorer(["spice"], tokenisation="none") as scorer:
        assert scorer.statistics(["a", "b"], [["a"], ["b"]]) == [{}, {}]
    assert_refused(r"SPICE cannot be computed: no.jar and such.jar are not in", captioning.spice, ["a"], [["a"]])


def test_spice_reads_what_its_program_writes(fake_java, monkeypatch):
    fake_java("""
import json
given, out = sys.argv[sys.argv.index("-out") - 1], sys.argv[sys.argv.index("-out") + 1]
rows = [{"image_id": of["image_id"], "scores": {"All": {"f": len(of["test"]) / len(of["refs"])}}}
        for of in json.load(open(given, encoding="utf-8"))]
json.dump(rows[::-1], open(out, "w"))
""")
    monkeypatch.setattr(captioning, "_SPICE_MODELS", ())
    with captioning.CaptionScorer(["spice"], tokenisation="none") as scorer:
        assert scorer.statistics(["ab", "é"], [["x", "y"], ["z"]]) == [{"spice": 1.0}, {"spice": 1.0}]
        assert scorer.signatures()["spice"].startswith("SPICE 1.0, pycocoevalcap 1.2")


@pytest.mark.parametrize(("body", "said"), [
    ('print("OutOfMemoryError: no heap", file=sys.stderr); sys.exit(1)', r"has failed \(OutOfMemoryError: no heap\)"),
    ('print("a")', "made 1 lines of 2 captions"),
])  # fmt: skip
def test_a_tokeniser_that_fails_or_loses_lines_is_refused(fake_java, body, said):
    fake_java(body)
    assert_refused(said, captioning.tokenised, ["a", "b"])


def test_bleu_of_words_needs_neither_java_nor_pycocoevalcap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with captioning.CaptionScorer(["bleu"], tokenisation="none") as scorer:
        assert scorer.statistics(["a b"], [["a b"]]) == [{"bleu": [2, 2, 2, 1, 0, 0, 2, 1, 0, 0]}]
        assert scorer.signatures()["bleu"].endswith("words as they are")
    for metrics, tokenisation in ((["bleu"], "ptb"), (["cider"], "none"), (["meteor"], "none")):
        assert_refused(r"pycocoevalcap, which is not installed;", captioning.require_scorers, metrics, tokenisation)


def test_java_is_asked_for_up_front(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for metrics, tokenisation in ((["bleu"], "ptb"), (["meteor"], "none"), (["spice"], "none")):
        assert_refused(r"need Java, .* install a Java", captioning.CaptionScorer, metrics, tokenisation=tokenisation)
    captioning.require_scorers(["bleu", "rouge_l", "cider"], "none")


def test_a_java_that_does_not_run_is_none(fake_java, monkeypatch, tmp_path):
    fake_java("")
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert_refused("there is no 'java' that works on the PATH", captioning.require_scorers, ["meteor"], "none")


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
MATCHED, MATCHED_REFERENCES = [row[0] for row in RECORDED], [row[1] for row in RECORDED]
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
    several = [*MATCHED_REFERENCES[1:], ["a man rides a horse", "people sat on benches", "a dog"]]
    everything = [(MATCHED, MATCHED_REFERENCES), (MATCHED, several)]
    with Meteor() as meteor:
        assert meteor.statistics(MATCHED, MATCHED_REFERENCES).tolist() == STATISTICS.tolist()
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
