"""Data of the user's own, from a file to a fetched data set with a card; and what a look at one shows."""

import io
import json
import os
import random
import re
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

from shared.config import load_yaml
from shared.data.cards import Card, Draw, load_card
from shared.data.fetch import Manifest, fetch, verify
from shared.data.look import describe
from shared.data.opening import picture_form
from shared.data.own import new_card
from shared.data.readers import read_card
from shared.data.splits import EMPTY, EQUAL, write_corpus
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from tests.data.odd import CARD, SPLITS
from tests.refused import assert_refused

PAIRS = [(f"{chr(97 + i % 26)} s{i} w", f"t{i} v") for i in range(200)]
PROTEINS = [("".join(random.Random(i).choices("ACDEFGHIKLMNPQRSTVWY", k=60)),) for i in range(200)]
LABELS = [("pos" if i % 3 else "neg", f"a film {i}") for i in range(200)]
SIDES, REVERSED = ("source", "target"), [row[::-1] for row in LABELS]


def table(rows, between="\t", head=()):
    return "".join(between.join(row) + "\n" for row in ([head] if head else []) + rows)


def records(names, rows):
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


def own(folder: Path, files: dict[str, str], **options):
    """Make a card of these files; returns the lines of its splits, by language."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    (folder / "data").mkdir()
    new_card("mine", [folder / name for name in files], root=folder / "data", **options)
    verify("mine", root=folder / "data")
    found: dict[str, list[str]] = {}
    for split in SPLITS:
        for path in (folder / "data/mine").glob(f"{split}.*"):
            found.setdefault(path.suffix[1:], []).extend(path.read_text(encoding="utf-8").splitlines())
    return found


@pytest.mark.parametrize(("files", "options", "languages", "rows"), [
    ({"p.tsv": table([(*pair, "x y") for pair in PAIRS])}, {"columns": [*SIDES, "from"]}, SIDES, PAIRS),
    ({"p.csv": "\ufeff" + table(PAIRS, ",", ("de", "en"))}, {"columns": ["en", "de"]}, SIDES[::-1], PAIRS),
    ({"p.jsonl": records(("en", "de"), PAIRS)}, {"columns": ["en", "de"]}, SIDES, PAIRS),
    ({"l.tsv": table(LABELS)}, {}, ("label", "text"), LABELS),
    ({"l.csv": table(REVERSED, ",", ("said", "label"))}, {"columns": ["said", "label"]}, ("label", "text"), LABELS),
    ({"p.fa": "".join(f">one {i}\n{letters}\n" for i, (letters,) in enumerate(PROTEINS))}, {}, ("sequence",), PROTEINS),
    ({"l.jsonl": records(("said", "label"), REVERSED)}, {}, ("label", "text"), LABELS),
    ({"l": table(LABELS, " ")}, {"kind": "classification"}, ("label", "text"), LABELS),
    ({"book": table(PAIRS)}, {"kind": "language"}, ("text",), [("\t".join(pair),) for pair in PAIRS]),
    ({"book": "\ufeff" + " ".join(f"w{i}" for i in range(50))}, {}, ("text",), None),
    ({"book": " ".join(f"w{i}" for i in range(500)) + "\nlast\nlines\n"}, {}, ("text",), None),
    ({"book": " ".join(f"w{i}" for i in range(50)) + "\n"}, {}, ("text",), None),
])  # fmt: skip
def test_whatever_the_form_of_a_file_all_its_rows_are_in_the_splits(tmp_path, files, options, languages, rows):
    found = own(tmp_path, files, percent=(10, 20), **options)
    columns = [found[language] for language in languages]
    if rows is None:  # of one line
        assert " ".join(columns[0]).split() == next(iter(files.values())).lstrip("\ufeff").split()
        return
    assert sorted(zip(*columns, strict=True)) == sorted(rows)
    counts = [len((tmp_path / f"data/mine/{split}.{languages[0]}").read_text().splitlines())
              for split in SPLITS]  # fmt: skip
    assert counts == pytest.approx([140, 20, 40], abs=25)


def test_copies_stay_together_and_what_is_left_out_is_counted(tmp_path, capsys):
    pairs = [*PAIRS, *PAIRS[:50], ("nothing", ""), *((f"other {i}", PAIRS[i][1]) for i in range(60))]
    own(tmp_path, {"p.tsv": table(pairs)})
    manifest = fetch("mine", root=tmp_path / "data")
    said = capsys.readouterr().out
    assert manifest.left_out == {"train": {"a text is empty": 1}}
    assert sum(manifest.dropped.values()) > 0
    kept = sum(manifest.files[f"{split}.source"].lines for split in manifest.dropped)
    assert kept + sum(manifest.dropped.values()) == len(pairs) - 1
    assert "left out: 1 of train: a text is empty" in said
    assert EQUAL in said
    card = load_yaml(tmp_path / "data/mine.yaml")
    assert card["licence"].startswith("to be filled in")
    assert load_card("mine", tmp_path / "data").own


def test_another_seed_draws_other_splits_and_new_texts_move_no_old_one(tmp_path):
    splits = [[Draw(seed=seed).split(f"text {i}") for i in range(500)] for seed in (1, 1, 2)]
    assert splits[0] == splits[1] != splits[2]
    assert Draw(seed=1).split("!") in ("train", "valid", "test")


def test_pictures_of_a_folder_keep_their_names_and_copies_are_in_one_split(tmp_path, capsys):
    (tmp_path / "photos/sub").mkdir(parents=True)
    rows = []
    for i in range(60):
        name = f"sub/a {i}.png" if i % 2 else f"a\u00a0{i}.png"
        Image.fromarray(np.full((4, 5, 3), i // 2, np.uint8)).save(tmp_path / "photos" / name)
        rows += [(name, f"a thing {i}"), (name, "Another, thing!")] + [(name, f"a thing {i}")] * (i == 7)
    quoted = [(name, f'"{caption}"') for name, caption in rows]
    (tmp_path / "photos/table.csv").write_text(table(quoted, ",", ("file", "said")), encoding="utf-8")
    (tmp_path / "data").mkdir()
    columns = ["file", "said"]
    (tmp_path / "pictures.tar").write_bytes(b"another")
    files = [tmp_path / name for name in ("photos", "photos/table.csv", "pictures.tar")]
    new_card("mine", files, columns=columns, percent=(20, 20), root=tmp_path / "data")
    assert (tmp_path / "pictures.tar").read_bytes() == b"another"
    home = {}
    for split in SPLITS:
        names, captions = ((tmp_path / f"data/mine/{split}.{each}").read_text("utf-8").split("\n")[:-1]
                           for each in ("photo", "captions"))  # fmt: skip
        home |= dict.fromkeys(names, split)
        for name, caption in zip(names, captions, strict=True):
            number = name.removesuffix(".png").replace("\u00a0", " ").split()[1]
            assert json.loads(caption)[:2] == [f"a thing {number}", "another, thing!"]
    assert len(home) == 60
    assert all(home[f"a\u00a0{i}.png"] == home[f"sub/a {i + 1}.png"] for i in range(0, 60, 2))
    assert "pictures.tar: 60 files, 30 copies; RGB 5 x 4 (60)" in (said := capsys.readouterr().out)
    assert ".captions: 1 lines have a caption twice" in said
    with ZipFile(tmp_path / "data/mine/broken.zip", "w") as file:
        file.writestr("a.png", "pixels")
    packed = (tmp_path / "data/mine/broken.zip").read_bytes()
    (tmp_path / "data/mine/broken.zip").write_bytes(packed.replace(b"pixels", b"pixelz"))
    assert_refused(r"^broken\.zip: 'a\.png' cannot be read .*CRC", list, describe("mine", tmp_path / "data"))


def test_families_of_any_fasta_stay_together(tmp_path, capsys):
    generator = np.random.default_rng(0)
    kinds = ["".join(generator.choice([*"ACDEFGHIKLMNPQRSTVWY"], 60)) for _ in range(60)]
    entries = [f">x{i}{j} of {i}\n{sequence[:30]}\n{sequence[30:]}{'A' * j}\n" for i, sequence in enumerate(kinds)
               for j in range(3)]  # fmt: skip
    found = own(tmp_path, {"p.fa": "".join(entries).replace(">x11 ", ">x10 ") + entries[0].replace(">x00", ">copy")})
    assert ": 1 sequences have an identifier that stands before\n" in capsys.readouterr().out
    assert len(found["sequence"]) == 180
    homes = [{line[:60] for line in (tmp_path / f"data/mine/{split}.sequence").read_text().splitlines()}
             for split in SPLITS]  # fmt: skip
    assert sum(map(len, homes)) == 60
    assert fetch("mine", root=tmp_path / "data").left_out == {"train": {"an equal sequence stands before it": 1}}


@pytest.mark.parametrize(("files", "options", "sentence"), [
    ({"p.tsv": "hello\thallo\n"}, {}, "p.tsv: line 1 may be the names of columns .*--columns source target"),
    ({"p.tsv": "a b\tc d\te f\n"}, {}, "p.tsv: line 1, parted by .*--columns source target other1'"),
    ({"p.csv": "a, b;c d\n" * 9}, {}, "p.csv: every line has ';', so that this may part the columns; part them by"),
    ({"p.csv": "a,b\n1,2\n"}, {"columns": ["a", "c"], "kind": "translation"}, "split '.*' came out empty|line"),
    ({"p.csv": 'a b,"c\n'}, {}, "p.csv: what begins in line 1 is no row"),
    ({"a.x": "a\nb\n", "b.x": "c\n"}, {}, "a.x and b.x do not have equally many segments"),
    ({"a.x": "a\n"}, {"kind": "captioning"}, "not files for captioning"),
    ({"a.x": "a\n"}, {"kind": "captions"}, "no kind of task 'captions'"),
    ({"a.x": "abc"}, {}, "^a.x: the text is too short to be cut, .*'--percent'"),
    ({"p.tsv": table(PAIRS[:3])}, {}, "mine.yaml, of p.tsv: the split 'valid' came out empty .nothing is"),
    ({"p.tsv": table([(one, "") for one, _ in PAIRS])}, {}, "came out empty .200 of train: a text is empty."),
    ({"p.tsv": '"de"\t"en"\n'}, {}, "line 1 may be the names"),
    ({"p.csv": "sou\u200brce,target\n"}, {}, "line 1 may be the names"),
    ({"p.csv": "My label,Text\n" + "".join(f"a,b {n}\nc,d {n}\n" for n in range(9))}, {}, "line 1 may be the names"),
    ({"p.csv": "de,en\na b,c d\n"}, {"columns": ["dee", "en"]}, "line 1 may be the names"),
    ({"l.tsv": table(REVERSED)}, {}, "l.tsv: the second of the two columns .* has 2 values"),
    ({"p.jsonl": '{"id": "1", "de": "a", "en": "b"}'}, {}, "p.jsonl: line 1 has the fields id, de, en; say"),
    ({"p.jsonl": '{"translation": {"de": "a", "en": "b"}}\n'}, {}, "p.jsonl has no column 'target'; there are trans"),
    ({"l.txt": "__label__a b\n"}, {}, "l.txt: it begins like .* fastText"),
    ({"l": "__label__a __label__b c\n"}, {"kind": "classification"}, "l, line 1 does not begin with one label"),
    ({"a.x": "a\n"}, {"percent": (0, 5)}, "data new: 'valid_percent'"),
    ({"a.x": "a\n", "none": ""}, {}, "."),
    ({"p.tsv": "\n"}, {}, "p.tsv has no row"),
    ({"p.csv": "sep=,\nsource,target\na,b\n"}, {}, "p.csv: line 2 has the names of the columns"),
    ({"p.txt": table(PAIRS)}, {}, "p.txt: it begins like a table"),
    ({"c.conllu": "# sent_id = 1\n1\ta\ta\tDET\n"}, {}, "c.conllu: it begins like a table"),
    ({"h.txt": "<HTML lang='en'>\n"}, {}, "h.txt: it begins like .* HTML"),
    ({"a.tar": "a.txt\0\0\0\0ustar\n"}, {"kind": "language"}, "a.tar is not UTF-8 text: .*unpack it first"),
    ({"p.csv": table(PAIRS, ",", ("a", "a"))}, {"columns": ["a", "a"]}, "is a . a; give each column a name"),
    ({"p.csv": "a\rb,c\n"}, {"columns": SIDES}, r"line 1 is no row \(new-line character seen in unquoted field\); co"),
    ({"p.csv": "image,caption\n", "p.zip": "PK"}, {}, "not files for translation; give"),
    ({"p": "\n>x\nMA\n" * 99}, {}, "p: it begins like .* FASTA"),
    ({"a.json": "[1]\n" * 99, "b.json": "[1]\n" * 99}, {}, "a.json: it begins like .* JSON"),
    ({"b": "a line\n" * 20 + "\0" * 9}, {}, "b is not UTF-8 text: line 21 has the byte 0x00"),
    ({"p.csv": "Text,Kind\na b,c\n"}, {"columns": ["kind", "text"], "kind": "classification"}, "may be the names of"),
    ({"p.tsv": "a\tb\r" * 99 + "\n"}, {}, r"may be .* data \(.{100}…\); say"),
])  # fmt: skip
def test_what_cannot_be_read_leaves_no_card(tmp_path, files, options, sentence):
    assert_refused(sentence, own, tmp_path, files, **options)
    assert [path.name for path in (tmp_path / "data").iterdir()] in ([], [".locks"])


@pytest.mark.parametrize(("files", "sentence"), [
    ({"l.tsv": table(LABELS[:12])}, "read as classification by the reader 'labelled', line 1 as data; if"),
    ({"l.jsonl": records(("kind", "said"), LABELS)}, "read as cl.*, label from 'kind', text from 'said'; if"),
    ({"p.jsonl": records(("de", "en"), PAIRS)}, "read as translation .*, source from 'de', target from 'en';"),
    ({"p.tsv": table([(f'"{one}"', other) for one, other in PAIRS[:20]])}, "source: [0-9]+ lines stand in quot"),
    ({"p.tsv": table([("# of", "a tool"), *PAIRS[:20]])}, "source: 1 lines begin with '#'"),
    ({"l.tsv": table([*LABELS, ("0", "1"), ("1", "1")])}, "read as classification"),
    ({"l.tsv": table([*LABELS, ("po\u200bs", "x")])}, r"po\\u200bs \(1\)"),
    ({"p.tsv": table([*PAIRS, ("ski", "ski"), ("a", "a")])}, "^train: [12] pairs have one text on"),
    ({"p.tsv": table([*PAIRS, ("\x96 \x1b[31m", "x")])}, r"U\+0096 \(– in Windows-1252\) \(1\)"),
    ({"1e3": "a line of a book\n" * 20}, "^1e3: UTF-8"),
    ({"a\x1b[2J": "a line of a book\n" * 20}, r"^a\\x1b\[2J: UTF-8"),
    ({"p.jsonl": records(("\x1b[2J", "en"), PAIRS)}, r"source from '\\x1b\[2J', "),
    ({"p.tsv": table(PAIRS).replace("s5 ", "s5\r")}, "^p.tsv: 1 lines have a carriage return inside, first line 6; it"),
    ({"book": "a line of a book\n" * 20 + "w" * 99}, r"train lacks: w{60} \(1\)$"),
    ({"p.tsv": table(PAIRS * 3)}, "read as translation"),
    ({"l.jsonl": records(("label", "text"), [(i % 2 if i % 3 else i % 2 * 1.0 or -0.0, f"it {i}") for i in range(99)])},
     r"label: [0-9]+ labels, [01] .[0-9]+., [01] .[0-9]+.$"),
])  # fmt: skip
def test_what_is_guessed_or_looks_like_a_mistake_is_said(tmp_path, capsys, files, sentence):
    own(tmp_path, files, percent=(30, 30))
    assert re.search(sentence, said := capsys.readouterr().out, re.MULTILINE), said


def test_a_changed_file_and_a_second_card_are_refused(tmp_path):
    own(tmp_path, {"p.tsv": table(PAIRS)})
    (tmp_path / "caf\u00e9").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "films").mkdir()
    (tmp_path / "films/link").symlink_to(tmp_path / "data")
    (tmp_path / "texts/good").mkdir(parents=True)
    (tmp_path / "texts/good/\udcff.txt").touch()
    (tmp_path / "nested/good/a.txt").mkdir(parents=True)
    for name, file, said in (
        ("mine", "p.tsv", r"mine\.yaml cannot be made"),
        ("", "p.tsv", "^'' cannot name a data set; use"),
        ("n" * 101, "p.tsv", "^'n{101}' cannot name a data set; use up to 100 of a-z"),
        ("other", "none.tsv", r"none\.tsv is no file or folder"),
        ("other", "p" * 300, r"p{300} is no file or folder, or"),
        ("other", "cafe\u0301", r"\(there is 'caf\\xe9', which is not 'cafe\\u0301'\)"),
        ("other", "pipe", r"pipe is no file or folder"),
        ("other", "nested", "nested has no file <label>/<name>.txt"),
        ("other", "texts", r"texts/good/\\udcff\.txt' is not UTF-8; give"),
        ("other", "films", r"films/link is a link to a folder or to nothing; put files"),
    ):
        assert_refused(said, new_card, name, [tmp_path / file], kind="classification", root=tmp_path / "data")
    (tmp_path / "p.tsv").write_text(table(PAIRS[1:]))
    (tmp_path / "data/mine/manifest.json").unlink()
    with pytest.raises(ReplicationError, match=r"not those of its card:\n.*the sha256 of p\.tsv is"):
        fetch("mine", root=tmp_path / "data")


def test_there_is_no_card_before_its_data_which_a_tilde_does_not_look_for_at_home(tmp_path, monkeypatch):
    cards = []
    monkeypatch.setattr(
        "shared.data.own.fetch", lambda card, root: cards.append([*root.glob("*.yaml")]) or fetch(card, root=root)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    assert own(tmp_path, {"~/p.tsv": table(PAIRS)})
    assert cards == [[]]


def test_a_file_that_changes_while_it_is_read_leaves_no_card(tmp_path, monkeypatch):
    def change(*arguments, **options):
        return (tmp_path / "p.tsv").write_text(table(PAIRS[:99])) and write_corpus(*arguments, **options)

    monkeypatch.setattr("shared.data.fetch.write_corpus", change)
    assert_refused(r"^p\.tsv has changed while it was read; try", own, tmp_path, {"p.tsv": table(PAIRS)})
    assert [path.name for path in (tmp_path / "data").iterdir()] == [".locks"]


def test_who_interrupts_the_last_look_is_told_that_the_card_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("p.tsv").write_text(table(PAIRS))
    monkeypatch.setattr("shared.data.look._encodings", lambda _: os.kill(os.getpid(), 2))  # as Ctrl-C does
    assert main(["data", "new", "n" * 100, "--from", "p.tsv"]) == 130
    assert f"interrupted; data/{'n' * 100}.yaml and its data are there; 'check" in capsys.readouterr().err
    assert verify("n" * 100)


def test_a_look_shows_what_is_odd(tmp_path):
    pairs = [*PAIRS, ("zero\u200bwidth \ufffd", "x y"), (" ".join(["long"] * 70), "z y")]
    own(tmp_path, {"p.tsv": "\ufeff" + table(pairs).replace("\n", "\r\n")})
    said = "\n".join(describe("mine", tmp_path / "data"))
    for part in ("p.tsv: UTF-8, byte order mark; line ends CR LF\n", "U+200B ZERO WIDTH SPACE (1)",
                 "U+FFFD REPLACEMENT CHARACTER (1)", "70 at most", "words that train lacks"):  # fmt: skip
        assert part in said, part


def test_empty_lines_of_a_test_set_stay_and_are_counted_in_the_manifest_alone_where_there_are_any(tmp_path):
    (tmp_path / "data").mkdir()
    for split in SPLITS:
        (tmp_path / f"{split}.s").write_text(f"{split} a\n{split} b\n" + "\n" * (split == "test"))
        (tmp_path / f"{split}.t").write_text(f"{split} c\n{split} d\n" + "x\n" * (split == "test"))
    card = CARD | {
        "id": "mine", "languages": {"source": "x", "target": "x"},
        "sources": [{"kind": "folder", "folder": str(tmp_path)}],
        "raw": {f"{split}.{end}": {"sha256": None, "unverified": "x"} for split in SPLITS for end in "st"},
        "reader": {"name": "parallel", "options": {"parts": {
            split: [{"source": f"{split}.s", "target": f"{split}.t"}] for split in SPLITS}}},
    }  # fmt: skip
    (tmp_path / "data/mine.yaml").write_text(json.dumps(card))
    manifest = fetch("mine", root=tmp_path / "data")
    assert (tmp_path / "data/mine/test.source").read_text() == "test a\ntest b\n\n"
    assert manifest.left_out == {"test": {EMPTY: 1}}
    assert list(manifest.reasons()) == [f"1 of test: {EMPTY}"]
    assert "left_out" not in Manifest.model_validate(manifest.model_dump() | {"left_out": {}}).model_dump(mode="json")
    text = {"reader": {"name": "files"}, "draw": {}, "languages": {}, "splits": {}}
    without = Card.model_validate(card | text)
    assert_refused("has no texts to draw", read_card, without, tmp_path)


def test_the_form_of_a_picture_is_told_or_refused_as_its_pixels_are():
    content = io.BytesIO()
    Image.new("LA", (5, 4)).save(content, "png")
    assert picture_form(content.getvalue()) == "LA 5 x 4"
    for broken in (b"", b"no picture", content.getvalue()[:20]):
        with pytest.raises(ValueError, match=r"\w+: "):
            picture_form(broken)
