"""Pictures of every form, photos, and archives with any names: the right pixels and bytes, or a refusal."""

import gzip
import json
import shutil
import subprocess
import tarfile
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shared.data import archives
from shared.data.archives import extract
from shared.data.generated.scenes import SIDE
from shared.data.opening import read_picture
from shared.data.photos import LANGUAGES, Photos, PhotoSplit, decode
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError
from tests.data.odd import ARCHIVES, EXAMPLES, NAME, Link, archive, described, encoded, folder
from tests.refused import assert_refused

TURNS = {
    0: lambda a: a, 1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2), 6: lambda a: np.rot90(a, -1), 7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: np.rot90, 9: lambda a: a,
}  # fmt: skip
"""How the picture of a camera is to be turned, by its mark; 0 and 9 are none."""


def over_white(colours, alpha):
    """(H, W, 3) seen over white, for (H, W, 1) alpha of 0 to 255."""
    return (colours * (alpha / 255) + 255 * (1 - alpha / 255)).round()


def plain(form, pixels):
    """A picture without transparency, and what is seen."""
    grey, three = pixels[..., 0], np.repeat(pixels[..., :1], 3, -1).astype(float)
    match form:
        case "L":
            return Image.fromarray(grey), three
        case "1":
            return Image.fromarray(grey > 127), np.where(three > 127, 255.0, 0)
        case "I;16":
            return Image.fromarray(grey.astype(np.uint16) * 257), three
        case "P":
            table = np.random.default_rng(0).integers(0, 256, (256, 3), dtype=np.uint8)
            image = Image.fromarray(grey)
            image.putpalette(table.tobytes())
            return image, table[grey].astype(float)
        case int() | float():  # the largest value of a form of 32 bits, which has to be there
            grey[0, 0] = three[0, 0] = 255
            return Image.fromarray((grey / 255 * form).astype(np.float32 if type(form) is float else np.int32)), three
    return Image.fromarray(pixels[..., :3]), pixels[..., :3].astype(float)


@st.composite
def pictures(draw):
    """The bytes of a picture, and what is seen: (H, W, 3)."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 5)), 4
    pixels = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, shape, dtype=np.uint8)
    alpha, first = pixels[..., 3:], pixels[:1, :1]
    kind, forms = draw(st.sampled_from([
        ("PNG", ["L", "1", "P", "RGB", "I;16"]), ("TIFF", ["L", "1", "P", "RGB", "I;16"]), ("BMP", ["RGB", "P"]),
        ("PPM", ["RGB"]), ("TIFF", [1.0, 255.0, 65_535.0, 255, 65_535]), ("GIF", ["P"]), ("TGA", ["RGB", "L"]),
        ("PNG", ["LA", "RGBA", "clear L", "clear RGB", "clear I;16", "clear P"]), ("WEBP", ["RGBA", "RGB"]),
    ]))  # fmt: skip
    form = draw(st.sampled_from(forms))
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    if form in ("LA", "RGBA"):
        image = Image.fromarray(pixels if form == "RGBA" else pixels[..., [0, 3]])
        seen = over_white(plain("RGB" if form == "RGBA" else "L", pixels)[1], alpha)
    elif str(form).startswith("clear"):
        form = form.removeprefix("clear ")
        image, seen = plain(form, pixels)
        if form == "P":
            clear = np.random.default_rng(1).integers(0, 256, 256, dtype=np.uint8)
            options["transparency"], seen = clear.tobytes(), over_white(seen, clear[pixels[..., :1]])
        else:
            key = first[0, 0, :3].tolist()
            options["transparency"] = tuple(key) if form == "RGB" else key[0] * (257 if form == "I;16" else 1)
            own = slice(0, 3 if form == "RGB" else 1)
            seen = np.where((pixels == first)[..., own].all(-1, keepdims=True), 255.0, seen)
    else:
        image, seen = plain(form, pixels)
    if kind == "GIF" and draw(st.booleans()):
        options |= {"save_all": True, "append_images": [image.rotate(90), image]}
    mark = draw(st.sampled_from([None, *TURNS]))
    if mark is not None and kind in ("PNG", "TIFF", "WEBP") and isinstance(form, str):
        options["exif"] = Image.Exif()
        options["exif"][0x112] = mark
        seen = TURNS[mark](seen)
    return encoded(image, kind, **options), seen


@EXAMPLES
@given(pictures())
def test_a_picture_is_seen_as_a_viewer_shows_it(drawn):
    content, seen = drawn
    shown = read_picture(content)
    assert shown.dtype == np.uint8
    assert shown.shape == seen.shape
    assert np.abs(shown - seen).max() <= 1
    assert decode(content).shape == (224, 224, 3)


@EXAMPLES
@given(pictures(), st.data())
def test_a_damaged_picture_is_refused_or_a_picture(drawn, data):
    content, seen = drawn
    place = data.draw(st.integers(0, len(content) - 1))
    cut = data.draw(st.booleans())
    wrong = content[:place] + (b"" if cut else data.draw(st.binary(min_size=1, max_size=3)) + content[place + 1 :])
    try:
        shown = read_picture(wrong)
    except ValueError:
        return
    assert shown.dtype == np.uint8
    assert shown.shape[2:] == (3,)
    assert shown.size
    assert not (cut and content[1:4] == b"PNG") or np.abs(shown - seen).max() <= 1


def test_a_picture_for_a_printer_and_a_bomb(monkeypatch):
    assert not read_picture(encoded(Image.fromarray(np.float32([[-1]])), "TIFF")).any()
    red = np.zeros((8, 8, 4), np.uint8)
    red[..., 1:3] = 255
    shown = read_picture(encoded(Image.fromarray(red, "CMYK"), "JPEG"))
    assert (shown[..., 0] > 240).all()
    assert (shown[..., 1:] < 15).all()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for side in (11, 30):
        with pytest.raises(ValueError, match="bomb"):
            read_picture(encoded(Image.new("L", (side, side)), "PNG"))


OUTSIDE = ["../n", "t/../../n", "/n", "t\\..\\n", "t/x/../../../n", "..", "t/.."]


PATHS = st.lists(NAME, min_size=1, max_size=3).map("/".join).filter(lambda path: "\\" not in path and "\0" not in path)
MEMBERS = st.dictionaries(PATHS, st.binary(max_size=20), max_size=5)


def whole_paths(members):
    """Whether a folder can hold them all: none is a folder of another."""
    return not any(other.startswith(f"{name}/") for name in members for other in members)


@EXAMPLES
@given(MEMBERS.filter(whole_paths), st.sampled_from([*ARCHIVES]), st.data())
def test_an_archive_gives_its_files_to_the_byte(members, kind, data):
    with folder() as raw:
        (raw / "into").mkdir()
        mark = "./" if kind != "zip" and data.draw(st.booleans()) else ""
        packed = {f"{mark}t/{name}": content for name, content in members.items()}
        packed |= {"o/z.gz": gzip.compress(b"z"), "no": b"no"}
        path = archive(raw / f"a.{kind}", packed.items())
        extract(path, {"t/": "tree/", "o/z.gz": "z"} if members else {"o/z.gz": "z"}, raw / "into", limit=200)
        files = [each for each in (raw / "into").rglob("*") if each.is_file()]
        found = {each.relative_to(raw / "into").as_posix(): each.read_bytes() for each in files}
        assert found == {f"tree/{name}": content for name, content in members.items()} | {"z": b"z"}
        if kind in ("zip", "tar"):
            photos = Photos([path])
            assert all(photos.read(f"t/{name}") == content for name, content in members.items())


EVIL = [
    *OUTSIDE, *map(Link, (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)), "large", "twice", "missing", "inside",
    "long", "bomb",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@EXAMPLES
@given(MEMBERS.filter(whole_paths), st.sampled_from([*ARCHIVES]), st.sampled_from(EVIL), st.data())
def test_a_hostile_archive_is_refused_and_writes_nothing_elsewhere(members, kind, evil, data):
    members = [(f"t/{name}", content) for name, content in members.items()]
    wanted, more = {"t/": "t/"}, []
    match evil:
        case Link():
            more = [("t/link", evil)]
        case "large":
            more = [("t/large", bytes(300))]
        case "twice" | "inside":
            more = [("t/x", b"1"), ("t/x" + "/y" * (evil == "inside"), b"2")]
        case "missing":
            wanted["none"] = "none"
        case "long":
            more = [("t/" + "n" * 300, b"")]
        case "bomb":
            more, wanted = [("x.gz", gzip.compress(bytes(100_000)))], {"x.gz": "x"}
        case _:
            more = [(evil, b"1")]
    place = data.draw(st.integers(0, len(members)))
    with folder() as raw:
        (raw / "room/into").mkdir(parents=True)
        archive(raw / f"a.{kind}", [*members[:place], *more, *members[place:]])
        assert_refused(r"^a\.\w+ |^a\.\w+: |^x\.gz ", extract, raw / f"a.{kind}", wanted, raw / "room/into", limit=250)
        assert {path.name for path in raw.iterdir()} == {"room", f"a.{kind}"}
        assert [path.name for path in (raw / "room").iterdir()] == ["into"]


@EXAMPLES
@given(st.sampled_from([*ARCHIVES]), st.data())
def test_a_damaged_archive_gives_our_error_or_the_right_content(kind, data):
    text = b"some text to pack " * 50
    with folder() as raw:
        (raw / "into").mkdir()
        path = archive(raw / f"a.{kind}", [("t/a", text)])
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        flipped = bytes([content[place] ^ data.draw(st.integers(1, 255))])
        content[place:] = data.draw(st.sampled_from([b"", flipped + content[place + 1 :]]))
        path.write_bytes(content)
        unpack = partial(extract, path, {"t/a": "a"}, raw / "into", limit=10_000)
        for read in (unpack, lambda: Photos([path]).read("t/a")):
            try:
                found = read() or (raw / "into/a").read_bytes()
            except ReplicationError:
                continue
            # A plain tar has no checksum over contents; the sha256 of the file is what finds this.
            assert kind == "tar" or found == text
            if kind not in ("zip", "tar"):
                break


TEXTS = ["A Dog , no 4.jpg \n runs .", "Two  dogs", 'One "big" dog.', "", "It's a semi-big dog", "A dog"]
JSON = {"captions": ["none", "dataset.json"], "words": r"\w+(?:-\w+)*|[^\w\s]", "at_most": 4}


def test_captions_are_words_in_lower_case_and_photos_are_missed_by_name(tmp_path):
    photo = encoded(np.zeros((8, 8, 3), np.uint8))
    archive(tmp_path / "a.tar", [(f"images/{name}", photo) for name in ("1", "2", "5")])
    archive(tmp_path / "b.zip", [("D/", b""), ("__MACOSX/._3", b"x"), ("D/3", photo), ("D/4", photo)])
    homes = {"1": "train", "2": "train", "3": "val", "4": "test", "5": "restval"}  # the paper leaves the last one out
    (tmp_path / "dataset.json").write_text(described((name, home, TEXTS) for name, home in homes.items()))
    corpus = read("photos", tmp_path, LANGUAGES, JSON)
    found = {split: [segment.texts[1] for segment in segments] for split, segments in corpus.items()}
    assert found == {"train": ["1", "2"], "valid": ["3"], "test": ["4"]}
    captions = ["a dog , no 4 . jpg runs .", "two dogs", 'one " big " dog .', "it ' s a semi-big dog"]
    assert json.loads(corpus["test"][0].texts[0]) == captions
    (folder := tmp_path / "files").mkdir()
    write_corpus(corpus, LANGUAGES, folder, compared=["photo"])
    assert PhotoSplit.load(folder, "valid").images([0]).shape == (1, SIDE, SIDE, 3)
    (folder / "a.tar").unlink()
    assert_refused(r"in no archive: 1, among them '2' of the split;", PhotoSplit.load(folder, "train").images, [1])
    archive(folder / "b.zip", [("3", photo[:40])])
    assert_refused(r"the photo 3 cannot be read .* fetch it anew", PhotoSplit.load(folder, "valid").images, [0])


def test_a_photo_of_the_right_size_is_not_touched():
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    assert (decode(encoded(pixels)) == pixels).all()
    assert (decode(encoded(pixels[..., 0])) == pixels[..., :1]).all()


@pytest.mark.parametrize("turned", [False, True])
def test_another_size_is_scaled_to_256_and_the_middle_cut_out(turned):
    """A picture that is as wide as 512 pixels and as high as 256, in which a pixel's column is its place."""
    columns = np.linspace(0, 255, 512).astype(np.uint8)
    pixels = np.broadcast_to(columns[None, :, None], (256, 512, 3)).copy()
    pixels = pixels.transpose(1, 0, 2) if turned else pixels
    large = Image.fromarray(np.ascontiguousarray(pixels)).resize((512, 1024) if turned else (1024, 512))
    image = decode(encoded(np.asarray(large))).astype(int)
    image = image.transpose(1, 0, 2) if turned else image
    assert image.shape == (SIDE, SIDE, 3)
    assert np.abs(image - columns[144 : 144 + SIDE].astype(int)[None, :, None]).max() <= 1


@pytest.mark.parametrize(("members", "listed", "said"), [
    (["x/1.png", "y/1.png"], ["1.png"] * 3, r"several photos are called .1\.png. of .*; write the folder before"),
    (["x/1.png"], ["1.png", "1.png", "x/1.png"], r"the photo 1\.png stands there twice"),
    (["x/1.png"], ["1.png", "e\u0301.png", "\u00e9.png"], "in no archive: 2"),
])  # fmt: skip
def test_a_photo_is_asked_for_once_and_with_the_folder_that_tells_it_from_others(tmp_path, members, listed, said):
    archive(tmp_path / "a.zip", [(name, encoded(np.zeros((4, 4), np.uint8))) for name in members])
    homes = ("train", "train" if "twice" in said else "val", "test")
    (tmp_path / "d.json").write_text(described(zip(listed, homes, ["a"] * 3, strict=True)))
    assert_refused(said, read, "photos", tmp_path, ("captions", "photo"), {"captions": ["d.json"]})


@pytest.fixture
def into(tmp_path):
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


def test_a_member_larger_than_declared_is_refused(tmp_path, into):
    path = archive(tmp_path / "a.zip", [("a", bytes(5000))])
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    path.write_bytes(content)
    assert_refused("damaged|has more than", extract, path, {"a": "a"}, into, limit=10_000)


def hungry(*_):
    raise MemoryError


@pytest.mark.parametrize(("change", "wanted", "said"), [
    ((archives, "_MOST_FILES", 1), {"t/": "t/"}, "holds more than 1 files"),
    ((tarfile.TarFile, "next", hungry), {"t/a": "a"}, "is damaged or cannot be unpacked"),  # a head of gigabytes
    ((archives, "_MOST_FILES", 9), {"t/": ""}, "would leave the folder"),
])  # fmt: skip
def test_a_tar_that_asks_for_too_much_is_refused(tmp_path, into, monkeypatch, change, wanted, said):
    monkeypatch.setattr(*change)
    path = archive(tmp_path / "a.tar", [("t/a", b""), (f"t/{tmp_path}/escaped", b"1")])
    assert_refused(said, extract, path, wanted, into, limit=10)
    assert not (tmp_path / "escaped").exists()


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs Debian's dpkg-deb")
def test_a_real_deb_is_read_without_installing_it_and_a_bomb_is_refused(tmp_path, into, monkeypatch):
    (tmp_path / "pkg/DEBIAN").mkdir(parents=True)
    (tmp_path / "pkg/usr/share").mkdir(parents=True)
    (tmp_path / "pkg/usr/share/text").write_text("hello")
    control = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: tiny\n"
    (tmp_path / "pkg/DEBIAN/control").write_text(control)
    deb = tmp_path / "tiny_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "pkg", deb], check=True, capture_output=True)
    extract(deb, {"usr/share/text": "text"}, into, limit=100)
    assert (into / "text").read_text() == "hello"
    monkeypatch.setattr(archives, "_DEB_RATIO", 1)
    monkeypatch.setattr(archives, "_DEB_SPARE", 0)
    assert_refused("has more than", extract, deb, {"usr/share/text": "text"}, into, limit=100)
    deb.write_bytes(deb.read_bytes()[:100])
    assert_refused("is damaged", extract, deb, {"usr/share/text": "text"}, into, limit=100)
