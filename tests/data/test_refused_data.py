"""Every reader's bad input, from cards and from raw files, and the words that refuse it: one table over all readers."""

import pytest

from shared.data.readers import READERS, read
from tests.inputs.raw_data import CASES
from tests.refused import assert_refused

CASE = {case.reader: case for case in reversed(CASES)}
WHOLE = {split: [{"file": split}] for split in ("train", "valid", "test")}
ENTRY = ">tr|P1|P1_X Name OS=Some thing\n{}\n"
SCENES = CASE["scenes"].options["scenes"]
IDX = b"\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2"  # of two pictures of 1 x 2 pixels


# Reader, changed options, changed raw files, languages if they are others, and the words.
TABLE = [
    ("bible", {}, {}, ["en", "de"], "no translation for the language 'de'"),
    ("bible", {}, {"bible.db": b"not a database" * 100}, None, r"bible\.db cannot be read"),
    ("bible_alignments", {}, {}, ["en", "grc"], "the languages grc, en, in this order"),
    ("bible_alignments", {}, {"SBLGNT-BSB-manual.json": b"{"}, None, r"manual\.json, line 1, is not JSON"),
    ("bible_alignments", {}, {"SBLGNT-BSB-manual.json": b'{"records": [{"source": ["n1"], "target": ["2"]}]}'}, None,
     r"manual\.json cannot be read as its card says .KeyError: 'n1'.; fetch it anew"),
    ("fasta", {}, {}, ["name"], "has the language sequence and, after it"),
    ("fasta", {"held_out": {"families": 99, "smallest": 4, "largest": 6}}, {}, None, r"99 .*only \d+ have 4 to 6 "),
    ("fasta", {}, {"a": b""}, None, "a is not FASTA: it has no header"),
    ("fasta", {}, {"a": (ENTRY.format("") + ENTRY.format("M")).encode()}, None, "the protein P1 has no sequence"),
    ("files", {}, {}, ["en"], "the reader 'files' has no languages; correct 'languages' and 'splits'"),
    ("labelled", {}, {}, ["text"], "needs the language 'label' and one of text"),
    ("labelled", {"labels": {"0": "bad"}}, {}, None, r"a\.jsonl, line 2, has the label '1', which the card does"),
    ("labelled", {"parts": {"train": ["c", "d"]}}, {}, None, "the raw file c or d is not there"),
    ("labelled", {"parts": {"test": ["a.jsonl"]}, "valid_percent": 9}, {}, None, "'valid_percent' needs parts of 'tr"),
    ("labelled", {"parts": {"train": ["a.jsonl"]}, "sample": {"train": 99}}, {}, None, "asks for 99 texts, but there"),
    ("labelled", {"sample": {"train": 2}, "valid_percent": 9}, {}, None, "'sample' needs parts of 'train', and nei"),
    ("labelled", {}, {"c.jsonl.xz": b"no xz"}, None, r"c\.jsonl\.xz cannot be read"),
    ("parallel", {}, {}, ["en", "fr"], "a part of 'train' does not have just en, fr"),
    ("parallel", {"valid_every": 3}, {}, None, "'valid_every' needs parts of 'train' and none of 'valid'"),
    ("photos", {}, {}, ["photo", "captions"], "has the languages captions, photo, in this order"),
    ("photos", {"captions": ["none.txt", "none.json"]}, {}, None, r"the raw file none\.txt or none\.json is not there"),
    ("photos", {"words": "("}, {}, None, "words.*regular expression"),
    ("photos", {"words": "z"}, {}, None, r"dataset\.json: the photo 0\.jpg has no caption; write"),
    ("photos", {"captions": ["c"]}, {"c": b"image,caption\n0.jpg,a\n1.jpg, \n"}, None, r"c, line 3: .* has no caption"),
    ("photos", {"captions": ["c"], "splits": {"train": "d"}}, {"c": b"image,caption\n0.jpg,a\n", "d": b"0.jpg\n1.jpg"},
     None, r"d, line 2: the photo 1\.jpg has no caption"),
    ("photos", {"captions": ["c"]}, {"c": b"image,caption\n0.jpg,a\n0.jpeg,b\n"}, None, r"'0\.jpeg' of c, line 3;"),
    *(("photos", {}, {"dataset.json": content}, None, r"dataset\.json(, line 1, is not JSON| cannot be read)")
      for content in (b"{", b"[]", b'{"images": [{"split": "train"}]}', b'{"images": [3]}')),
    ("photos", {"captions": ["c.txt"]}, {"c.txt": b'image,caption\na.jpg,"odd'}, None, r"c\.txt: .* in line 2 is"),
    ("photos", {}, {"a.tar": None}, None, r"in no archive: 6, among them '0\.jpg' of data.*; fetch"),
    ("photos", {}, {"a.tar": b"neither" * 300}, None, r"a\.tar cannot be read .* fetch it anew"),
    ("pixel_texts", {}, {}, ["label", "text"], "has the languages text, label, in this order"),
    ("pixel_texts", {"valid": 20}, {}, None, "of 20 training pictures 20 cannot become valid"),
    ("pixel_texts", {"train": ["a", "t"]}, {}, None, "t cannot be read .* idx file of bytes with one axis"),
    ("pixel_texts", {"margin": 1}, {}, None, "and 0 x 1 pixels inside of the margin"),
    ("pixel_texts", {"pool": 2}, {}, None, "2 x 3 pixels .* parted into squares of 2; correct the card"),
    ("pixel_texts", {}, {"a.classes": b"\0\0\x08\x01\0\0\0\x01\x05"}, None, "a has 20 pictures, a.classes 1 classes"),
    ("pixels", {"train": ["../t"]}, {}, None, "is not a path inside a folder"),
    ("pixels", {"format": "cifar"}, {}, None, "a cannot be read .*3,073 bytes"),
    ("pixels", {"train": ["a", "wide"]}, {"wide": IDX + b"1234"}, None, "the pictures of a and wide differ in size"),
    ("pixels", {}, {"a": b"\0\0\x08\1\0\0\0\2\1\2"}, None, "a cannot be read .* does not begin as an idx file"),
    ("running_text", {}, {}, ["text"], "has no languages"),
    ("running_text", {"parts": {"train": [{"file": "a"}], "valid": []}}, {}, None, "'parts' of test are missing"),
    ("running_text", {"parts": WHOLE | {"test": [{"file": "train", "start": 2, "bytes": 5}]}}, {"train": b"text"}, None,
     "train is 3 bytes shorter than"),
    ("scenes", {}, {}, ["scene", "captions"], "has the languages captions, mentions, boxes, scene, in this order"),
    ("scenes", {"numbers": [2, 4, 5]}, {}, None, "three numbers from 0 that add up to 10"),
    ("scenes", {"numbers": [10, 0, 0]}, {}, None, "that add up to 10, the first not alone"),
    ("scenes", {"combinations": 1}, {}, None, "valid and test cannot have more scenes than there are 'combinations'"),
    ("scenes", {"combinations": 9}, {}, None, "train must have as many scenes as there are 'combinations'"),
    ("scenes", {"scenes": {"train": 8}}, {}, None, "must be of the splits train, valid, test, test_comb"),
    ("scenes", {"kinds": {"animal": ["mamal"]}}, {}, None, "'kinds' names 'mamal', which there is not"),
    ("scenes", {"left_out": ["oyl"]}, {}, None, "'left_out' names 'oyl', which there is not"),
    ("scenes", {"combinations": 300, "scenes": SCENES | {"train": 300}}, {}, None, "nearly all pairs of pictures"),
    ("scenes", {"sizes": [112], "numbers": [0, 0, 10]},
     {f"svg/1F40{i}.svg": b'<svg viewBox="0 0 72 72" xmlns="http://www.w3.org/2000/svg"><rect width="72" height="72"/>'
      b"</svg>" for i in range(8)}, None, "do not fit beside each other; ask for smaller 'sizes'"),
    ("treebank", {}, {}, ["tree", "words"], "has the languages words, tree, in this order"),
    ("treebank", {}, {"wsj/00/w.mrg": b"( (S\n\xff"}, None, r"^wsj/00/w\.mrg is not UTF-8 text: line 2"),
    ("treebank", {"sections": {"train": ["07"]}}, {}, None, r"wsj/07 holds no \.mrg file"),
    ("parallel", {}, {"valid.en.sgm": b"<doc>\n<seg>a</seg>\n<seg>b\n<seg>c</seg>"}, None, "in line 3 has no end"),
    ("parallel", {}, {"valid.en.sgm": b"<doc>\n<!--\n<seg>a</seg> -->"}, None, r"valid\.en\.sgm: it has no <seg>;"),
    ("fasta", {}, {"a": ENTRY.format("ACGTU" * 50).encode()}, None, "a has the letters .* of DNA or RNA; give"),
    ("fasta", {}, {"a": ENTRY.format("ACGTACGTACGTACGTACGTR" * 9).encode()}, None, "letters .* of DNA or RNA; give"),
    ("photos", {"captions": ["c"]}, {"c": "image,caption\n\uff10.jpg,a\n".encode()}, None,
     r"of c, line 2 \(there is '0\.jpg', which is not '\\uff10\.jpg'\); fetch"),
    ("running_text", {"parts": WHOLE | {"test": [{"file": "te\u0301st"}]}}, {"t\u00e9st": b""}, None,
     r"is not there \(there is 't\\xe9st', which is not 'te\\u0301st'\); correct"),
    ("pixels", {"test": ["a"], "valid": 20 - 1}, {}, None, "a: the split 'valid' came out empty, as others have"),
    ("photos", {}, {"dataset.json": b'{"images":\n[{"filename":\n"a\\udc00"}]}'}, None, r"dataset\.json, line 3, is"),
]  # fmt: skip


def read_all(*arguments):
    """Some readers read while their splits are written."""
    return [list(segments) for segments in read(*arguments).values()]


def test_every_reader_is_in_the_table():
    assert {row[0] for row in TABLE} == READERS.keys()


@pytest.mark.parametrize(("reader", "options", "files", "languages", "words"), TABLE)
def test_bad_input_is_refused_in_a_sentence(tmp_path, reader, options, files, languages, words):
    case = CASE[reader]
    case.write(tmp_path)
    for name, content in files.items():
        if content is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(content)
    languages = case.languages if languages is None else languages
    assert_refused(words, read_all, reader, tmp_path, languages, case.options | options)
