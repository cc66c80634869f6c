from hypothesis import given
from hypothesis import strategies as st

from shared.data.tokenizers import SPECIAL, UNK
from shared.tasks.language.characters import CharactersConfig, CharacterVocabulary
from tests.refused import assert_refused

lines = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12), max_size=6)


@given(lines, st.sampled_from(["characters", "bytes"]))
def test_what_was_trained_on_comes_back_whole(lines, kind):
    vocabulary = CharactersConfig(kind=kind).train(lines)
    encoded = vocabulary.encode(lines)
    assert vocabulary.decode(encoded) == lines
    widths = [len(line) if kind == "characters" else len(line.encode()) for line in lines]
    assert [len(symbols) for symbols in encoded] == widths
    assert all(len(SPECIAL) <= symbol < len(vocabulary) for symbols in encoded for symbol in symbols)


@given(lines, lines, st.sampled_from(["characters", "bytes"]))
def test_symbols_are_those_of_training_alone_in_their_order(lines, others, kind):
    vocabulary = CharactersConfig(kind=kind).train(lines)
    parts = str if kind == "characters" else (lambda text: text.encode())
    known = sorted({part for line in lines for part in parts(line)})
    assert len(vocabulary) == len(SPECIAL) + len(known)
    expected = [[len(SPECIAL) + known.index(c) if c in known else UNK for c in parts(line)] for line in others]
    assert vocabulary.encode(others) == expected


@given(st.binary(max_size=12).filter(lambda data: b"\n" not in data))
def test_bytes_need_not_be_utf_8(data):
    text = data.decode("utf-8", "surrogateescape")
    vocabulary = CharacterVocabulary.train([text], unit="byte")
    (symbols,) = vocabulary.encode([text])
    assert len(symbols) == len(data)
    assert vocabulary.decode([symbols]) == [data.decode("utf-8", "replace")]


@given(lines, st.sampled_from(["character", "byte"]))
def test_a_saved_vocabulary_is_the_same(tmp_path_factory, lines, unit):
    path = tmp_path_factory.mktemp("vocabulary") / "text.tokenizer"
    vocabulary = CharacterVocabulary.train(lines, unit=unit)
    vocabulary.save(path)
    loaded = CharacterVocabulary.load(path)
    assert (loaded.unit, len(loaded)) == (unit, len(vocabulary))
    assert loaded.encode([*lines, "é\x00"]) == vocabulary.encode([*lines, "é\x00"])


def test_pieces_can_be_read_and_belong_to_words():
    characters = CharacterVocabulary.train(["an älp"], unit="character")
    (symbols,) = characters.encode(["an ä!"])
    assert characters.pieces([*symbols, 3]) == ["a", "n", " ", "ä", "<unk>", "</s>"]
    assert characters.words(symbols) == [0, 0, 0, 1, 1]
    assert characters.words([]) == []
    assert characters.split("an älp") == ["an", "älp"]
    data = CharacterVocabulary.train(["aä"], unit="byte")
    assert data.pieces(data.encode(["aä"])[0]) == ["a", "<c3>", "<a4>"]
    assert (characters.unit, data.unit) == ("character", "byte")


def test_a_missing_or_damaged_vocabulary_is_named(tmp_path):
    assert_refused("none does not exist; run the prepare stage again", CharacterVocabulary.load, tmp_path / "none")
    for content in ("{", '{"unit": "byte"}'):
        (tmp_path / "bad").write_text(content)
        assert_refused(r"bad .*; run the prepare stage again", CharacterVocabulary.load, tmp_path / "bad")
