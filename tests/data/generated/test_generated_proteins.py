"""The generated proteins, and that they are read as fetched ones are."""

import numpy as np
import pytest

from shared.config import load_yaml
from shared.data.fetch import fetch
from shared.data.generated import generate
from shared.tasks.sequences.corpus import PreparedSequences, prepare
from shared.tasks.sequences.proteins import families as prepared_families
from shared.tasks.sequences.settings import ProteinCorpusConfig

SPLITS = {
    "test": {"families": 2, "members": 3},
    "valid": {"families": 3, "members": 1},
    "train": {"families": 40, "members": 20},
}


def values(**changes):
    return {"seed": 1, "lengths": [10, 30], "changed": 0.25, "splits": SPLITS} | changes


def families(segments):
    found = {}
    for segment in segments:
        name, _, accession = segment.key.partition(":")
        found.setdefault(name, {})[accession] = segment.texts[0]
    return found


@pytest.fixture(scope="module")
def shipped(pytestconfig, tmp_path_factory):
    """The folder that the shipped card makes; fetching compares the hashes."""
    root = tmp_path_factory.mktemp("data")
    card = (pytestconfig.rootpath / "data/generated_proteins.yaml").read_text(encoding="utf-8")
    (root / "generated_proteins.yaml").write_text(card, encoding="utf-8")
    fetch("generated_proteins", root=root)
    return root / "generated_proteins"


def test_families_are_in_one_split_and_no_sequence_is_there_twice(pytestconfig):
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_proteins.yaml")["sources"][0]["parameters"]
    corpus = generate("proteins", parameters)
    assert {*corpus} == {"train", "valid", "test", "test_families"}
    homes = {split: families(segments) for split, segments in corpus.items()}
    for split, own in homes.items():
        wanted = parameters["splits"][split]
        assert [len(members) for members in own.values()] == [wanted["members"]] * wanted["families"]
    names = [name for own in homes.values() for name in own]
    assert len({*names}) == len(names)
    sequences = [segment.texts[0] for segments in corpus.values() for segment in segments]
    assert len({*sequences}) == len(sequences) == 78


@pytest.mark.parametrize("masked", [False, True])
def test_they_are_prepared_as_proteins_are(shipped, tmp_path, masked):
    tests = ["test", "test_families"]
    config = ProteinCorpusConfig(dataset="generated_proteins", test=tests, length=16, masked=masked)
    summary = prepare(config, shipped, tmp_path)
    counts = {"train": 48, "valid": 6, "test": 12, "test_families": 12}
    assert {split: own["proteins"] for split, own in summary["splits"].items()} == counts
    prepared = PreparedSequences.load(config, tmp_path)
    for name, count in counts.items():
        split = prepared.split(name)
        (lengths,) = split.lengths
        assert len({*prepared_families(tmp_path, name)}) < count
        assert lengths.max() <= 16
        batch = split.batch(np.arange(count), (1,))
        assert (batch.mask is not None) == (lengths.min() < lengths.max())
        scored = sum(max(1, round(0.15 * n)) for n in lengths) if masked else lengths.sum()
        assert batch.tokens == scored
    lengths = prepared.split("train").lengths[0]
    assert lengths.min() < 16 == lengths.max()  # some are filled up, and some are cut
