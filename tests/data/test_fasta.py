"""Families of proteins by homology, and UniProt's files: hand-made ones, the card on a small one, and the real one."""

import collections
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.homology import AMINO_ACIDS, families
from shared.data.readers import proteins, read
from shared.data.splits import hashed_split
from tests.data.odd import protein

LANGUAGES = ["sequence", "name", "organism", "database"]
OPTIONS = {
    "file": "a", "jaccard": 0.02, "containment": 0.3, "valid_percent": 20, "test_percent": 20,
    "held_out": {"families": 3, "smallest": 4, "largest": 6},
}  # fmt: skip


def sequence(generator, length):
    return "".join(generator.choices(AMINO_ACIDS, k=length))


def mutated(generator, text, share):
    return "".join(generator.choice(AMINO_ACIDS) if generator.random() < share else x for x in text)


def small(path, sizes):
    """Families of so many members, each a mutation of one ancestor."""
    generator, text = random.Random(0), ""
    for number, size in enumerate(sizes):
        ancestor = sequence(generator, 120)
        for member in range(size):
            text += protein(f"F{number}M{member}", mutated(generator, ancestor, 0.1 * (member > 0)))
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "expected"), [
    ("Probable DNA ligase (Fragments)", "dna ligase"),
    ("Predicted protein (Fragment)", None),
    ("Conserved hypothetical protein", None),
    ("Protein GrpE", "protein grpe"),
])  # fmt: skip
def test_a_name_tells_a_family_unless_it_says_nothing(name, expected):
    assert proteins.plain_name(name) == expected


def test_families_are_split_as_wholes_and_some_are_held_out(tmp_path):
    sizes = [1, 2, 3, 4, 5, 6, 7] * 9
    small(tmp_path / "a", sizes)
    corpus = read("fasta", tmp_path, LANGUAGES, OPTIONS)
    found = {split: [segment.key.split(":") for segment in segments] for split, segments in corpus.items()}
    assert set(found) == {"train", "valid", "test", "test_families"}
    assert sum(map(len, found.values())) == sum(sizes)
    counted = {split: collections.Counter(name for name, _ in keys) for split, keys in found.items()}
    for split, counts in counted.items():
        for name, count in counts.items():
            assert count == sizes[int(name[1:].partition("M")[0])]
            if split != "test_families":
                assert hashed_split(name, valid_percent=20, test_percent=20) == split
    assert len(counted["test_families"]) == 3
    assert set(counted["test_families"].values()) <= {4, 5, 6}
    assert corpus["train"][0].texts[1:] == ("Uncharacterized protein", "Some thing (strain A=1)", "TrEMBL")


def test_relatives_are_taken_from_the_families_of_train_which_keep_a_member(tmp_path):
    small(tmp_path / "a", [1, 2, 3, 4, 5, 6, 7] * 9)
    without = read("fasta", tmp_path, LANGUAGES, OPTIONS)
    corpus = read("fasta", tmp_path, LANGUAGES, OPTIONS | {"relatives_percent": 50})
    assert [*corpus] == ["train", "valid", "test", "test_families", "test_relatives"]
    for split in ("valid", "test", "test_families"):
        assert corpus[split] == without[split]
    assert {*corpus["train"], *corpus["test_relatives"]} == {*without["train"]}
    assert len(corpus["train"]) + len(corpus["test_relatives"]) == len(without["train"])
    kept, taken = ([segment.key.split(":") for segment in corpus[split]] for split in ("train", "test_relatives"))
    assert {name for name, _ in taken} < {name for name, accession in kept if name == accession}
    assert 0.35 < len(taken) / sum(name != accession for name, accession in (*kept, *taken)) < 0.65


def test_a_name_joins_what_has_no_word_in_common_and_copies_occur_once(tmp_path):
    small(tmp_path / "a", [4] * 4)
    generator = random.Random(1)
    strangers = [sequence(generator, 100) for _ in range(2)]
    with (tmp_path / "a").open("a") as file:
        for number, text in enumerate([*strangers, strangers[0], "MA"]):
            file.write(protein(f"S{number}", text, ["Putative DNA ligase", "DNA ligase (Fragment)"][number % 2]))
    corpus = read("fasta", tmp_path, ["sequence"], OPTIONS | {"shortest": 3})
    rows = [segment for segments in corpus.values() for segment in segments]
    assert rows[:2] == ["an equal sequence stands before it", "a sequence has fewer than 3 letters"]
    keys = [segment.key for segment in rows[2:]]
    assert [key for key in keys if ":S" in key] == ["S0:S0", "S0:S1"]
    assert len(keys) == 18


shares = st.floats(0.01, 1)
texts = st.lists(st.text("ACDX", max_size=12), min_size=1, max_size=8)


def words(text, k):
    """Every run of k letters that are all standard amino acids."""
    runs = {text[i : i + k] for i in range(len(text) - k + 1)}
    return {word for word in runs if set(word) <= set(AMINO_ACIDS)}


def by_hand(sequences, k, jaccard, containment, kin):
    """Families by definition: the first member of whatever links connect."""
    sets = [words(text, k) for text in sequences]
    home = list(range(len(sequences)))
    for i, j in itertools.combinations(range(len(sequences)), 2):
        common, smaller = len(sets[i] & sets[j]), min(len(sets[i]), len(sets[j]))
        near = common and (common / len(sets[i] | sets[j]) >= jaccard or common / smaller >= containment)
        if near or (kin[i] is not None and kin[i] == kin[j]):
            home = [min(home[i], home[j]) if x in (home[i], home[j]) else x for x in home]
    return home


@given(texts, st.integers(1, 4), shares, shares, st.integers(1, 9), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_families_are_what_links_connect(sequences, k, jaccard, containment, rows, generator):
    kin = [generator.choice([None, "a", "b"]) if generator.random() < 0.4 else None for _ in sequences]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.data.homology._ROWS", rows)
        found = families(sequences, k=k, jaccard=jaccard, containment=containment, kin=kin if any(kin) else None)
    assert found.tolist() == by_hand(sequences, k, jaccard, containment, kin)
