"""Vocabularies of characters and of bytes, and streams: columns of a text that are read on from batch to batch."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.tokenizers import EOS, PAD, SPECIAL, UNK
from shared.tasks.language.characters import CharactersConfig, CharacterVocabulary
from shared.tasks.language.streams import Stream
from tests.refused import assert_refused

sizes = st.integers(1, 60)
columns = st.integers(1, 9)
lengths = st.integers(1, 12)


def stream_of(size):
    """No two symbols are the same, so that each tells its place."""
    return Stream(np.arange(10, 10 + size, dtype=np.uint16))


def scored(batches):
    """Place to the symbol that is the target there, over all batches; no place may come twice."""
    found = {}
    for batch in batches:
        assert torch.equal(batch.mask, batch.targets != PAD)
        places, targets = (part[batch.mask].tolist() for part in (batch.places, batch.targets))
        for place, target in zip(places, targets, strict=True):
            assert place not in found
            found[place] = target
    return found


def whole(stream):
    return dict(enumerate(stream.symbols.tolist()))


@given(sizes, columns, lengths, st.integers(0, 70))
def test_evaluation_scores_every_symbol_once_and_columns_are_parts_of_the_stream(size, columns, length, warm_up):
    stream = stream_of(size)
    batches = list(stream.evaluation_batches(columns=columns, length=length, warm_up=warm_up))
    assert scored(batches) == whole(stream)
    assert sum(batch.tokens for batch in batches) == size
    assert [batch.reset for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert all(batch.inputs.shape == batch.targets.shape == batch.places.shape for batch in batches)
    widths = [batch.inputs.shape[1] for batch in batches]
    assert set(widths[:-1]) <= {length}
    assert 1 <= widths[-1] <= length
    before = [EOS, *stream.symbols.tolist()]
    for column in range(columns):
        inputs = torch.cat([batch.inputs[column] for batch in batches])
        read = inputs[inputs != PAD].tolist()
        assert inputs.tolist() == read + [PAD] * (len(inputs) - len(read))
        begin = before.index(read[0]) if read else 0
        assert read == before[begin : begin + len(read)]
        # What is scored follows what was read, and warm_up symbols were read before, or all that there are.
        targets = torch.cat([batch.targets[column] for batch in batches]).tolist()
        first = next((place for place, target in enumerate(targets) if target != PAD), len(targets))
        assert targets[first : len(read)] == stream.symbols[begin + first : begin + len(read)].tolist()
        if first < len(read):
            assert first == (0 if column == 0 else min(warm_up, size - 1))


@given(sizes, st.integers(1, 12), st.data(), st.integers(1, 5))
def test_windows_score_every_symbol_once_with_the_context_asked_for(size, context, data, group):
    stride = data.draw(st.integers(1, context))
    stream = stream_of(size)
    batches = list(stream.windows(context=context, stride=stride, size=group))
    assert scored(batches) == whole(stream)
    assert all(batch.reset and len(batch.inputs) <= group for batch in batches)
    before = [EOS, *stream.symbols.tolist()]
    first = True
    rows = [row for batch in batches for row in zip(batch.inputs.tolist(), batch.places.tolist(), strict=True)]
    for inputs, places in rows:
        width = min(context, size)
        begin = before.index(inputs[0])
        assert inputs == before[begin : begin + width]
        for read, place in enumerate(places, start=1):
            if place >= 0:
                assert place == begin + read - 1
                assert first or context - stride < read <= context
        first = False


@given(st.integers(12, 80), st.integers(1, 4), st.integers(1, 3), st.integers(0, 50), st.integers(0, 40))
def test_training_goes_on_over_the_stream_in_order(size, columns, length, seed, number):
    stream = stream_of(size)
    count = stream.epoch_batches(columns=columns, length=length)
    batch = stream.training_batch(number, columns=columns, length=length, seed=seed)
    following = stream.training_batch(number + 1, columns=columns, length=length, seed=seed)
    assert batch.places.shape == (columns, length)
    assert batch.reset == (number % count == 0)
    assert batch.tokens == columns * length
    if not following.reset:
        assert torch.equal(following.places[:, 0], (batch.places[:, -1] + 1) % size)
    assert torch.equal(batch.inputs, torch.where(batch.places == 0, EOS, batch.targets - 1))


def test_seeds_and_passes_begin_elsewhere():
    stream = stream_of(1000)
    count = stream.epoch_batches(columns=2, length=10)
    begins = {
        int(stream.training_batch(epoch * count, columns=2, length=10, seed=seed).places[0, 0])
        for epoch, seed in itertools.product(range(4), range(4))
    }
    assert count == 50
    assert len(begins) > 12


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
