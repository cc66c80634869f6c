"""Copies, pixels and proteins as sequences: what is read and what is scored, what is kept and what is drawn anew."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.data.generated.sequences import FILE
from shared.data.homology import AMINO_ACIDS
from shared.data.ragged import RaggedArray
from shared.data.storage import write_lines
from shared.data.tokenizers import BOS, EOS, PAD
from shared.tasks.sequences import proteins as of_proteins
from shared.tasks.sequences.copying import copies
from shared.tasks.sequences.pixels import pictures
from shared.tasks.sequences.proteins import decode, encode, families
from shared.tasks.sequences.settings import FIRST, LETTERS, MASK, VOCABULARY
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.sequences.toy_sequence_models import write_copies, write_pictures

words = st.lists(st.lists(st.integers(1, 10), min_size=1, max_size=12), min_size=1, max_size=6)
COUNTS = {"train": 90, "valid": 12, "test": 30}


@pytest.fixture
def fetched(tmp_path):
    folder = tmp_path / "toy"
    write_copies(folder)
    return folder


def prepared(fetched, **changes):
    corpus = {"of": "copies", "shortest": 3, "longest": 8, "sequences": COUNTS} | changes
    return in_process.prepared("sequences", corpus, fetched, fetched.parent / "out")


def written(split):
    batch = split.batch(np.arange(len(split)))
    return [tuple(row[scored].tolist()) for row, scored in zip(batch.targets, batch.scored, strict=True)]


@given(words)
@settings(max_examples=60)
def test_the_second_word_is_scored_and_nothing_else(words):
    split = copies(np.array([*map(len, words)]), lambda i: np.array(words[i]))
    batch = split.batch(np.arange(len(words)))
    width = 2 * max(map(len, words)) + 1
    assert split.lengths[0].tolist() == [2 * len(word) + 1 for word in words]
    assert batch.tokens == sum(map(len, words))
    for row, word in enumerate(words):
        n = len(word)
        whole = [0, *word, 0, *word]
        assert batch.inputs[row].tolist() == whole[:-1] + [0] * (width - 2 * n - 1)
        assert batch.targets[row, : 2 * n + 1].tolist() == whole[1:]
        assert batch.targets[row, batch.scored[row]].tolist() == word
        assert batch.scored[row].nonzero().flatten().tolist() == [*range(n + 1, 2 * n + 1)]
    lengths = {*map(len, words)}
    if len(lengths) == 1:
        assert batch.mask is None
    else:
        assert batch.mask.sum(1).tolist() == split.lengths[0].tolist()
        assert (batch.mask[:, 1:] <= batch.mask[:, :-1]).all()


def test_no_word_comes_twice_but_in_training_which_has_none_of_the_others(fetched):
    summary, task = prepared(fetched, sequences={"train": 5000, "valid": 60, "test": 90})
    train, valid, test = (written(task.split(name)) for name in ("train", "valid", "test"))
    assert len({*valid, *test}) == 150
    assert not {*train} & {*valid, *test}
    assert len({*train}) > 3000
    # Of the 125 words of three symbols, those that are not kept are all drawn.
    assert len({word for word in (*train, *valid, *test) if len(word) == 3}) == 125
    assert {symbol for word in train for symbol in word} == {1, 2, 3, 4, 5}
    assert task.symbols == summary["vocabulary"] == 6


def test_there_are_as_many_words_of_each_length(fetched):
    summary, task = prepared(fetched)
    for name, count in COUNTS.items():
        split = task.split(name)
        assert len(split) == summary["splits"][name]["sequences"] == count
        lengths = [*map(len, written(split))]
        assert Counter(lengths) == dict.fromkeys(range(3, 9), count // 6)
        assert summary["splits"][name]["symbols"] == sum(lengths)


def test_what_cannot_be_prepared_is_said(fetched):
    assert_refused("13 words of 2 symbols", prepared, fetched, shortest=2, longest=9, sequences=COUNTS | {"test": 84})
    for text, words in (('{"seed": 7', r"copy\.json is damaged"), ('{"seed": 7, "symbols": 1}', "'symbols'")):
        (fetched / FILE).write_text(text)
        assert_refused(words, prepared, fetched)


PICTURES = {"train": 5, "valid": 2, "test": 3}


def prepared_pictures(tmp_path, **config):
    corpus = {"of": "pixels"} | config
    summary, task = in_process.prepared("sequences", corpus, tmp_path / "toy", tmp_path / "out")
    return task, summary


def read(task, name):
    """The pixels (N, T) of a split."""
    split = task.split(name)
    return split.batch(np.arange(len(split))).targets.numpy()


@given(st.sampled_from([1, 2, 3]), st.integers(2, 256), st.sampled_from([1, 3]), st.integers(0, 99))
@example(1, 256, 3, 0)
@settings(max_examples=30)
def test_a_pixel_is_the_level_of_the_rounded_mean_of_its_square(tmp_path_factory, pool, levels, channels, seed):
    tmp_path = tmp_path_factory.mktemp("pixels")
    images = write_pictures(tmp_path / "toy", PICTURES, shape=(6, 12, channels), seed=seed)["test"]
    pixels, summary = prepared_pictures(tmp_path, pool=pool, levels=levels)
    assert (summary["shape"], summary["levels"]) == ((6 // pool, 12 // pool, channels), levels)
    found = read(pixels, "test").reshape(-1, *summary["shape"])
    if (pool, levels) == (1, 256):
        assert (pictures(read(pixels, "test"), summary["shape"], levels) == images).all()
    for image, own in zip(images, found, strict=True):
        for (row, column, channel), level in np.ndenumerate(own):
            square = image[row * pool : (row + 1) * pool, column * pool : (column + 1) * pool, channel]
            mean = int(np.floor(square.mean() + 0.5))
            assert level == int(mean / 256 * levels)


def test_the_brightest_square_of_the_largest_side_does_not_overflow(tmp_path):
    (tmp_path / "toy").mkdir()
    for name in PICTURES:
        np.save(tmp_path / f"toy/{name}.images.npy", np.full((1, 16, 16, 1), 255, np.uint8))
    for levels in (2, 16, 256):
        pixels, summary = prepared_pictures(tmp_path, pool=16, levels=levels)
        assert read(pixels, "train").tolist() == [[levels - 1]]
        assert pictures(read(pixels, "train"), (1, 1, 1), levels).tolist() == [[[[255]]]]
        assert summary["splits"]["test"] == {"images": 1, "in_train": 1}


def test_pictures_that_become_those_of_train_are_counted(tmp_path):
    splits = write_pictures(tmp_path / "toy", {"train": 60, "valid": 9, "test": 40}, (2, 2, 1))
    pixels, summary = prepared_pictures(tmp_path, levels=2)
    train = {row.tobytes() for row in read(pixels, "train")}
    for name in ("valid", "test"):
        again = sum(row.tobytes() in train for row in read(pixels, name))
        assert summary["splits"][name] == {"images": len(splits[name]), "in_train": again}
    assert summary["splits"]["test"]["in_train"] > 20


def test_the_first_pictures_of_a_split_are_taken_if_asked(tmp_path):
    splits = write_pictures(tmp_path / "toy", PICTURES)
    pixels, _ = prepared_pictures(tmp_path, images={"train": 2, "test": 99})
    assert (read(pixels, "train") == splits["train"][:2].reshape(2, -1)).all()
    assert [len(pixels.split(name)) for name in PICTURES] == [2, 2, 3]


def test_a_batch_predicts_every_pixel_but_the_first_from_those_before_it(tmp_path):
    write_pictures(tmp_path / "toy", PICTURES)
    pixels, _ = prepared_pictures(tmp_path, levels=16)
    batch = pixels.split("train").batch(np.array([3, 0])).to("cpu")
    assert batch.targets.tolist() == read(pixels, "train")[[3, 0]].tolist()
    assert batch.inputs[:, 0].tolist() == [16, 16]
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert batch.scored.tolist() == [[False, *[True] * 15]] * 2
    assert batch.mask is None
    assert batch.tokens == 30
    assert pixels.symbols == 17  # the start symbol, too


def test_what_is_not_there_or_damaged_is_named(tmp_path):
    write_pictures(tmp_path / "toy", PICTURES)
    assert_refused(r"4 x 4 pixels cannot be parted into squares of 3; choose", prepared_pictures, tmp_path, pool=3)
    path = tmp_path / "toy/valid.images.npy"
    for harm in (lambda: path.write_bytes(path.read_bytes()[:-5]), path.unlink):
        harm()
        assert_refused(r"valid\.images\.npy cannot be read .* fetch toy again", prepared_pictures, tmp_path)


few = settings(max_examples=50)
texts = st.lists(st.text(LETTERS, min_size=1, max_size=30), min_size=1, max_size=8)
SPLITS = {"train": ["ACDA", "MMMMMM", "LL", "XZ"], "valid": ["AC"], "test": ["LA", "LLLL"], "test_families": ["WWW"]}


def proteins(sequences, **settings):
    return of_proteins.proteins(RaggedArray.pack([encode(text) for text in sequences], np.uint8), **settings)


@pytest.fixture
def fetched_proteins(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, sequences in SPLITS.items():
        write_lines(folder / f"{split}.sequence", sequences)
        names = ["Protein A", "Protein B (Fragment)", "Protein C", "Protein D (Fragments)"]
        write_lines(folder / f"{split}.name", names[: len(sequences)])
        write_lines(folder / f"{split}.key", [f"F:{split}{i}" for i in range(len(sequences))])
    return folder


def prepared_proteins(fetched_proteins, tmp_path, **changes):
    return in_process.prepared(
        "sequences", {"of": "proteins", "dataset": "data"} | changes, fetched_proteins, tmp_path / "out"
    )


def written_letters(text):
    """What is read from left to right."""
    batch = text.batch(np.arange(len(text)))
    return [decode(row[scored]) for row, scored in zip(batch.targets, batch.scored, strict=True)]


@given(st.text(LETTERS, max_size=40))
def test_letters_are_symbols_and_back(text):
    symbols = encode(text)
    assert decode(symbols) == text
    assert VOCABULARY == 30
    assert ((symbols >= FIRST) & (symbols < VOCABULARY)).all()


def test_special_symbols_are_written_out_and_what_is_no_letter_is_none():
    assert decode([PAD, BOS, EOS, MASK, FIRST]) == "<pad><s></s><mask>A"
    assert encode("aJ*é€").tolist() == [PAD] * 5


# Batches


def check_mask(batch, sequences):
    """There is a mask where sequences differ in length, and it is true up to their ends."""
    lengths = [*map(len, sequences)]
    if len({*lengths}) == 1:
        assert batch.mask is None
    else:
        assert batch.mask.tolist() == [[place < n for place in range(max(lengths))] for n in lengths]


@few
@given(texts)
def test_a_causal_batch_predicts_every_letter_from_those_before_it(sequences):
    batch = proteins(sequences).batch(np.arange(len(sequences)))
    assert batch.tokens == sum(map(len, sequences))
    rows = (batch.inputs.tolist(), batch.targets.tolist(), batch.scored.tolist())
    for text, inputs, targets, scored in zip(sequences, *rows, strict=True):
        assert inputs[: len(text)] == [BOS, *encode(text[:-1])]
        assert targets[: len(text)] == encode(text).tolist()
        assert {*inputs[len(text) :], *targets[len(text) :]} <= {PAD}
        assert scored == [place < len(text) for place in range(len(inputs))]
    check_mask(batch, sequences)


@few
@given(texts, st.integers(0, 99))
def test_a_masked_batch_scores_a_share_of_each_sequence_and_changes_nothing_else(sequences, seed):
    text = proteins(sequences, masked=True)
    batch = text.batch(np.arange(len(sequences)), (seed,))
    whole = proteins(sequences).batch(np.arange(len(sequences))).targets
    scored = batch.scored
    assert scored.sum(1).tolist() == [max(1, round(0.15 * len(text))) for text in sequences]
    assert torch.equal(batch.targets[scored], whole[scored])
    assert torch.equal(batch.inputs[~scored], whole[~scored])
    assert batch.tokens == int(scored.sum())
    check_mask(batch, sequences)


def test_of_what_is_scored_most_is_masked_some_is_changed_and_some_is_left():
    batch = proteins(["X" * 4000] * 10, masked=True).batch(np.arange(10), (3, 4))
    read = batch.inputs[batch.scored]
    share = [(read == symbol).float().mean().item() for symbol in (MASK, encode("X")[0])]
    assert share == pytest.approx([0.8, 0.1], abs=0.025)  # six standard errors
    others = set(read.tolist()) - {MASK, int(encode("X")[0])}
    assert others == set(encode(AMINO_ACIDS).tolist())


def test_what_is_masked_depends_on_the_seed_and_the_sequence_and_not_on_the_batch():
    text = proteins(["ACDEFGHIKLMNPQRSTVWY" * 5] * 4, masked=True)
    both = text.batch(np.array([1, 3]), (5,))
    alone = text.batch(np.array([3]), (5,))
    assert torch.equal(both.inputs[1:], alone.inputs)
    assert not torch.equal(both.scored[0], both.scored[1])
    for other in ((5, 1), ()):
        assert not torch.equal(text.batch(np.array([3]), other).scored, alone.scored)


def test_an_end_symbol_is_no_letter_and_is_never_masked():
    batch = of_proteins.proteins(RaggedArray.pack([[EOS], [EOS, FIRST, EOS]]), masked=True).batch(np.arange(2), (0,))
    assert batch.targets.tolist() == [[PAD] * 3, [PAD, FIRST, PAD]]
    assert batch.scored.tolist() == [[False] * 3, [False, True, False]]


# Preparing


def test_a_prepared_task_has_the_sequences_cut_and_says_what_is_in_it(fetched_proteins, tmp_path):
    summary, task = prepared_proteins(fetched_proteins, tmp_path, length=4, test=["test", "test_families"])
    assert summary["vocabulary"] == VOCABULARY
    counts = {name: [*split.values()] for name, split in summary["splits"].items()}
    assert counts == {"train": [4, 4, 12], "valid": [1, 1, 2], "test": [2, 2, 6], "test_families": [1, 1, 3]}
    assert written_letters(task.split("train")) == ["ACDA", "MMMM", "LL", "XZ"]
    assert [axis.tolist() for axis in task.split("train").lengths] == [[4, 4, 2, 2]]
    assert task.sizes == (VOCABULARY, True)
    assert prepared_proteins(fetched_proteins, tmp_path, masked=True)[1].sizes == (VOCABULARY, False)
    assert families(task.folder, "test") == ["F", "F"]


def test_fragments_can_be_left_out_and_training_can_be_less(fetched_proteins, tmp_path):
    _, task = prepared_proteins(fetched_proteins, tmp_path, fragments=False)
    assert written_letters(task.split("train")) == ["ACDA", "LL"]
    assert families(task.folder, "test") == ["F"]
    _, task = prepared_proteins(fetched_proteins, tmp_path, train_sequences=2)
    assert len(task.split("train")) == len(families(task.folder, "train")) == 2
    assert len(task.split("test")) == 2


def test_concatenated_proteins_are_cut_into_equal_pieces_and_nothing_is_lost(fetched_proteins, tmp_path):
    summary, task = prepared_proteins(fetched_proteins, tmp_path, length=5, concatenated=True)
    text = task.split("train")
    assert text.lengths[0].tolist() == [5, 5, 5, 3]
    assert sorted("".join(written_letters(text)).split("</s>")[:-1]) == sorted(SPLITS["train"])
    assert (summary["splits"]["train"]["letters"], summary["splits"]["train"]["proteins"]) == (14, 4)
    assert families(task.folder, "train") is None


def test_proteins_that_cannot_be_prepared_are_named(fetched_proteins, tmp_path):
    write_lines(fetched_proteins / "test_families.name", ["A part (Fragment)"])
    assert_refused(
        "no proteins are left",
        prepared_proteins,
        fetched_proteins,
        tmp_path,
        fragments=False,
        test=["test", "test_families"],
    )
    write_lines(fetched_proteins / "valid.sequence", ["AJ"])
    assert_refused(
        r"F:valid0 of .*valid\.sequence has a letter that stands", prepared_proteins, fetched_proteins, tmp_path
    )
