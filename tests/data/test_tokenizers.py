import pytest

from shared.data import tokenizers
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK, SentencePieceTokenizer, WordVocabulary
from tests.refused import assert_refused

LINES = ["the cat sat on the mat .", "a dog saw the cat", "über die Straße läuft der Hund", "the end"] * 3
WORDS = WordVocabulary.train(LINES, size=100, split="space")
PIECES = SentencePieceTokenizer.train(LINES, size=60, model_type="bpe")


def test_special_symbols_come_first_in_every_vocabulary():
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert tuple(WORDS.pieces([PAD, UNK, BOS, EOS])) == SPECIAL
    assert PIECES.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_the_vocabulary_keeps_the_most_frequent_words_and_says_how_many_it_leaves_out(capsys):
    small = WordVocabulary.train([*LINES, "<unk>"], size=len(SPECIAL) + 2, split="space")
    assert capsys.readouterr().out == "a vocabulary of 2 words leaves out 14 of the 16 of the training text.\n"
    assert len(small) == 6
    assert small.encode(["the cat zebra"]) == [[4, 5, UNK]]
    assert small.decode([[4, UNK]]) == ["the <unk>"]


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES])
def test_a_saved_tokeniser_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "t")
    loaded = tokenizers.load_tokenizer(tmp_path / "t")
    assert loaded.encode(LINES) == tokenizer.encode(LINES)
    assert (len(loaded), loaded.unit) == (len(tokenizer), tokenizer.unit)


def test_training_twice_gives_the_same_pieces():
    again = SentencePieceTokenizer.train(LINES, size=60, model_type="bpe")
    assert again.encode(LINES) == PIECES.encode(LINES)


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
    pieces = SentencePieceTokenizer.train(["ab"] * 9 + [long], size=40, model_type="bpe")
    assert UNK not in pieces.encode([long])[0]


def test_too_few_pieces_for_the_characters_say_so_in_one_line():
    lines = ["abcdefghijklmnopqrstuvwxyz äöüß"] * 9
    assert_refused("choose a larger size", SentencePieceTokenizer.train, lines, size=16, model_type="bpe")
