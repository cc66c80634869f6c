"""What readers make of raw files: verses, labelled texts, running text, alignments and trees of the Penn Treebank."""

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.cards import load_card
from shared.data.readers import bible, read
from shared.data.readers.bible import tokenize
from shared.data.readers.treebank import linearise, parse
from shared.data.splits import Segment

PSALM, GENESIS, JOB, ACTS = (19, 3, 1), (1, 1, 2), (18, 42, 17), (44, 15, 17)
WHOLE = "LORD, how are they (increased) that trouble me!"
TITLED_BASIC = "To the chief music-maker. A Psalm. Of David. When Nathan the prophet came to him. Have pity on me."


@pytest.mark.parametrize(("language", "verse", "text", "expected"), [
    ("fr", PSALM, "(3:1) Psaume de David. (3:2) O Éternel! -Pause.", "O Éternel! Pause."),
    ("fr", (19, 3, 2), "(3:3) Combien qui disent", "Combien qui disent"),
    ("fr", (3, 6, 2), "(5:21 Lorsque quelqu'un", "Lorsque quelqu'un"),
    ("fr", (44, 20, 1), "(19:40b) Après", "Après"),
    ("fr", (19, 24, 1), "(24:1) Psaume de David. La terre", "La terre"),
    ("fr", (19, 51, 1), "(51:1) Au chef. (51:2) Lorsque Nathan vint. (51:3) O Dieu! (oui)", "O Dieu! (oui)"),
    ("fr", (19, 122, 1), "Cantique des degrés. De David. Je suis", "Je suis"),
    ("fr", (19, 13, 1), "(13:1) Au chef des chantres. Psaume de David.", ""),
    ("de", PSALM, "(Ein Psalm von David.) Jehova! wie viele (Sela.)", "Jehova! wie viele (Sela.)"),
    ("de", GENESIS, "[Und] er sprach: (denn so) -", "Und er sprach: (denn so)"),
    ("de", GENESIS, "auf ewig. * * *", "auf ewig."),
    ("de", GENESIS, "(*)", ""),
    ("es", PSALM, "Salmo de David. \u00adOH Jehová, cuánto", "Oh Jehová, cuánto"),
    ("es", PSALM, "Salmo: de David. ¿POR qué estás", "¿Por qué estás"),
    ("es", PSALM, "Salmo de David. A TI, oh Jehová", "A ti, oh Jehová"),
    ("es", PSALM, "JEHOVA es mi pastor", "Jehová es mi pastor"),
    ("es", GENESIS, "\t Y DESPUÉS movió", "Y después movió"),
    ("en_web", GENESIS, "God`s first -[fruits] [by them]", "God's first fruits by them"),
    ("en_web", JOB, "full of days. BOOK I Psalm 1", "full of days."),
    ("en_web", JOB, "forever. Psalm 31 For the Chief Musician.", "forever."),
    ("en_basic", PSALM, TITLED_BASIC, "Have pity on me."),
    ("en_basic", PSALM, "To the chief music-maker. Of David. When I was waiting.", "When I was waiting."),
    ("en_basic", (19, 119, 1), "ALEPH Happy are they", "Happy are they"),
    ("en_basic", GENESIS, "...", ""),
    ("en_basic", GENESIS, "(8:1)", ""),
    ("fr_darby", ACTS, "qui fait ces choses» [Amos 9:11-12]", "qui fait ces choses»"),
    ("fr_darby", ACTS, "1 Et le #Dieu dit : — l’Éternel ! —", "Et le Dieu dit: — l'Éternel!"),
    ("en", PSALM, WHOLE, WHOLE),
])  # fmt: skip
def test_a_verse_is_freed_of_what_is_not_the_verse(language, verse, text, expected):
    assert bible.clean(text, language, verse) == expected


@given(text=st.text(), language=st.sampled_from(["en", "en_web", "en_basic", "fr", "fr_darby", "de", "es"]))
def test_a_cleaned_verse_is_one_trimmed_line_with_letters_or_empty(text, language):
    cleaned = bible.clean(text, language, PSALM)
    assert cleaned == " ".join(cleaned.split())
    assert not cleaned or any(character.isalpha() for character in cleaned)


LANGUAGES = ["text", "label"]


def test_labels_may_be_numbers_and_are_renamed_or_left_out(tmp_path):
    lines = [{"s": "a<br /><BR>b", "label": 1}, {"s": "c", "label": "-"}, {"s": "d", "label": 0}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = {"fields": {"text": "s"}, "labels": {"0": "no", "1": "yes", "-": None}, "parts": {"train": ["a.jsonl"]}}
    found = list(read("labelled", tmp_path, LANGUAGES, options)["train"])
    assert found == [Segment(("a  b", "yes")), "the card leaves out the label '-'", Segment(("d", "no"))]


def test_a_sample_has_the_sizes_asked_for_and_nothing_twice(tmp_path):
    lines = [{"label": i % 5, "text": f"text {i}"} for i in range(300)]
    (tmp_path / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sizes = {"train": 100, "valid": 20, "test": 30}
    options = {"parts": {"train": ["a.json"]}, "sample": sizes}
    corpus = read("labelled", tmp_path, LANGUAGES, options)
    found = {split: [segment.texts for segment in segments] for split, segments in corpus.items()}
    assert {split: len(texts) for split, texts in found.items()} == sizes
    assert len({text for texts in found.values() for text in texts}) == 150
    (tmp_path / "a.json").write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)))
    again = read("labelled", tmp_path, LANGUAGES, options)["test"]
    assert {segment.texts for segment in again} == set(found["test"])


def test_the_cuts_of_the_shipped_cards_follow_each_other(pytestconfig):
    for dataset in ("enwik8", "text8"):
        parts = load_card(dataset, pytestconfig.rootpath / "data").reader.options["parts"]
        at = 0
        for split in ("train", "valid", "test"):
            (part,) = parts[split]
            assert part.get("start", 0) == at
            at += part["bytes"]
        assert at == 100_000_000


@pytest.mark.parametrize(("text", "expected"), [
    ("\"don't--he said, 'O man-child!'\" (12,000)", "“ don’t — he said , ‘ O man-child ! ’ ” ( 12,000 )"),
    ("'\"Do\" you,' said the kings' men...", "‘ “ Do ” you , ’ said the kings ’ men ..."),
    ('he said,"Go,\'", now;then.', "he said , ” Go , ’ ” , now ; then ."),
    ("", ""),
])  # fmt: skip
def test_plain_verses_are_written_as_the_aligned_text_is(text, expected):
    assert tokenize(text) == expected


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="'\"-")))
def test_tokenising_loses_nothing_but_white_space_and_is_idempotent(text):
    tokens = tokenize(text)
    assert "".join(tokens.split()) == "".join(text.split())
    assert tokenize(tokens) == tokens


ASKED = """
( (S
    (NP-SBJ-1 (DT The) (NN-X board) )
    (VP (VBD was)
      (VP (VBN asked)
        (NP-2 (-NONE- *-1) )
        (S (NP-SBJ (-NONE- *) )
          (VP (TO to)
            (VP (VB give) (PRT|ADVP (RP up) ) (-LRB- -LRB-) (SBAR=3 (-NONE- 0) (S (-NONE- *T*-2) )))))))
    (. .) ))
"""
ASKED_WORDS = "The board was asked to give up -LRB- ."
ASKED_TREE = "(S (NP XX XX )NP (VP XX (VP XX (S (VP XX (VP XX (PRT XX )PRT XX )VP )VP )S )VP )VP XX )S"


def linearised(text):
    return [(" ".join(words), " ".join(symbols)) for words, symbols in map(linearise, parse(text))]


def test_traces_function_tags_and_empty_constituents_go():
    assert linearised(ASKED) == [(ASKED_WORDS, ASKED_TREE)]


@pytest.mark.parametrize(("text", "expected"), [
    ("(S (UH Yes))", [("Yes", "(S XX )S")]),
    ("(TOP (S (UH Yes)))(ROOT(S1 (FRAG (UH No))))", [("Yes", "(S XX )S"), ("No", "(FRAG XX )FRAG")]),
    ("( (UH Yes) )", [("Yes", "XX")]),
    ("( (NP (NP (NN a)) (SBAR (-NONE- *T*))) )", [("a", "(NP (NP XX )NP )NP")]),
    ("( (S (-NONE- *)) ) ()", [("", ""), ("", "")]),
    ("", []),
])  # fmt: skip
def test_roots_are_not_constituents_and_chains_stay(text, expected):
    assert linearised(text) == expected


LABELS = st.sampled_from(["S", "NP-SBJ", "VP", "PP-LOC=2", "-NONE-"])
LEAVES = st.tuples(st.sampled_from(["NN", "VB", "-NONE-"]), st.sampled_from(["a", "b", "*T*-1"])).map(list)
few = partial(st.lists, min_size=1, max_size=3)
TREES = st.recursive(LEAVES, lambda inner: st.builds(lambda label, below: [label, *below], LABELS, few(inner)))


def written(tree):
    return tree if isinstance(tree, str) else f"({' '.join(map(written, tree))})"


@given(TREES)
def test_any_tree_comes_back_and_its_line_is_balanced(tree):
    assert list(parse(written(tree))) == [tree]
    words, symbols = linearise(tree)
    assert symbols.count("XX") == len(words) == written(tree).count("(NN ") + written(tree).count("(VB ")
    opened = []
    for before, symbol in zip(["", *symbols], symbols, strict=False):
        if symbol.startswith("("):
            opened.append(symbol[1:])
        elif symbol.startswith(")"):
            assert symbol[1:] == opened.pop()
            assert not before.startswith("(")  # no constituent without words
    assert not opened
