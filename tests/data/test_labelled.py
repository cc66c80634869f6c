"""Corpora for classification: hand-made files of every format, and the shipped cards on small archives."""

import json
import lzma

from shared.data.readers import read
from shared.data.splits import Segment, hashed_split, plain_words

LANGUAGES = ["text", "label"]


def rows(raw, part, languages=LANGUAGES, **options):
    corpus = read("labelled", raw, languages, {"parts": {"train": [part]}} | options)
    return [segment.texts for segment in corpus["train"] if isinstance(segment, Segment)]


def test_a_line_is_a_label_and_a_text(tmp_path):
    (tmp_path / "a").write_text("4 a fine film\n0 2 hours too long\n")
    names = {"0": "bad", "4": "good"}
    assert rows(tmp_path, "a", labels=names) == [("a fine film", "good"), ("2 hours too long", "bad")]
    assert rows(tmp_path, "a", ["label", "text"])[1] == ("0", "2 hours too long")


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
