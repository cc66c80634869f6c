"""Corpus measures from summed statistics, against sacreBLEU and by hand; labelled brackets; and the registry of all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from shared.errors import ReplicationError
from shared.metrics.parsing import bracket_counts, brackets
from shared.metrics.quantities import Measure
from shared.metrics.registry import MEASURES, Family, by_theme, corpus_values, known, measure, register, split_of
from shared.metrics.translation import bleu_signature, bleu_statistics, chrf, corpus_bleu, moses_tokenised


def test_alignment_agreement_of_a_worked_example():
    # A = 4 links, S = 3, of A two are sure and three possible: an error rate of 1 - (2 + 3) / (4 + 3)
    example = {"alignment": {"aer": [2, 3, 4, 3]}}
    for name, value in {"alignment_precision": 3 / 4, "alignment_recall": 2 / 3, "aer": 2 / 7}.items():
        of = MEASURES[name]
        sums = np.array(of.statistics(example), dtype=float)
        assert of.corpus(sums) == pytest.approx(value)
        assert of.corpus(np.stack([sums, 2 * sums])) == pytest.approx([value, value])
        assert of.of([example, {}, example]) == pytest.approx(value)


def test_moses_bleu_is_not_smoothed():
    sums = np.array([4.0, 4, 3, 2, 1, 0, 4, 3, 2, 1])
    for name in ("bleu_tokenized", "bleu_tokenized_replaced", "bleu_compounds", "bleu_compounds_replaced"):
        assert MEASURES[name].corpus(sums) == 0
    assert MEASURES["bleu_replaced"].corpus(sums) > 0
    assert MEASURES["bleu_tokenized"].statistics({"bleu_tokenized": [1]}) == [1]


def test_an_unknown_name_is_a_number_of_the_run():
    assert measure("tokens_per_second").statistics is None
    assert measure("tokens_per_second").title == "tokens per second"


CLASSIFIED = [
    {"correct": 1, "cross_entropy": 0.25, "rows": {"redundancy": 0.5, "focus": 0.25, "penalty": 2.0},
     "evidence": {"mass": 0.5, "found": 2, "words": 4, "length": 40}, "deletion": {"top": 0, "random": 1.0}},
    {"correct": 0, "cross_entropy": 1.75, "rows": {"focus": 0.75, "penalty": 1.0},
     "evidence": {"mass": 0.9, "found": 1, "words": 1, "length": 5}, "deletion": {"top": 1, "random": 0.5}},
    {"correct": 1, "cross_entropy": 1.0},
]  # fmt: skip


CAPTIONED = [
    {"caption": {"bleu": [4, 8, 4, 3, 2, 1, 4, 3, 2, 1], "meteor": [2, 2, 1, 1, 1, 1, 1, 1, *[0] * 13, 2, 2],
                 "rouge_l": 0.25, "cider": 0.5, "spice": 0.1},
     "regions": {"mass": 1.5, "area": 0.75, "hits": 2.0, "centres": 0.5, "words": 3},
     "generated_regions": {"mass": 0.5, "area": 0.25, "hits": 1.0, "centres": 0.5, "words": 1},
     "gate": {"content": [1.5, 3], "function": [0.5, 2], "end": [0.2, 2]},
     "truth": {"objects": 3, "named": 1, "mentioned": 2, "right": 1, "relations": 1, "true": 1, "grammatical": 1,
               "all_true": 0}},
    {"caption": {"bleu": [4, 4, 2, 0, 0, 0, 4, 3, 2, 1], "meteor": [2, 2, 1, 1, *[0] * 19],
                 "rouge_l": 0.75, "cider": 1.5, "spice": 0.2},
     "regions": {"mass": 0.5, "area": 0.25, "hits": 0.0, "centres": 0.25, "words": 1},
     "generated_regions": {"mass": 1.0, "area": 0.5, "hits": 1.0, "centres": 0.5, "words": 2},
     "gate": {"content": [0.9, 1], "function": [0.0, 0], "end": [0.3, 1]},
     "truth": {"objects": 1, "named": 1, "mentioned": 1, "right": 1, "relations": 2, "true": 1, "grammatical": 1,
               "all_true": 1}},
    {"regions": {"mass": 0.0, "area": 0.0, "hits": 0.0, "centres": 0.0, "words": 0},
     "generated_regions": {"mass": 0.0, "area": 0.0, "hits": 0.0, "centres": 0.0, "words": 0},
     "truth": {"objects": 2, "named": 0, "mentioned": 0, "right": 0, "relations": 0, "true": 0, "grammatical": 0,
               "all_true": 0}},
]  # fmt: skip


KNOWN = {"bleu_known": [9, 9, 9, 8, 7, 6, 9, 8, 7, 6], "unknown": False}
LIKELY = [{"nll": 6.0, "tokens": 4, "references": ["a", "b c"]}, {"nll": 3.0, "tokens": 5}]
LOSING = {"regions": {"mass": 0.25, "area": 0.5, "hits": 0.0, "centres": 0.5, "words": 1},
          "gate": {"content": [0.0, 1], "function": [1.0, 1], "end": [1.0, 1]}}  # fmt: skip
ALONE = {"regions": {"named": 0.0, "others": 0.0, "compared": 0}}
SEVERAL = {"regions": {"named": 0.75, "others": 1.5, "compared": 3}}
PRECISIONS = [6 / 8, 3 / 6, 2 / 4, 1 / 2]
BLEUS = {f"bleu{n}": 100 * math.prod(PRECISIONS[:n]) ** (1 / n) for n in range(1, 5)}
VALUES = [
    ([{"exact": 1}, {"exact": 0}], {"exact_match": 0.5}),
    ([{"brackets": [3, 4, 4]}, {"brackets": [0, 0, 2]}],
     {"bracket_precision": 100 * 3 / 4, "bracket_recall": 100 * 3 / 6, "bracket_f1": 100 * 6 / 10}),
    (CLASSIFIED, {
        "accuracy": 200 / 3, "cross_entropy": 1.0, "redundancy": 0.5, "focus": 0.5, "penalty": 1.5,
        "evidence_mass": 0.7, "evidence_found": (2 / 4 + 1) / 2, "evidence_chance": (4 / 40 + 1 / 5) / 2,
        "accuracy_top_deleted": 50, "accuracy_random_deleted": 75, "deletion_effect": 25,
    }),
    # Half of the words match in precision as in recall; a hypothesis that is its reference has no chunk.
    (CAPTIONED, BLEUS | {"bleu4_penalised": BLEUS["bleu4"] * math.exp(1 - 12 / 8), "meteor": 50.0} | {
        "rouge_l": 50.0, "cider": 100.0, "spice": 15.0, "object_recall": 2 / 6, "object_precision": 2 / 3,
        "relation_accuracy": 2 / 3, "truth": 100 / 3, "attention_correctness": 2.0 / 4,
        "attention_correctness_chance": 1.0 / 4, "attention_gain": 1.0 / 4, "pointing_accuracy": 2.0 / 4,
        "pointing_accuracy_chance": 0.75 / 4, "pointing_gain": 1.25 / 4, "generated_correctness": 1.5 / 3,
        "gate_content": (0.5 + 0.9) / 2, "gate_function": 0.25, "gate_end": (0.1 + 0.3) / 2, "gate_difference": 0.25,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("examples", "values"), VALUES)
def test_values_are_of_summed_statistics_and_of_nothing_that_no_example_carries(examples, values):
    assert corpus_values(examples) == pytest.approx(values)


@pytest.mark.parametrize(("name", "examples", "value"), [
    ("bleu", [{"id": "test-1"}], None),
    ("chrf", [{"id": "test-1"}], None),
    ("bracket_precision", [{"brackets": [0, 0, 2]}], 0.0),
    ("bracket_precision", [{"brackets": [0, 0, 0]}], math.nan),
    ("bleu_known", [KNOWN], 100),
    ("bleu_known", [KNOWN, {"bleu_known": [0] * 10, "unknown": True}], 100),  # of sentences without <unk>
    ("bleu_known", [KNOWN | {"unknown": True}], None),
    ("object_recall", CAPTIONED[2:], 0.0),
    ("object_precision", CAPTIONED[2:], 0.0),  # who says nothing is right about nothing
    ("relation_accuracy", CAPTIONED[2:], 0.0),
    ("generated_correctness", CAPTIONED[2:], 0.0),
    ("attention_correctness", CAPTIONED[2:], math.nan),
    ("nll_per_sentence", LIKELY, 9 / 3),  # of all captions of an image
    ("nll_per_token", LIKELY, 1.0),
    ("attention_gain", [LOSING], -0.25),
    ("pointing_gain", [LOSING], -0.5),
    ("gate_difference", [LOSING], -1.0),
    ("attention_contrast", [ALONE, SEVERAL], -0.25),  # in images of several things
    ("attention_contrast", [ALONE], 0),
    ("attention_contrast", [{}], None),
])  # fmt: skip
def test_a_measure_has_a_value_that_is_no_number_or_none(name, examples, value):
    assert MEASURES[name].of(examples) == (None if value is None else pytest.approx(value, nan_ok=True))


def test_measures_know_what_they_judge():
    themes = {theme: [name for name, of in MEASURES.items() if of.theme == theme] for theme in ("score", "attention")}
    assert {"bleu", "exact_match", "accuracy", "cross_entropy"} <= {*themes["score"]}
    assert [*corpus_values(CLASSIFIED)][2:] == [
        name for name in themes["attention"] if not name.startswith(("attention_", "pointing_", "generated_", "gate_"))
    ]
    others = MEASURES.keys() - {*themes["score"], *themes["attention"]}
    assert others == {"alignment_accuracy", "alignment_precision", "alignment_recall", "aer"}
    assert {MEASURES[name].theme for name in others} == {"alignment"}


@pytest.mark.parametrize("family", [[], [Family(r"bits@(\d+)", lambda memory: Measure(memory))]])
def test_a_name_and_a_pattern_are_registered_once(family):
    before = dict(MEASURES)
    with pytest.raises(ReplicationError, match="' is registered twice"):
        register({"something_new": Measure("New")} | ({} if family else {"bleu": Measure("Again")}), family)
    assert dict(MEASURES) == before


def test_themes_keep_the_order_and_members_stand_behind_their_measure():
    themes = by_theme(["perplexity@relu", "perplexity@exact", "bits@16", "unheard_of@7"])
    for names in themes:
        (theme,) = {known(name).theme for name in names}
        measures = [name for name in names if "@" not in name]
        assert measures == [name for name, each in MEASURES.items() if each.theme == theme]
    scores = themes[0]
    place = scores.index("perplexity")
    assert scores[place : place + 3] == ["perplexity", "perplexity@exact", "perplexity@relu"]
    assert not {"bits@16", "unheard_of@7"} & {*scores}


def test_every_score_but_a_baseline_has_a_direction():
    scores = {name for names in by_theme() for name in names if MEASURES[name].theme in ("score", "alignment")}
    assert {name for name in scores if MEASURES[name].better is None} == {"baseline_perplexity", "baseline_accuracy"}
    lower = {name for name in scores if MEASURES[name].better == "lower"}
    assert {"aer", "perplexity", "bits", "cross_entropy", "nll_per_token", "undefined"} <= lower
    assert not {"bleu", "accuracy", "cider", "exact_match"} & lower
    assert known("accuracy_lost@relu").better == "lower"
    assert known("bits_saved@1-2").better == "higher"


def test_a_further_split_stands_before_a_measure_and_may_not_be_part_of_its_name():
    names = ("bleu", "test_long.bleu", "long.perplexity@a.b", "perplexity@a.b", "nothing")
    assert [split_of(name) for name in names] == [
        ("", "bleu"), ("test_long", "bleu"), ("long", "perplexity@a.b"), ("", "perplexity@a.b"), ("", "nothing")
    ]  # fmt: skip


HYPOTHESES = ["The cat sat on the mat.", "He isn't here, is he?", "", "completely different words come here"]
REFERENCES = ["The cat is on the mat.", "He is not here, is he?", "Something.", "nothing of it at all"]

sentences = st.lists(st.sampled_from("abcd.,"), max_size=9).map(" ".join)


@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6))
def test_summed_statistics_give_sacrebleus_score(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    for tokenise in ("13a", "none"):
        statistics = bleu_statistics(hypotheses, references, tokenise=tokenise)
        expected = BLEU(tokenize=tokenise, force=True).corpus_score(hypotheses, [references]).score
        assert float(corpus_bleu(statistics.sum(axis=0))) == pytest.approx(expected, abs=1e-9)


def test_scores_are_sacrebleus_and_carry_its_signature() -> None:
    theirs = BLEU()
    theirs.corpus_score(HYPOTHESES, [REFERENCES])
    assert bleu_signature("13a") == str(theirs.get_signature())
    value, signature = chrf(HYPOTHESES, REFERENCES)
    assert value == CHRF().corpus_score(HYPOTHESES, [REFERENCES]).score
    assert signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0")


# What tensor2tensor's "perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'" makes of "a-b-c", "rich-text", "x -y", "ä-ö".
CUT = "a ##AT##-##AT## b-c rich ##AT##-##AT## text x -y ä ##AT##-##AT## ö"


@pytest.mark.parametrize(("lines", "language", "compounds", "cut"), [
    (["Dr. Smith's \"x-y\" isn't 3,000.5 & more..."], "en", False,
     ["Dr. Smith 's \" x-y \" isn 't 3,000.5 & more ..."]),
    (["Er sah <unk>, z.B. <unk>.", ""], "de", False, ["Er sah <unk> , z.B. <unk> .", ""]),
    (["The cat's tail is so long."], "en", False, ["The cat 's tail is so long ."]),
    (["a-b-c rich-text x -y ä-ö"], "en", True, [CUT]),
    (["Er sagte：„Nein…“"], "de", True, ['Er sagte : „ Nein ... "']),
])  # fmt: skip
def test_moses_cuts_words_by_the_language_and_compounds(lines, language, compounds, cut) -> None:
    assert moses_tokenised(lines, language, compounds=compounds) == cut


def moses_bleu(hypothesis: str, reference: str, language: str, **options: bool) -> float:
    lines = (moses_tokenised([line], language, **options) for line in (hypothesis, reference))
    return float(corpus_bleu(bleu_statistics(*lines, tokenise="none")[0], smooth=False))


def test_moses_bleu_is_that_of_multi_bleu() -> None:
    # Seven of eight words match, five of seven pairs, three of six triples, two of five fours.
    hypothesis, reference = "The cat's tail is so long.", "The cat's tail is very long."
    assert moses_bleu(hypothesis, reference, "en") == pytest.approx(100 * (7 / 8 * 5 / 7 * 3 / 6 * 2 / 5) ** 0.25)
    signature = bleu_signature(moses="en")
    assert "tok:moses-en-sacremoses" in signature
    assert "smooth:none" in signature
    assert moses_bleu("a b c x", "a b c d", "en") == pytest.approx(0)


def test_compound_bleu_counts_the_pieces() -> None:
    hypothesis, reference = "ein rich-text Format", "ein rich-text Dokument"
    # Four of five pieces match, three of four pairs, two of three triples, one of two fours.
    whole = moses_bleu(hypothesis, reference, "de", compounds=True)
    assert whole == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert moses_bleu(hypothesis, reference, "de") == pytest.approx(0)
    signature = bleu_signature(moses="de", compounds=True)
    assert signature.split("sacremoses")[1].split("|")[0].endswith("-compounds")


def test_corpus_bleu_takes_any_leading_shape() -> None:
    statistics = bleu_statistics(HYPOTHESES, REFERENCES)
    weights = np.random.default_rng(0).integers(0, 4, (5, 2, len(statistics)))
    scores = corpus_bleu(weights @ statistics)
    assert scores.shape == (5, 2)
    repeated = [np.repeat(statistics, w, axis=0).sum(axis=0) for w in weights.reshape(-1, len(statistics))]
    assert scores.ravel().tolist() == pytest.approx([float(corpus_bleu(s)) for s in repeated])


def test_pairs_must_match_in_number() -> None:
    with pytest.raises(ValueError, match="shorter"):
        bleu_statistics(["a", "b"], ["a"])


TREE = "(S (NP XX XX )NP (VP XX (NP XX )NP )VP )S"
tokens = st.sampled_from(["(S", "(NP", "(VP", ")S", ")NP", ")VP", "XX"])


@pytest.mark.parametrize(("tree", "spans"), [
    *((tree, {("S", 0, 4): 1, ("NP", 0, 2): 1, ("VP", 2, 4): 1, ("NP", 3, 4): 1})
      for tree in (TREE, f"(TOP {TREE} )TOP", f"(S1 {TREE} )S1")),  # the root is not counted
    ("(NP (NP XX )NP )NP", {("NP", 0, 1): 2}),
    ("(NP )NP", {("NP", 0, 0): 1}),
])  # fmt: skip
def test_constituents_are_labelled_spans_that_count_as_often_as_they_stand_there(tree, spans):
    assert brackets(tree) == spans


@pytest.mark.parametrize(("written", "gold", "counts"), [
    ("(NP (NP XX )NP )NP", "(NP XX )NP", (1, 2, 1)),
    # The object hangs from the sentence: of four brackets only the verb phrase ends elsewhere.
    ("(S (NP XX XX )NP (VP XX )VP (NP XX )NP )S", TREE, (3, 4, 4)),
    ("(S (PP XX XX )PP (VP XX (NP XX )NP )VP )S", TREE, (3, 4, 4)),  # a wrong label
    ("", TREE, (0, 0, 4)),
])  # fmt: skip
def test_a_constituent_matches_at_its_place_with_its_label_and_as_often(written, gold, counts):
    assert bracket_counts(written, gold) == counts


@pytest.mark.parametrize(("written", "means"), [
    ("(S (NP XX )NP (VP XX", "(S (NP XX )NP (VP XX )VP )S"),  # closed at the end
    ("(S (NP XX )NP (VP XX )S", "(S (NP XX )NP (VP XX )VP )S"),  # closed with what holds it
    ("(S XX )NP XX )S )S", "(S XX XX )S"),  # nothing to close
    (")S (S XX )S", "(S XX )S"),
    ("(S (NP (NP XX )NP XX )S", "(S (NP (NP XX )NP XX )NP )S"),  # the innermost of two
    ("(S (NP ( XX ) )NP XX )S", "(S (NP XX XX XX )NP XX )S"),  # brackets that are words
])  # fmt: skip
def test_malformed_trees_mean_something(written, means):
    assert brackets(written) == brackets(means)
    assert brackets(written).total() > 0


@given(st.lists(tokens, max_size=20).map(" ".join), st.lists(tokens, max_size=20).map(" ".join))
def test_every_opening_bracket_is_one_constituent(one, other):
    matched, predicted, gold = bracket_counts(one, other)
    assert predicted == one.count("(")
    assert gold == other.count("(")
    assert matched <= min(predicted, gold)
    assert bracket_counts(one, one) == (predicted, predicted, predicted)
