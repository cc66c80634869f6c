"""Sentences, splits, vocabularies and arrays: whatever the characters, they come back, and equal ones are found."""

import unicodedata

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.data import tokenizers
from shared.data.opening import composed, read_lines
from shared.data.ragged import RaggedArray
from shared.data.splits import EMPTY, EQUAL, NAMES, Segment, assert_disjoint, sentence, tidy, write_corpus
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK, SentencePieceConfig, WordVocabularyConfig
from tests.data.odd import EXAMPLES, LINE, NAME, PIECES, SPLITS, WORD, folder
from tests.refused import assert_refused, outcome, sentence_of

SAME = [
    str.upper, str.lower, str.casefold, lambda text: text.replace(" ", "\u00a0"), lambda text: f"  {text}\t",
    lambda text: unicodedata.normalize("NFD", text), lambda text: unicodedata.normalize("NFC", text),
    lambda text: text.replace("w", "w\u00ad"), lambda text: f"«{text}»",
    lambda text: f"\u202b{text}\u202c.", lambda text: f"{text}?!",
]  # fmt: skip
"""What leaves a sentence the same."""
OTHER = ["+", "#", "%", "ा", "\u0301x", "😀", "²", "$", "=", "0", "x"]
"""What makes another sentence of one, behind a letter."""


@EXAMPLES
@given(LINE, st.lists(st.sampled_from(SAME), max_size=3), st.sampled_from(OTHER))
def test_sentences_are_equal_by_letters_marks_and_signs(text, changes, other):
    text = f"wx {text} wy"
    same = text
    for change in changes:
        same = change(same)
    assume("İ" not in text and "ı" not in text)  # whose case depends on the language
    assert sentence(same) == sentence(text)
    assert sentence(sentence(text)) == sentence(text)
    assert sentence(text + other) != sentence(text)
    corpus = {"train": [(same,), (f"{text}{other}",)], "valid": [("valid",)], "test": [(text,)]}
    with folder() as into:
        dropped = write_corpus({split: map(Segment, texts) for split, texts in corpus.items()}, ["en"], into)
        assert dropped == {("train", EQUAL): 1}
        assert list(read_lines(into / "train.en")) == [tidy(text + other)]
        assert_disjoint(into, ["en"], SPLITS)
        with (into / "train.en").open("a", encoding="utf-8", newline="") as file:
            file.write(f"{tidy(same)}\n")
        assert "train.en shares" in sentence_of(assert_disjoint, into, ["en"], SPLITS)


@EXAMPLES
@given(
    st.text("\u0301\u0323\u0344\u0f73\u0f75\u3099\uff9e.e", min_size=1, max_size=9), st.sampled_from(["NFC", "NFKC"])
)
def test_a_normal_form_is_that_of_unicode_however_many_marks_a_letter_has(marks, form):
    many = "e" + marks * (1_200 // len(marks))
    assert composed(many, form) == unicodedata.normalize(form, many)


def test_many_marks_are_composed_at_once():
    """Python's own way takes minutes."""
    assert composed("e" + "\u0301\u0323" * 50_000) == "\u1eb9" + "\u0323" * 49_999 + "\u0301" * 50_000


SEGMENTS = st.lists(st.tuples(LINE, LINE, NAME), max_size=5)


@EXAMPLES
@given(st.fixed_dictionaries(dict.fromkeys((*SPLITS, "test_long"), SEGMENTS)))
def test_written_splits_share_no_sentence_and_lose_nothing_else(corpus):
    columns = ["en", "fr", "photo"]
    corpus = {split: [*rows, (f"only {split}", f"seul {split}", f"{split}.png")] for split, rows in corpus.items()}
    with folder() as into:
        dropped = write_corpus({split: map(Segment, rows) for split, rows in corpus.items()}, columns, into)
        seen = set()
        for group in (("test", "test_long"), ("valid",), ("train",)):
            fresh = set()
            for split in group:
                kept = []
                for row in corpus[split]:
                    named = zip(columns, row, strict=True)
                    keys = {text if column in NAMES else sentence(text) for column, text in named} - {""}
                    if seen.isdisjoint(keys):
                        kept.append((tidy(row[0]), tidy(row[1]), row[2]))
                        fresh |= keys
                found = [list(read_lines(into / f"{split}.{column}")) for column in columns]
                assert [*zip(*found, strict=True)] == kept
                assert dropped[split, EQUAL] == len(corpus[split]) - len(kept)
                assert dropped[split, EMPTY] == sum(not all(row) for row in kept)
            seen |= fresh
        assert_disjoint(into, columns, corpus)


TEXT = [*PIECES, " ".join(PIECES), "".join(PIECES), *"".join(SPECIAL)]
PIECEWISE = [
    SentencePieceConfig(kind="sentencepiece", size=400, model_type=kind).train(TEXT * 2) for kind in ("bpe", "unigram")
]
WORDS = [WordVocabularyConfig(kind="words", size=300, split=split).train(map(tidy, TEXT)) for split in ("space", "13a")]


@EXAMPLES
@given(st.lists(st.sampled_from([*PIECES, " "]), max_size=8).map("".join), st.sampled_from(PIECEWISE))
def test_pieces_give_back_any_text_and_as_many_words_as_it_has(text, pieces):
    (symbols,) = pieces.encode([text])
    assert pieces.decode([symbols]) == [text]
    assert symbols.count(UNK) == text.count("<unk>")
    assert not {0, 2, 3} & {*symbols}
    words = pieces.words(symbols)
    assert len(words) == len(symbols) == len(pieces.pieces(symbols))
    assert sorted({*words}) == list(range(max(len(pieces.split(text)), bool(symbols))))


@EXAMPLES
@given(
    st.lists(WORD | st.sampled_from(PIECES) | st.sampled_from([*SPECIAL, "w<unk>w"]), max_size=6).map(" ".join),
    st.sampled_from(WORDS),
)
def test_words_are_known_or_one_unknown_symbol_each(text, vocabulary):
    text = tidy(text)
    (symbols,) = vocabulary.encode([text])
    words = vocabulary.split(text)
    assert vocabulary is WORDS[0] or words.count("<unk>") == text.count("<unk>")
    assert len(symbols) == len(words)
    assert not {0, 2, 3} & {*symbols}
    said = vocabulary.pieces(symbols)
    assert all(shown == word or symbol == UNK for shown, word, symbol in zip(said, words, symbols, strict=True))
    assert vocabulary.decode([symbols]) == [" ".join(said)]
    assert all(symbol == UNK for symbol, word in zip(symbols, words, strict=True) if word in SPECIAL)


ROWS = st.lists(st.lists(st.integers(0, 255), max_size=6), min_size=1, max_size=6)


@EXAMPLES
@given(ROWS, st.sampled_from([np.uint8, np.int32, np.uint16]), st.data())
def test_ragged_rows_come_back_and_damaged_arrays_are_refused(rows, dtype, data):
    packed = RaggedArray.pack(rows, dtype)
    with folder() as room:
        packed.save(room)
        found = RaggedArray.load(room)
        assert [found[i].tolist() for i in range(len(found))] == rows
        keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
        chosen = found.select(keep)
        assert [chosen[i].tolist() for i in range(keep.sum())] == [r for r, k in zip(rows, keep, strict=True) if k]
        order = np.array(data.draw(st.permutations(range(len(rows)))))
        widest = max(map(len, rows))
        assert found.padded(order).tolist() == [rows[i] + [PAD] * (widest - len(rows[i])) for i in order]
        path = room / data.draw(st.sampled_from(["symbols.npy", "offsets.npy"]))
        content = path.read_bytes()
        place = data.draw(st.integers(0, len(content) - 1))
        wrong = data.draw(st.sampled_from([b"", bytes([content[place] ^ 255]) + content[place + 1 :]]))
        path.write_bytes(content[:place] + wrong)
        _, said = outcome(RaggedArray.load, room)
        assert "cannot be read" in said or (wrong and not said)


LINES = ["the cat sat on the mat .", "a dog saw the cat", "über die Straße läuft der Hund", "the end"] * 3
KNOWN = WordVocabularyConfig(kind="words", size=100, split="space").train(LINES)
SUBWORDS = SentencePieceConfig(kind="sentencepiece", size=60, model_type="bpe").train(LINES)


def test_special_symbols_come_first_in_every_vocabulary():
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert tuple(KNOWN.pieces([PAD, UNK, BOS, EOS])) == SPECIAL
    assert SUBWORDS.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_the_vocabulary_keeps_the_most_frequent_words_and_says_how_many_it_leaves_out(capsys):
    small = WordVocabularyConfig(kind="words", size=len(SPECIAL) + 2, split="space").train([*LINES, "<unk>"])
    assert capsys.readouterr().out == "a vocabulary of 2 words leaves out 14 of the 16 of the training text.\n"
    assert len(small) == 6
    assert small.encode(["the cat zebra"]) == [[4, 5, UNK]]
    assert small.decode([[4, UNK]]) == ["the <unk>"]


@pytest.mark.parametrize("tokenizer", [KNOWN, SUBWORDS])
def test_a_saved_tokeniser_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "t")
    loaded = tokenizers.load_tokenizer(tmp_path / "t")
    assert loaded.encode(LINES) == tokenizer.encode(LINES)
    assert (len(loaded), loaded.unit) == (len(tokenizer), tokenizer.unit)


def test_training_twice_gives_the_same_pieces():
    again = SentencePieceConfig(kind="sentencepiece", size=60, model_type="bpe").train(LINES)
    assert again.encode(LINES) == SUBWORDS.encode(LINES)


def test_a_joint_tokeniser_serves_both_sides_and_separate_ones_one_each():
    config = {"kind": "sentencepiece", "size": 60}
    source, target = tokenizers.train_tokenizers(
        LINES[:6], LINES[6:], tokenizers.SentencePieceConfig(**config, joint=True)
    )
    assert source is target
    source, target = tokenizers.train_tokenizers(LINES[:2], LINES[2:4], tokenizers.SentencePieceConfig(**config))
    assert source.encode(LINES) != target.encode(LINES)
    source, target = tokenizers.train_tokenizers(["a b"], ["c"], tokenizers.WordVocabularyConfig(kind="words", size=9))
    assert (len(source), len(target)) == (6, 5)
    source, target = tokenizers.train_tokenizers(
        ["a b a"], ["c a"], tokenizers.WordVocabularyConfig(kind="words", size=9, joint=True)
    )
    assert source is target
    assert source.pieces(range(4, len(source))) == ["a", "b", "c"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"kind": "words"}', b"\x0a\xff not a model"])
def test_a_damaged_file_is_named(content, tmp_path):
    path = tmp_path / "source.tokenizer"
    path.write_bytes(content)
    assert_refused("is damaged", tokenizers.load_tokenizer, path)
    path.unlink()
    assert_refused("run the prepare stage", tokenizers.load_tokenizer, path)


def test_every_line_of_a_text_counts_however_long_it_is():
    long = "αβγ " * 2_000
    pieces = SentencePieceConfig(kind="sentencepiece", size=40, model_type="bpe").train(["ab"] * 9 + [long])
    assert UNK not in pieces.encode([long])[0]


def test_too_few_pieces_for_the_characters_say_so_in_one_line():
    lines = ["abcdefghijklmnopqrstuvwxyz äöüß"] * 9
    assert_refused("choose a larger size", SentencePieceConfig(kind="sentencepiece", size=16).train, lines)


# Characters and bytes

TEXTS = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12), max_size=6)


@given(TEXTS, st.sampled_from(["characters", "bytes"]))
def test_what_was_trained_on_comes_back_whole(lines, kind):
    vocabulary = tokenizers.CharactersConfig(kind=kind).train(lines)
    encoded = vocabulary.encode(lines)
    assert vocabulary.decode(encoded) == lines
    widths = [len(line) if kind == "characters" else len(line.encode()) for line in lines]
    assert [len(symbols) for symbols in encoded] == widths
    assert all(len(SPECIAL) <= symbol < len(vocabulary) for symbols in encoded for symbol in symbols)


@given(TEXTS, TEXTS, st.sampled_from(["characters", "bytes"]))
def test_symbols_are_those_of_training_alone_in_their_order(lines, others, kind):
    vocabulary = tokenizers.CharactersConfig(kind=kind).train(lines)
    parts = str if kind == "characters" else (lambda text: text.encode())
    known = sorted({part for line in lines for part in parts(line)})
    assert len(vocabulary) == len(SPECIAL) + len(known)
    expected = [[len(SPECIAL) + known.index(c) if c in known else UNK for c in parts(line)] for line in others]
    assert vocabulary.encode(others) == expected


@given(st.binary(max_size=12).filter(lambda data: b"\n" not in data))
def test_bytes_need_not_be_utf_8(data):
    text = data.decode("utf-8", "surrogateescape")
    vocabulary = tokenizers.CharactersConfig(kind="bytes").train([text])
    (symbols,) = vocabulary.encode([text])
    assert len(symbols) == len(data)
    assert vocabulary.decode([symbols]) == [data.decode("utf-8", "replace")]


@given(TEXTS, st.sampled_from(["character", "byte"]))
def test_a_saved_vocabulary_is_the_same(tmp_path_factory, lines, unit):
    path = tmp_path_factory.mktemp("vocabulary") / "text.tokenizer"
    vocabulary = tokenizers.CharactersConfig(kind=f"{unit}s").train(lines)
    vocabulary.save(path)
    loaded = tokenizers.load_tokenizer(path)
    assert (loaded.unit, len(loaded)) == (unit, len(vocabulary))
    assert loaded.encode([*lines, "é\x00"]) == vocabulary.encode([*lines, "é\x00"])


def test_pieces_can_be_read_and_belong_to_words():
    characters = tokenizers.CharactersConfig(kind="characters").train(["an älp"])
    (symbols,) = characters.encode(["an ä!"])
    assert characters.pieces([*symbols, 3]) == ["a", "n", " ", "ä", "<unk>", "</s>"]
    assert characters.words(symbols) == [0, 0, 0, 1, 1]
    assert characters.words([]) == []
    assert characters.split("an älp") == ["an", "älp"]
    data = tokenizers.CharactersConfig(kind="bytes").train(["aä"])
    assert data.pieces(data.encode(["aä"])[0]) == ["a", "<c3>", "<a4>"]
    assert (characters.unit, data.unit) == ("character", "byte")


def test_a_missing_or_damaged_vocabulary_is_named(tmp_path):
    assert_refused("none does not exist; run the prepare stage", tokenizers.load_tokenizer, tmp_path / "none")
    for content in ("{", '{"unit": "byte"}', '{"unit": "byte", "codes": null}', '{"unit": "byte", "codes": ["a"]}'):
        (tmp_path / "bad").write_text(content)
        assert_refused(r"bad is damaged .* run the prepare stage again", tokenizers.load_tokenizer, tmp_path / "bad")
