"""The generated proteins, and that they are read as fetched ones are."""

from shared.config import load_yaml
from shared.data.generated import generate


def families(segments):
    found = {}
    for segment in segments:
        name, _, accession = segment.key.partition(":")
        found.setdefault(name, {})[accession] = segment.texts[0]
    return found


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
