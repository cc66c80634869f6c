import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.homology import AMINO_ACIDS
from shared.data.ragged import RaggedArray
from shared.data.storage import write_lines
from shared.data.tokenizers import BOS, EOS, PAD
from shared.tasks.sequences import proteins as of_proteins
from shared.tasks.sequences.proteins import decode, encode, families
from shared.tasks.sequences.settings import FIRST, LETTERS, MASK, VOCABULARY
from tests.refused import assert_refused
from tests.tasks import in_process

few = settings(max_examples=50)
texts = st.lists(st.text(LETTERS, min_size=1, max_size=30), min_size=1, max_size=8)
SPLITS = {"train": ["ACDA", "MMMMMM", "LL", "XZ"], "valid": ["AC"], "test": ["LA", "LLLL"], "test_families": ["WWW"]}


def proteins(sequences, **settings):
    return of_proteins.proteins(RaggedArray.pack([encode(text) for text in sequences], np.uint8), **settings)


@pytest.fixture
def fetched(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, sequences in SPLITS.items():
        write_lines(folder / f"{split}.sequence", sequences)
        names = ["Protein A", "Protein B (Fragment)", "Protein C", "Protein D (Fragments)"]
        write_lines(folder / f"{split}.name", names[: len(sequences)])
        write_lines(folder / f"{split}.key", [f"F:{split}{i}" for i in range(len(sequences))])
    return folder


def prepared(fetched, tmp_path, **changes):
    return in_process.prepared("sequences", {"of": "proteins", "dataset": "data"} | changes, fetched, tmp_path / "out")


def written(text):
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
    text = proteins(["X" * 4000] * 10, masked=True)
    batch = text.batch(np.arange(10), (3, 4))
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


def test_a_prepared_task_has_the_sequences_cut_and_says_what_is_in_it(fetched, tmp_path):
    summary, task = prepared(fetched, tmp_path, length=4, test=["test", "test_families"])
    assert summary["vocabulary"] == VOCABULARY
    counts = {name: [*split.values()] for name, split in summary["splits"].items()}
    assert counts == {"train": [4, 4, 12], "valid": [1, 1, 2], "test": [2, 2, 6], "test_families": [1, 1, 3]}
    assert written(task.split("train")) == ["ACDA", "MMMM", "LL", "XZ"]
    assert [axis.tolist() for axis in task.split("train").lengths] == [[4, 4, 2, 2]]
    assert task.sizes == (VOCABULARY, True)
    assert prepared(fetched, tmp_path, masked=True)[1].sizes == (VOCABULARY, False)
    assert families(task.folder, "test") == ["F", "F"]


def test_fragments_can_be_left_out_and_training_can_be_less(fetched, tmp_path):
    _, task = prepared(fetched, tmp_path, fragments=False)
    assert written(task.split("train")) == ["ACDA", "LL"]
    assert families(task.folder, "test") == ["F"]
    _, task = prepared(fetched, tmp_path, train_sequences=2)
    assert len(task.split("train")) == len(families(task.folder, "train")) == 2
    assert len(task.split("test")) == 2


def test_concatenated_proteins_are_cut_into_equal_pieces_and_nothing_is_lost(fetched, tmp_path):
    summary, task = prepared(fetched, tmp_path, length=5, concatenated=True)
    text = task.split("train")
    assert text.lengths[0].tolist() == [5, 5, 5, 3]
    assert sorted("".join(written(text)).split("</s>")[:-1]) == sorted(SPLITS["train"])
    assert (summary["splits"]["train"]["letters"], summary["splits"]["train"]["proteins"]) == (14, 4)
    assert families(task.folder, "train") is None


def test_what_cannot_be_prepared_is_said(fetched, tmp_path):
    write_lines(fetched / "test_families.name", ["A part (Fragment)"])
    assert_refused("no proteins are left", prepared, fetched, tmp_path, fragments=False, test=["test", "test_families"])
    write_lines(fetched / "valid.sequence", ["AJ"])
    assert_refused(r"F:valid0 of .*valid\.sequence has a letter that stands", prepared, fetched, tmp_path)
