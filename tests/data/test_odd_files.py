"""Files as people bring them: what is odd but legal gives the right value, what is broken a sentence with its line."""

import io
import json
import lzma
import zipfile

import numpy as np
import pytest
from PIL import Image
from test_archives import make_tar, make_zip

from shared.data.generated.scenes import SIDE
from shared.data.opening import listed, read_json, read_picture, read_table, text_lines
from shared.data.photos import PhotoSplit
from shared.data.readers import read
from shared.data.splits import EQUAL, Segment, assert_disjoint, sentence, write_corpus
from shared.errors import ReplicationError
from tests.inputs.raw_data import CASES

SPLITS = ("train", "valid", "test")
HALF = "\ud83d"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\rb\rc", ["a", "b", "c"]),
        (b"a\rb\nc\n", ["a\rb", "c"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        ("a\u2028b\x85c\x0cd\n".encode(), ["a\u2028b\x85c\x0cd"]),
        (b"a\xef\xbb\xbf\n", ["a\ufeff"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_end_as_they_do_on_any_machine_and_nowhere_else(tmp_path, content, lines, packed):
    path = tmp_path / ("a.xz" if packed else "a")
    path.write_bytes(lzma.compress(content) if packed else content)
    assert list(text_lines(path)) == lines


@pytest.mark.parametrize(
    ("content", "delimiter", "rows"),
    [
        ("\ufeffx,y\r\n1,2\r\n", ",", [("1", "2")]),
        ('x,y\n"1, one","a ""b"""\n\n3,4', ",", [("1, one", 'a "b"'), ("3", "4")]),
        ('x,y\n"1\none",2\n', ",", [("1\none", "2")]),
        ('x\ty\n"1\t"2\n', "\t", [('"1', '"2')]),
        ("x,y\n 1 ,\n", ",", [(" 1 ", "")]),
    ],
)
def test_tables_are_read_by_their_quotes_or_by_every_character(tmp_path, content, delimiter, rows):
    (tmp_path / "t").write_text(content, encoding="utf-8", newline="")
    found = read_table(tmp_path / "t", delimiter=delimiter, quoted=delimiter == ",")
    assert [tuple(row.values()) for _, row in found] == rows


RAMP = np.linspace(0, 65_535, 256)[None].repeat(4, 0)


def encoded(pixels, kind="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        encoded(RAMP.astype(np.uint16)),
        encoded(RAMP.astype(np.uint16), "TIFF"),
        encoded(RAMP.astype(np.int32), "TIFF"),
        *(encoded((RAMP / most).astype(np.float32), "TIFF") for most in (65_535, 257, 1)),
    ],
)
def test_grey_values_of_any_depth_are_those_of_eight_bits(content):
    assert (read_picture(content) == (RAMP / 257).astype(np.uint8)[..., None]).all()


@pytest.mark.parametrize("hidden", [(255, 0, 0), (0, 0, 0)])
def test_what_is_transparent_is_white_whatever_is_hidden(hidden):
    pixels = np.full((8, 8, 4), 255, np.uint8)
    pixels[4:, :, :3], pixels[:4, :, :3], pixels[:4, :, 3], pixels[0, :, 3] = (1, 2, 3), hidden, 0, 128
    shown = read_picture(encoded(pixels))
    assert (shown[1:4] == 255).all()
    assert (shown[4:] == (1, 2, 3)).all()
    assert np.abs(shown[0].astype(int) - [(128 * part + 127 * 255) // 255 for part in hidden]).max() <= 1
    palette = encoded(np.repeat([[0, 9]], 4, 0).astype(np.uint8), transparency=0)
    assert read_picture(palette)[0, :, 0].tolist() == [255, 9]


def test_a_photo_is_turned_as_its_camera_says():
    sideways = Image.Exif()
    sideways[0x112] = 6
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[:, :16] = 255
    shown = read_picture(encoded(pixels, "JPEG", exif=sideways))
    assert shown.shape == (32, 16, 3)
    assert shown[:14].min() > 200 > 50 > shown[18:].max()


def test_a_bomb_is_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for side in (11, 30):
        with pytest.raises(ValueError, match="it may be a bomb"):
            read_picture(encoded(np.zeros((side, side), np.uint8)))


def test_names_that_begin_with_a_dot_are_no_data(tmp_path):
    for name in ("a", ".DS_Store", "b/._c", "b/c", ".git/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert listed(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert listed(tmp_path, "*/*") == [tmp_path / "b/c"]


ONE = [
    ("Thus he spoke.", "thus, he SPOKE"),
    ("e\u0301t\u00e9", "\u00e9te\u0301"),
    ("«a» – b…", "a b"),
    ("so\u00adft", "soft"),
    ("don't", "don’t"),
    ("Straße", "STRASSE"),
]
TWO = [
    ("वह आया", "वह आयी"), ("वह आया", "वह आये"),
    ("1 + 2", "1 * 2"), ("1 - 2", "1 + 2"), ("1 - 2", "1 2"), ("1 / 2", "1 2"),
    ("C", "C++"), ("C", "C#"), ("x < y", "x > y"), ("5 %", "5"), ("$5", "€5"), ("-5", "5"),
    ("1.5", "1,5"), ("1.5", "1 5"),
    ("x²", "x2"), ("😀", "😃"), ("👍🏽", "👍🏿"), ("a & b", "a b"), ("?", "!"), ("a = b", "a ≠ b"), ("كَتَبَ", "كُتِبَ"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "equal"), [(*pair, True) for pair in ONE] + [(*pair, False) for pair in TWO])
def test_sentences_are_equal_by_letters_marks_and_signs(tmp_path, one, other, equal):
    assert (sentence(one) == sentence(other)) == equal
    corpus = {
        "train": [Segment((other,)), Segment(("train",))],
        "valid": [Segment(("valid",))],
        "test": [Segment((one,))],
    }
    assert write_corpus(corpus, ["en"], tmp_path)["train", EQUAL] == equal
    assert_disjoint(tmp_path, ["en"], corpus)


def test_sentences_of_signs_alone_are_compared_too(tmp_path):
    corpus = {
        "train": [Segment(("😀 😃",)), Segment(("...",))],
        "valid": [Segment(("a",))],
        "test": [Segment(("😀 😃",))],
    }
    assert write_corpus(corpus, ["en"], tmp_path)["train", EQUAL] == 1


def test_composed_and_decomposed_texts_are_written_alike(tmp_path):
    corpus = {split: [Segment((f"{split} e\u0301",))] for split in SPLITS}
    write_corpus(corpus, ["en"], tmp_path)
    assert (tmp_path / "train.en").read_text(encoding="utf-8") == "train \u00e9\n"


SPACES = ("a b.png", "a  b.png", "a\u202fb.png", "a\u00a0b.png", "e\u0301.png", "\u00e9.png", "A b.png")


@pytest.mark.parametrize("archive", ["tar", "zip", "zip of a Macintosh"])
def test_photos_have_their_names_to_the_byte_and_keep_their_folder(tmp_path, archive):
    raw, folder = tmp_path / "raw", tmp_path / "files"
    raw.mkdir()
    folder.mkdir()
    names = [*SPACES, "x/1.png", "y/1.png"]
    photos = {f"all/{name}": encoded(np.full((SIDE, SIDE), number, np.uint8)) for number, name in enumerate(names)}
    if archive == "tar":
        make_tar(raw / "a.tar", photos)
    else:
        path = make_zip(raw / "a.zip", photos)
        if "Mac" in archive:  # no mark of the encoding, in the heads of the files and in the directory
            content = path.read_bytes().replace(b"PK\3\4\x14\0\0\x08", b"PK\3\4\x14\0\0\0")
            path.write_bytes(content.replace(b"PK\1\2\x14\3\x14\0\0\x08", b"PK\1\2\x14\3\x14\0\0\0"))
            assert not any(info.flag_bits & 0x800 for info in zipfile.ZipFile(path).infolist())
    homes = dict(zip(names, ["train", "valid", "test"] * 3, strict=True))
    table = "".join(f'"{name}",a photo {number}\r\n' for number, name in enumerate(names))
    (raw / "captions.csv").write_text("image,caption\r\n" + table, encoding="utf-8-sig", newline="")
    for split in SPLITS:
        lines = "".join(f"{name}\r\n" for name, home in homes.items() if home == split)
        (raw / f"{split}.txt").write_text(lines, encoding="utf-8-sig", newline="")
    options = {"captions": ["captions.csv"], "splits": {split: f"{split}.txt" for split in SPLITS}}
    corpus = read("photos", raw, ("captions", "photo"), options)
    dropped = write_corpus(corpus, ("captions", "photo"), folder, compared=["photo"])
    assert not dropped
    assert_disjoint(folder, ["photo"], corpus)
    for split in SPLITS:
        found = PhotoSplit.load(folder, split)
        assert [*found.columns["photo"]] == [name for name, home in homes.items() if home == split]
        numbers = [names.index(name) for name in found.columns["photo"]]
        assert found.images(range(len(found)))[:, 0, 0, 0].tolist() == numbers
        assert [captions[0].text for captions in found.captions] == [f"a photo {number}" for number in numbers]


def test_a_photo_of_which_there_are_two_is_asked_for_with_its_folder(tmp_path):
    content = encoded(np.zeros((4, 4), np.uint8))
    make_zip(tmp_path / "a.zip", {"x/1.png": content, "y/1.png": content})
    image = {"filename": "1.png", "sentences": [{"raw": "a"}]}
    document = {"images": [image | {"split": split} for split in ("train", "val", "test")]}
    (tmp_path / "d.json").write_text(json.dumps(document))
    with pytest.raises(ReplicationError, match=r"several photos are called 1\.png; write the folder before the name"):
        read("photos", tmp_path, ("captions", "photo"), {"captions": ["d.json"]})


def running(raw, files):
    for name, content in files.items():
        (raw / name).write_bytes(content)
    parts = {split: [{"file": name} for name in files] for split in SPLITS}
    return read("running_text", raw, [], {"parts": parts}).files["train.text"].read_bytes()


def test_files_of_running_text_begin_on_lines_of_their_own(tmp_path):
    files = {"a": b"\xef\xbb\xbffirst\r\nends here", "b": b"", "c": "second e\u0301".encode(), "d": b" \n"}
    assert running(tmp_path, files) == "first\nends here\nsecond \u00e9\n \n".encode()


RECORD = b'{"text": "a", "label": 1}\n'
BROKEN = [
    ("labelled", "a.jsonl", RECORD * 3 + b'{"text": "a"', r"a\.jsonl, line 4, is not JSON"),
    ("labelled", "a.jsonl", RECORD * 3 + b"\n", r"a\.jsonl, line 4, is not JSON"),
    ("labelled", "a.jsonl", RECORD + b'{"text": null, "label": 1}\n', r"a\.jsonl, line 2, has no field 'te"),
    ("labelled", "a.jsonl", RECORD + b'{"text": "a", "label": null}\n', r"a\.jsonl, line 2, has no field 'l"),
    ("labelled", "a.jsonl", RECORD + b'{"text": 3, "label": 1}\n', r"a\.jsonl, line 2 cannot be read"),
    ("labelled", "a.jsonl", RECORD + b'"text"\n', r"a\.jsonl, line 2 cannot be read"),
    ("labelled", "a.jsonl", b'{"text": "a \\\\ud83d", "label": 1}\n{"text": "\\ud83d", "label": 1}\n',
     r"a\.jsonl, line 2, is not JSON \(half of a character\)"),
    ("labelled", "a.jsonl", b'{"text": "\\ude00", "label": 1}\n', r"a\.jsonl, line 1, is not JSON \(half of"),
    ("labelled", "b.tab", b"label\ttext\nd\td\nclass\t\n1\ta\n1\n", r"b\.tab: line 5 has 1 fields, not 2 as its head"),
    ("labelled", "b.tab", b"text\ttext\n1\ta\n", r"b\.tab: line 1 has 2 fields, of which two have one name"),
    ("labelled", "a.jsonl", RECORD + b"\xff", r"a\.jsonl is not UTF-8 text: line 2 has the byte 0xff"),
    ("photos", "dataset.json", b'{"images":\n[{"filename":\n"a\\udc00"}]}', r"dataset\.json, line 3, is not JSON"),
    ("fasta", "a", b"MAC\n>sp|P1|X_Y Name OS=A\nM\n", r"a is not UniProt's FASTA: 'MAC' in line 1 is no header"),
    ("fasta", "a", b">sp|P1|X_Y Name OS=A\nM\n>x\nM\n", r"'>x' in line 3 is no header"),
    ("fasta", "a", b">sp|P1|X_Y Name OS=A\nM\nMJ\n", r"a: line 3 is not made of letters for amino acids"),
    ("parallel", "valid.en.sgm", b"<doc>\n<seg>a</seg>\n<seg>b\n<seg>c</seg>", r"the segment .* in line 3 has no end"),
    ("treebank", "wsj/00/w.mrg", b"(S (NN a))\n(S (NN b)\n", r"w\.mrg .* the tree that begins in line 2 is not closed"),
    ("running_text", "valid", b"a\n\xc3\n", r"valid is not UTF-8 text: line 2 has the byte 0xc3; save it as UTF-8"),
    ("bible_alignments", "SBLGNT.tsv", b"id\ttext\nn1\ta\tb\n", r"SBLGNT\.tsv: line 2 has 3 fields, not 2"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "name", "content", "said"), BROKEN)
def test_what_is_broken_is_said_with_its_file_and_line(tmp_path, reader, name, content, said):
    case = next(case for case in CASES if case.reader == reader)
    case.write(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReplicationError, match=said) as refused:
        _ = [list(segments) for segments in read(reader, tmp_path, case.languages, case.options).values()]
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


QUOTES = [
    ('image,caption\na.png,"first boy\nb.png,first boy\nb.png,second\n', "line 2"),
    ('image,caption\na.png,x\na.png,"first boy\nb.png,first boy\nb.png,"second, one"\n', "line 3"),
    ('image,caption\na.png,"a" boy\n', "line 2"),
    ("image,caption\na.png\n", "line 2"),
    ("image,caption\na.png,one,two\n", "line 2"),
    ('image,caption\na.png,"' + "x\n" * 70_000, "line 2"),
]


@pytest.mark.parametrize(("content", "line"), QUOTES)
def test_a_table_that_is_broken_is_said_with_its_file_and_line(tmp_path, content, line):
    (tmp_path / "captions.txt").write_text(content)
    with pytest.raises(ReplicationError, match=rf"captions\.txt.* {line} ") as refused:
        list(read_table(tmp_path / "captions.txt", delimiter=",", quoted=True))
    assert "\n" not in str(refused.value)


def test_pairs_of_halves_are_whole_characters(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(["😀 \\ud83d", "é"]))
    assert read_json(tmp_path / "a.json") == ["😀 \\ud83d", "é"]
