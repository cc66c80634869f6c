"""``data new`` on odd but legal files, of which nothing is lost or changed unsaid, and on broken ones."""

import contextlib
import io
import json
import lzma
import re
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz_opening import quoted
from test_fuzz_readers import CAPTION, FIELD, FLAT, GREYS, LABEL, RESIDUES, TITLE, whole

from shared.data.fetch import Manifest, verify
from shared.data.opening import read_lines
from shared.data.splits import tidy
from shared.pipeline.__main__ import main
from tests.data.odd import EXAMPLES, HIDDEN, NAME, SPLITS, encoded, folder

NAMED = NAME.filter(lambda name: "\\" not in name)
"""Of a file on a card."""


def run(room, *arguments):
    """The exit code of the command in a folder, and the sentence that it ends with, if that is an error."""
    (room / "data").mkdir(exist_ok=True)
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(room), contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = main(["data", "new", "mine", "--percent", "30", "30", "--from", *arguments])
    return code, errors.getvalue() if code else said.getvalue()


def columns_of(room, *languages):
    """The rows of all splits, and how many are left out, which are counted in the manifest."""
    manifest = Manifest.model_validate_json((room / "data/mine/manifest.json").read_text("utf-8"))
    assert verify("mine", root=room / "data") == manifest
    read = [[line for split in SPLITS for line in read_lines(room / f"data/mine/{split}.{name}")] for name in languages]
    left_out = sum(sum(reasons.values()) for reasons in manifest.left_out.values())
    return Counter(zip(*read, strict=True)), left_out + sum(manifest.dropped.values())


def records(draw, form, names, rows):
    """The bytes of a file of rows, and what else the command has to be told."""
    if form == "jsonl":
        ascii_only = draw(st.booleans())
        lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=ascii_only) for row in rows]
    else:
        head = draw(st.booleans())
        rows = [names] * head + rows
        comma = form == "csv"
        lines = [",".join(quoted(each, ",", draw) for each in row) if comma else "\t".join(row) for row in rows]
        return whole(draw, lines), [] if head else ["--columns", *names]
    return whole(draw, lines), []


FORMS = st.sampled_from(["tsv", "csv", "jsonl"])
FILLED = [(f"s{i} fills", f"t{i} fills") for i in range(20)]
LABELLED = [(f"l{i % 3}", f"text {i}") for i in range(20)]


@pytest.mark.parametrize(("columns", "first", "filled"), [
    (("source", "target"), FIELD, FILLED), (("label", "text"), LABEL | st.just(" "), LABELLED),
])  # fmt: skip
@EXAMPLES
@given(FORMS | st.just("two"), NAMED, st.data())
def test_no_row_is_lost_or_changed(columns, first, filled, form, name, data):
    rows = data.draw(st.permutations([*filled, *data.draw(st.lists(st.tuples(first, FIELD), max_size=5))]))
    labelled = columns[0] == "label"
    with folder() as room:
        if form == "two" and not labelled:
            files, more = [f"{name}.a", f"{name}.b"], ["--kind", "translation"]
            for file, column in zip(files, zip(*rows, strict=True), strict=True):
                (room / file).write_bytes(whole(data.draw, [*column]))
        else:
            form = "tsv" if form == "two" else form
            files = [f"{name}.{data.draw(st.sampled_from([form, form.upper()]))}"]
            content, more = records(data.draw, form, columns, rows)
            (room / files[0]).write_bytes(content)
        code, said = run(room, *files, *more, *(["--kind", "classification"] if labelled else []))
        assert code == 0, said
        found, left_out = columns_of(room, *columns)
        if labelled:
            rows = [(label, re.sub(r"(?i)<br\s*/?>", " ", text)) for label, text in rows]
        expected = Counter((tidy(one), tidy(other)) for one, other in rows if one.strip() and other.strip())
        assert found <= expected
        assert found.total() + left_out == len(rows)


@EXAMPLES
@given(st.lists(st.lists(FLAT, max_size=5), min_size=1, max_size=3), st.data())
def test_running_text_is_cut_and_nothing_else(files, data):
    files[0] += [f"line {i} of words" for i in range(20)]
    with folder() as room:
        form = data.draw(st.sampled_from(["{} ²", "{}e3", "{}:1", "0x{}"]))
        names = [form.format(number) for number in range(len(files))]
        for name, lines in zip(names, files, strict=True):
            (room / name).write_bytes(whole(data.draw, lines))
        code, said = run(room, *names, "--kind", "language")
        assert code == 0, said
        text = "".join((room / f"data/mine/{split}.text").read_bytes().decode() for split in SPLITS)
        expected = [unicodedata.normalize("NFC", line) for lines in files for line in lines]
        assert text.removesuffix("\n").split("\n") == expected or text.split("\n") == expected


FAMILIES = ["".join(np.random.default_rng(number).choice([*"ACDEFGHIKLMNPQRSTVWY"], 60)) for number in range(20)]


@EXAMPLES
@given(st.lists(st.tuples(RESIDUES, TITLE), max_size=4), st.sampled_from(["fa", "FASTA", "fa.xz"]), st.data())
def test_no_protein_is_lost_or_changed(entries, form, data):
    entries = [*((letters, f"of {number}") for number, letters in enumerate(FAMILIES)), *entries]
    lines = [line for number, (letters, title) in enumerate(entries) for line in (f">gi:{number} {title}", letters)]
    with folder() as room:
        content = whole(data.draw, lines)
        (room / f"a.{form}").write_bytes(lzma.compress(content) if form.endswith("xz") else content)
        code, said = run(room, f"a.{form}")
        assert code == 0, said
        found, left_out = columns_of(room, "sequence", "name")
        once = {letters: tidy(title) for letters, title in reversed(entries)}
        assert found == Counter(once.items())
        assert left_out == len(entries) - len(once)


@EXAMPLES
@given(st.dictionaries(NAME, st.lists(CAPTION | st.just(" "), max_size=7), max_size=3), FORMS, HIDDEN, st.data())
def test_no_picture_of_a_folder_and_no_caption_is_lost_or_changed(photos, form, hidden, data):
    if form == "tsv":  # which has no sign for a tab in a field
        photos = {name: [text.replace("\t", " ") for text in texts] for name, texts in photos.items()}
    photos |= {f"p{number}.png": [f"picture {number}"] for number in range(20)}
    greys = [*GREYS, *(encoded(np.full((2, number + 1), 9, np.uint8)) for number in range(30))]
    with folder() as room:
        (room / "a b/é").mkdir(parents=True)
        (room / "a b" / hidden).touch()
        place = data.draw(st.sampled_from(["", "é/"]))
        for number, name in enumerate(photos):
            (room / "a b" / (place + name)).write_bytes(greys[number])
        described = {name: texts for name, texts in photos.items() if not texts or any(map(str.strip, texts))}
        rows = [(place + name, text) for name, texts in described.items() for text in texts]
        content, more = records(data.draw, form, ("image", "caption"), data.draw(st.permutations(rows)))
        (room / f"t.{form}").write_bytes(content)
        code, said = run(room, "a b", f"t.{form}", *more)
        assert code == 0, said
        found, left_out = columns_of(room, "photo", "captions")
        kept = {name: len(json.loads(texts)) for name, texts in found}
        said_of = {place + name: sum(map(bool, map(str.strip, texts))) for name, texts in described.items() if texts}
        assert kept == {name: min(5, count) for name, count in said_of.items()}
        assert left_out == len(rows) - sum(kept.values()) + len(photos) - len(kept)


ODD_ROWS = {
    "tsv": ["lonely", "a\tb\tc", "source\ttarget"],
    "csv": ["lonely", 'a, "b"', '"a,b', "a,b,c", '"a"b,c', "source,target"],
    "jsonl": ["{", "[]", '{"source": "a"}', '{"source": "a", "target": 1}', "", "1", '"a"', '{"source": "\\ud83d"}',
              '{"source": "a", "source": "b", "target": "c"}'],
    "fa": ["M-", "1", "\u212aM"],
}  # fmt: skip


@EXAMPLES
@given(st.sampled_from([*ODD_ROWS]), st.integers(2, 19), st.data())
def test_a_broken_file_is_said_with_its_line_and_leaves_nothing(form, place, data):
    name, more = f"é a.{form}", []
    if form == "fa":
        lines = [line for number, letters in enumerate(FAMILIES) for line in (f">{number} x", letters)]
    else:
        content, more = records(data.draw, form, ("source", "target"), FILLED)
        lines = re.split(r"[\r\n]+", content.decode().strip("\ufeff\r\n"))
    lines.insert(place, data.draw(st.sampled_from(ODD_ROWS[form]) | st.just("\udcff")))
    if '"a,b' in lines:  # a quotation mark that none follows
        lines = lines[: place + 1]
    with folder() as room:
        (room / name).write_text("".join(f"{line}\n" for line in lines), "utf-8", errors="surrogateescape")
        code, said = run(room, name, *more)
        assert code == 2
        assert re.match(rf"error: {name}\b.*\bline {place + 1}\b.*\.$", said.splitlines()[-1]), said
        assert [path.name for path in (room / "data").iterdir()] in ([], [".locks"])
