import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from shared.metrics.translation import bleu_signature, bleu_statistics, chrf, corpus_bleu, moses_tokenised

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


def test_moses_cuts_words_by_the_language() -> None:
    (found,) = moses_tokenised(["Dr. Smith's \"x-y\" isn't 3,000.5 & more..."], "en")
    assert found == "Dr. Smith 's \" x-y \" isn 't 3,000.5 & more ..."
    assert moses_tokenised(["Er sah <unk>, z.B. <unk>.", ""], "de") == ["Er sah <unk> , z.B. <unk> .", ""]


def moses_bleu(hypothesis: str, reference: str, language: str, **options: bool) -> float:
    lines = (moses_tokenised([line], language, **options) for line in (hypothesis, reference))
    return float(corpus_bleu(bleu_statistics(*lines, tokenise="none")[0], smooth=False))


def test_moses_bleu_is_that_of_multi_bleu() -> None:
    # Seven of eight words match, five of seven pairs, three of six triples, two of five fours.
    hypothesis, reference = "The cat's tail is so long.", "The cat's tail is very long."
    assert moses_tokenised([hypothesis], "en") == ["The cat 's tail is so long ."]
    assert moses_bleu(hypothesis, reference, "en") == pytest.approx(100 * (7 / 8 * 5 / 7 * 3 / 6 * 2 / 5) ** 0.25)
    signature = bleu_signature(moses="en")
    assert "tok:moses-en-sacremoses" in signature
    assert "smooth:none" in signature
    assert moses_bleu("a b c x", "a b c d", "en") == pytest.approx(0)


def test_compounds_are_cut_as_by_the_perl_of_tensor2tensor() -> None:
    # perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g' says the same of "a-b-c", "rich-text", "x -y" and "ä-ö".
    (found,) = moses_tokenised(["a-b-c rich-text x -y ä-ö"], "en", compounds=True)
    assert found == "a ##AT##-##AT## b-c rich ##AT##-##AT## text x -y ä ##AT##-##AT## ö"
    assert moses_tokenised(["Er sagte：„Nein…“"], "de", compounds=True) == ['Er sagte : „ Nein ... "']


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
