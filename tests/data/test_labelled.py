"""Corpora for classification: hand-made files of every format, and the shipped cards on small archives."""

import io
import json
import lzma

import pytest
import yaml
from rich.console import Console
from test_archives import make_tar, make_zip

from shared.data.fetch import MANIFEST, fetch
from shared.data.opening import read_lines
from shared.data.readers import read
from shared.data.sources import sha256_of
from shared.data.splits import hashed_split, plain_words
from shared.errors import ReplicationError

QUIET = Console(file=io.StringIO())
LANGUAGES = ["text", "label"]


def rows(raw, part, languages=LANGUAGES, **options):
    corpus = read("labelled", raw, languages, {"parts": {"train": [part]}} | options)
    return [segment.texts for segment in corpus["train"]]


def pairs(folder, split):
    return list(zip(read_lines(folder / f"{split}.text"), read_lines(folder / f"{split}.label"), strict=True))


def test_a_line_is_a_label_and_a_text(tmp_path):
    (tmp_path / "a").write_text("4 a fine film\n0 2 hours too long\n")
    names = {"0": "bad", "4": "good"}
    assert rows(tmp_path, "a", labels=names) == [("a fine film", "good"), ("2 hours too long", "bad")]
    assert rows(tmp_path, "a", ["label", "text"])[1] == ("0", "2 hours too long")


def test_a_table_has_a_head_of_three_lines(tmp_path):
    (tmp_path / "a.tab").write_text("Kind\tText\nd\tstring\nclass\t\n\nx\tone\ny\t\n")
    fields = {"text": "Text", "label": "Kind"}
    assert rows(tmp_path, "a.tab", fields=fields) == [("one", "x"), ("", "y")]
    (tmp_path / "a.tab").write_text("Kind\tText\nd\tstring\nclass\t\nx\n")
    with pytest.raises(ReplicationError, match=r"a\.tab: line 4 has 1 fields, not 2 as its head"):
        rows(tmp_path, "a.tab", fields=fields)


def test_json_lines_may_be_packed_and_labels_left_out(tmp_path):
    lines = [{"s": "a<br /><BR>b", "label": 1}, {"s": "c", "label": "-"}, {"s": "d", "label": 0}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(text.encode()))
    options = {"fields": {"text": "s"}, "labels": {"0": "no", "1": "yes", "-": None}}
    expected = [("a  b", "yes"), ("d", "no")]
    assert rows(tmp_path, "a.jsonl", **options) == rows(tmp_path, "a.jsonl.xz", **options) == expected


def test_a_folder_holds_a_file_per_text_in_the_order_of_their_numbers(tmp_path):
    for name in ("pos/2_9.txt", "pos/10_7.txt", "neg/0_1.txt"):
        (tmp_path / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "train" / name).write_text(name)
    assert [text for text, _ in rows(tmp_path, "train")] == ["neg/0_1.txt", "pos/2_9.txt", "pos/10_7.txt"]
    assert [label for _, label in rows(tmp_path, "train")] == ["neg", "pos", "pos"]


def test_valid_is_taken_from_train_and_copies_stay_together(tmp_path):
    lines = [f"{i % 3} text {i % 500}" for i in range(1000)]
    (tmp_path / "a").write_text("".join(line + "\n" for line in lines))
    corpus = read("labelled", tmp_path, LANGUAGES, {"parts": {"train": ["a"]}, "valid_percent": 20})
    found = {split: [s.texts[0] for s in segments] for split, segments in corpus.items()}
    assert len(found["train"]) + len(found["valid"]) == 1000
    assert 0.15 < len(found["valid"]) / 1000 < 0.25
    assert not set(found["train"]) & set(found["valid"])
    for text in found["valid"]:
        assert hashed_split(plain_words(text), valid_percent=20, test_percent=0) == "valid"


def test_a_sample_has_the_sizes_asked_for_and_nothing_twice(tmp_path):
    lines = [{"label": i % 5, "text": f"text {i}"} for i in range(300)]
    (tmp_path / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sizes = {"train": 100, "valid": 20, "test": 30}
    options = {"parts": {"train": ["a.json"]}, "sample": sizes}
    found = {
        split: [segment.texts for segment in segments]
        for split, segments in read("labelled", tmp_path, LANGUAGES, options).items()
    }
    assert {split: len(texts) for split, texts in found.items()} == sizes
    assert len({text for texts in found.values() for text in texts}) == 150
    (tmp_path / "a.json").write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)))
    again = read("labelled", tmp_path, LANGUAGES, options)["test"]
    assert {segment.texts for segment in again} == set(found["test"])


def test_copies_in_a_sample_stay_together(tmp_path):
    (tmp_path / "a").write_text("".join(f"x Text, {i % 10}\nx text {i % 10}!\n" for i in range(20)))
    corpus = read("labelled", tmp_path, LANGUAGES, {"parts": {"train": ["a"]}, "sample": {"test": 5, "train": 4}})
    found = {split: [plain_words(segment.texts[0]) for segment in segments] for split, segments in corpus.items()}
    assert {split: len(texts) for split, texts in found.items()} == {"test": 8, "train": 4}
    assert len(set(found["test"])) == 2
    assert not set(found["test"]) & set(found["train"])


def shipped(pytestconfig, tmp_path, dataset):
    """The card as it is shipped, without what only fits the real files, and the folder for it."""
    card = yaml.safe_load((pytestconfig.rootpath / f"data/{dataset}.yaml").read_text(encoding="utf-8"))
    card.pop("files", None)
    card["needs_bytes"] = 1_000_000
    (tmp_path / "data").mkdir(exist_ok=True)
    return card, tmp_path / "data"


def fetched(card, root, mirror=None):
    (root / f"{card['id']}.yaml").write_text(yaml.safe_dump(card, sort_keys=False), encoding="utf-8")
    return fetch(card["id"], root=root, mirror=mirror, console=QUIET)


def reviews(split):
    """Sixty reviews: (label, number, stars, text); one of train is also in test, written otherwise."""
    made = [(label, i, 2 + 7 * label, f"{split}<br />film {i} {label}") for label in (0, 1) for i in range(30)]
    return [*made, (1, 30, 9, "Test film, 3 0!")] if split == "train" else made


def test_imdb_comes_out_the_same_from_the_mirror_and_from_the_official_archive(
    pytestconfig, tmp_path, web, monkeypatch
):
    monkeypatch.delenv("REPLICATIONS_MIRROR", raising=False)
    card, root = shipped(pytestconfig, tmp_path, "imdb")
    contents, folder = {"aclImdb/train/unsup/0_0.txt": b"no label"}, tmp_path / "mirror/imdb"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        lines = ""
        for label, number, stars, text in reviews(split):
            contents[f"aclImdb/{split}/{'pos' if label else 'neg'}/{number}_{stars}.txt"] = text.encode()
            lines += json.dumps({"id": number, "rating": stars, "label": label, "text": text}) + "\n"
        (folder / f"{split}.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
        card["raw"][f"{split}.jsonl.xz"] = {"sha256": sha256_of(folder / f"{split}.jsonl.xz")}
    (download,) = card["sources"][1]["downloads"]
    name = download["url"].rpartition("/")[2]
    web.files[name] = make_tar(tmp_path / name, contents, "w:gz").read_bytes()
    download["url"] = web.url(name)
    del download["sha256"], download["bytes"]
    official = fetched(card, root)
    assert official.source.startswith("web ")
    assert set(official.raw) == set(card["sources"][1]["raw"])
    assert pairs(root / "imdb", "test")[29:31] == [
        ("test film 29 0", "negative"),
        ("test film 0 1", "positive"),
    ]
    (root / "imdb" / MANIFEST).unlink()
    with pytest.raises(ReplicationError, match=r"test\.text came out with the sha256"):
        fetched(card | {"files": {"test.text": "0" * 64}}, root, tmp_path / "mirror")
    assert fetched(card | {"files": {"test.text": "0" * 64}}, root).files == official.files  # other raw files
    (root / "imdb" / MANIFEST).unlink()
    mirrored = fetched(card, root, tmp_path / "mirror")
    assert mirrored.source == "mirror imdb"
    assert set(mirrored.raw) == {"train.jsonl.xz", "test.jsonl.xz"}
    assert mirrored.files == official.files
    kept = mirrored.files["train.text"].lines + mirrored.files["valid.text"].lines
    assert kept == 60
    assert sum(mirrored.dropped.values()) == 1


def test_snli_is_read_from_an_archive_of_the_official_layout(tmp_path, fetched_small):
    contents = {"__MACOSX/._snli_1.0": b"", "snli_1.0/snli_1.0_train.txt": b"not this one"}
    for split in ("train", "dev", "test"):
        labels = enumerate(("entailment", "-", "neutral", "contradiction"))
        lines = [{"gold_label": x, "sentence1": f"{split} photo {i}", "sentence2": "A man sleeps."} for i, x in labels]
        lines.append({"gold_label": "neutral", "sentence1": "Test photo 0.", "sentence2": "A dog."})
        contents[f"snli_1.0/snli_1.0_{split}.jsonl"] = "".join(json.dumps(x) + "\n" for x in lines).encode()
    archive = make_zip(tmp_path / "snli_1.0.zip", contents).read_bytes()
    manifest, folder = fetched_small("snli", lambda download: archive)
    assert manifest.dropped == {"train": 1, "valid": 1, "test": 0}
    assert list(read_lines(folder / "valid.premise")) == ["dev photo 0", "dev photo 2", "dev photo 3"]
    assert list(read_lines(folder / "train.hypothesis")) == ["A man sleeps."] * 3
    expected = ["entailment", "neutral", "contradiction", "neutral"]
    assert list(read_lines(folder / "test.label")) == expected


@pytest.mark.parametrize(
    ("dataset", "folder", "field", "raw_labels", "labels"),
    [
        ("yelp_reviews", "yelp", "stars", [1, 2.0, 3.0, 4, 5.0], {"1", "2", "3", "4", "5"}),
        (
            "author_ages",
            "author_ages",
            "age",
            ["18-24", "25-34", "35-49", "50-64", "65-xx"],
            {"18-24", "25-34", "35-49", "50-64", "65+"},
        ),
    ],
)
def test_what_only_its_holder_has_is_sampled_from_the_mirror(
    pytestconfig, tmp_path, dataset, folder, field, raw_labels, labels
):
    card, root = shipped(pytestconfig, tmp_path, dataset)
    asked = card["reader"]["options"]["sample"]
    assert list(asked) == ["test", "valid", "train"]
    card["reader"]["options"]["sample"] = {split: size // 100 for split, size in asked.items()}
    (raw,) = card["raw"]
    (tmp_path / "mirror" / folder).mkdir(parents=True)
    lines = [{field: raw_labels[i % 5], "text": f"text {i}"} for i in range(sum(asked.values()) // 100 + 50)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "mirror" / folder / raw).write_text(text, encoding="utf-8")
    manifest = fetched(card, root, tmp_path / "mirror")
    written = {split: manifest.files[f"{split}.text"].lines for split in asked}
    assert written == card["reader"]["options"]["sample"]
    assert set(read_lines(root / dataset / "train.label")) == labels
