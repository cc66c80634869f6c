import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.data.cards import load_card
from shared.data.fetch import fetch, verify
from shared.data.readers import read
from shared.data.sources import sha256_of

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


def test_a_fetched_text_is_its_raw_file_and_no_sentence_is_dropped(tmp_path, pytestconfig):
    """The card of WikiText-2 with other hashes, from a mirror and from its other source's file names."""
    card = yaml.safe_load((pytestconfig.rootpath / "data/wikitext2.yaml").read_text())
    texts = {"train": " \n = A = \n \n the  same \n", "valid": " the  same \n", "test": " = A = \n"}
    (tmp_path / "mirror/wikitext-2").mkdir(parents=True)
    for names in (("wiki.{}.tokens", card), ("{}.txt", card["sources"][1])):
        pattern, pinned = names
        for split, text in texts.items():
            path = tmp_path / "mirror/wikitext-2" / pattern.format(split)
            path.write_text(text)
            pinned["raw"][path.name] = {"sha256": sha256_of(path)}
    card["files"] = {}
    other = {"kind": "mirror", "folder": "wikitext-2", "raw": card["sources"][1]["raw"]}
    for source in (card["sources"][0], other):
        root = tmp_path / f"data{len(source)}"
        root.mkdir()
        (root / "wikitext2.yaml").write_text(yaml.safe_dump(card | {"sources": [source]}))
        manifest = fetch("wikitext2", root=root, mirror=tmp_path / "mirror")
        found = {split: (root / "wikitext2" / f"{split}.text").read_text() for split in texts}
        assert found == texts
        assert manifest.files["train.text"].lines == 4
        assert verify("wikitext2", root=root) == manifest


def test_the_cuts_of_the_shipped_cards_follow_each_other(pytestconfig):
    for dataset in ("enwik8", "text8"):
        parts = load_card(dataset, pytestconfig.rootpath / "data").reader.options["parts"]
        at = 0
        for split in ("train", "valid", "test"):
            (part,) = parts[split]
            assert part.get("start", 0) == at
            at += part["bytes"]
        assert at == 100_000_000
