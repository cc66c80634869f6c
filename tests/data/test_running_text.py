from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.data.cards import load_card
from shared.data.readers import read

CARDS = ("penn_treebank", "wikitext2", "wikitext103", "enwik8", "text8", "lm1b")
WHOLE = {split: [{"file": "a"}] for split in ("train", "valid", "test")}


def written(raw, options):
    corpus = read("running_text", raw, [], options)
    assert dict(corpus) == {}
    return {name: path.read_bytes() for name, path in corpus.files.items()}


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 60), st.integers(1, 9))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cuts_of_a_file_are_its_bytes(tmp_path_factory, monkeypatch, data, first, second, chunk):
    monkeypatch.setattr("shared.data.opening._CHUNK", chunk)
    raw = tmp_path_factory.mktemp("raw")
    (raw / "a").write_bytes(data)
    first, second = sorted((min(first, len(data)), min(second, len(data))))
    cuts = {"train": (0, first), "valid": (first, second), "test": (second, len(data))}
    parts = {
        split: [{"file": "a", "start": low, "bytes": high - low}] if high > low else []
        for split, (low, high) in cuts.items()
    }
    found = written(raw, {"parts": parts})
    assert found == {f"{split}.text": data[low:high] for split, (low, high) in cuts.items()}


def test_files_and_folders_follow_each_other(tmp_path):
    (tmp_path / "many").mkdir()
    for name in ("b", "a", "c"):
        (tmp_path / "many" / name).write_text(f" {name} \n\n")
    (tmp_path / "one").write_text("1")
    parts = {"train": [{"file": "many"}, {"file": "one"}], "valid": [{"file": ["none", "one", "many"]}]}
    found = written(tmp_path, {"parts": parts | {"test": [{"file": "one", "start": 1}]}})
    assert found == {"train.text": b" a \n\n b \n\n c \n\n1", "valid.text": b"1", "test.text": b""}


def test_the_cuts_of_the_shipped_cards_follow_each_other(pytestconfig):
    for dataset in ("enwik8", "text8"):
        parts = load_card(dataset, pytestconfig.rootpath / "data").reader.options["parts"]
        at = 0
        for split in ("train", "valid", "test"):
            (part,) = parts[split]
            assert part.get("start", 0) == at
            at += part["bytes"]
        assert at == 100_000_000
