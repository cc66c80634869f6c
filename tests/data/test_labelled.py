"""Corpora for classification: hand-made files of every format, and the shipped cards on small archives."""

import json
import lzma

from shared.data.readers import read
from shared.data.splits import Segment

LANGUAGES = ["text", "label"]


def rows(raw, part, languages=LANGUAGES, **options):
    corpus = read("labelled", raw, languages, {"parts": {"train": [part]}} | options)
    return [segment.texts for segment in corpus["train"] if isinstance(segment, Segment)]


def test_json_lines_may_be_packed_and_labels_left_out(tmp_path):
    lines = [{"s": "a<br /><BR>b", "label": 1}, {"s": "c", "label": "-"}, {"s": "d", "label": 0}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(text.encode()))
    options = {"fields": {"text": "s"}, "labels": {"0": "no", "1": "yes", "-": None}}
    expected = [("a  b", "yes"), ("d", "no")]
    assert rows(tmp_path, "a.jsonl", **options) == rows(tmp_path, "a.jsonl.xz", **options) == expected


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
