"""What opens other people's files: whatever is odd but legal is read to the byte, whatever is broken is said where."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.data.opening import byte_range, json_lines, listed, read_json, read_table, read_text, text_lines
from tests.data.odd import EXAMPLES, HIDDEN, LINE, NAME, folder, packed, texts
from tests.refused import assert_refused, outcome, sentence_of

SUFFIX = st.sampled_from(["", "", "", ".xz"])
NO_TEXT = [b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xc0\xaf", b"\xf5\x80\x80\x80", b"\x80"]


@EXAMPLES
@given(texts(), SUFFIX)
@example((b"", []), "")
def test_lines_end_as_they_do_on_any_machine_and_nowhere_else(file, suffix):
    content, lines = file
    with folder() as raw:
        path = raw / f"a{suffix}"
        path.write_bytes(packed(content, path))
        assert list(text_lines(path)) == lines
        assert read_text(path) == "\n".join(lines) + "\n" * (bool(lines) and content.endswith((b"\n", b"\r")))


@EXAMPLES
@given(texts(), st.sampled_from(NO_TEXT), st.data())
def test_a_byte_that_is_no_text_is_said_with_its_line(file, wrong, data):
    content, _ = file
    end = b"\n" if b"\n" in content else b"\r"
    parts = content.split(end)
    place = data.draw(st.integers(0, len(parts) - 1))
    parts[place] += wrong
    with folder() as raw:
        (raw / "a").write_bytes(end.join(parts))
        assert_refused(f"^a is not UTF-8 text: line {place + 1} has the byte 0x", list, text_lines(raw / "a"))


@EXAMPLES
@given(
    st.lists(st.text("aé я😀 ", min_size=1), min_size=2, max_size=4),
    st.sampled_from(["-16", "-16-le", "-16-be", "-32", "-32-le", "-32-be"]),
)
def test_a_text_of_another_width_is_refused(lines, width):
    with folder() as raw:
        (raw / "a").write_bytes("\n".join(lines).encode(f"utf{width}"))
        assert "save it as UTF-8" in sentence_of(list, text_lines(raw / "a"))


@EXAMPLES
@given(texts(), st.data())
def test_a_damaged_packed_text_is_refused(file, data):
    content, lines = file
    with folder() as raw:
        path = raw / "a.xz"
        cut = data.draw(st.integers(0, len(content)))
        first, second = packed(content[:cut], path), packed(content[cut:], path)
        path.write_bytes(first + bytes(4 * data.draw(st.integers(0, 2))) + second)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shared.data.opening._CHUNK", data.draw(st.integers(1, 9)))
            assert list(text_lines(path)) == lines
        whole = bytearray(first + second)
        place = data.draw(st.integers(0, len(whole) - 1).filter(lambda place: place != len(first)))
        whole[place:] = data.draw(st.just(b"") | st.just(bytes([whole[place] ^ 1]) + whole[place + 1 :]))
        path.write_bytes(whole)
        found, said = outcome(list, text_lines(path))
        # Where a letter is damaged, its byte may be no text before the sum of the whole is reached.
        assert said.startswith(("a.xz cannot be read", "a.xz is not UTF-8 text")) if said else found == lines


VALUES = st.recursive(
    LINE | st.integers() | st.integers(10**50, 10**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([None, True, False]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LINE, inner, max_size=3), max_leaves=6,
)  # fmt: skip
WRONG = st.sampled_from([
    "NaN", "[Infinity]", '{"a": -Infinity}', '{"a": 1, "a": 2}', r'{"a": [{"é": 1, "\u00e9": 2}]}', r'"\ud83d"', '["a"',
    r'["\udc00"]', r'{"\ud800\u0041": 1}', r'"\ud83d\ud83d\ude00"', "9" * 5_000, "[" * 100_000, "[1,]", "{'a': 1}",
    "1 2", "", " ", '"a\tb"', "[1] // one", "nul", '{"a"}', '"\\x41"', "1e999", "-1e400", "\ufeff\u00a0", "+1", "01",
    ".5", "a: 1",
])  # fmt: skip


def spelled(value, draw):
    """JSON of a value, in one of many ways."""
    ascii_only, separators = draw(st.booleans()), draw(st.sampled_from([(",", ":"), (" , ", "\t: ")]))
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    return draw(st.sampled_from(["", " ", "\t"])) + text.replace("\x7f", r"\u007F") + draw(st.sampled_from(["", "  "]))


@EXAMPLES
@given(VALUES, st.data())
def test_json_says_its_value_however_it_is_spelled(value, data):
    text = spelled(value, data.draw)
    if data.draw(st.booleans()):
        text = json.dumps(value, indent=1)
    end, mark = data.draw(st.sampled_from(["\n", "\r\n", "\r"])), data.draw(st.sampled_from(["", "\ufeff"]))
    with folder() as raw:
        (raw / "a.json").write_bytes((mark + text.replace("\n", end) + end).encode())
        assert read_json(raw / "a.json") == value


@EXAMPLES
@given(st.lists(VALUES, max_size=4), SUFFIX, st.data())
def test_each_line_of_json_is_a_value(values, suffix, data):
    content, _ = data.draw(texts([spelled(value, data.draw) for value in values]))
    with folder() as raw:
        path = raw / f"a.jsonl{suffix}"
        path.write_bytes(packed(content, path))
        assert list(json_lines(path)) == [(f"{path.name}, line {n}", value) for n, value in enumerate(values, 1)]


@EXAMPLES
@given(st.lists(VALUES, max_size=3), WRONG, st.lists(VALUES, max_size=2), st.data())
def test_what_is_no_json_is_said_with_its_line(before, wrong, after, data):
    content, _ = data.draw(texts([*map(json.dumps, before), wrong, *map(json.dumps, after), "1"]))
    with folder() as raw:
        (raw / "a").write_bytes(content)
        assert re.match(rf"a, line {len(before) + 1}\b", sentence_of(list, json_lines(raw / "a")))
        (raw / "a").write_text(wrong, encoding="utf-8", newline="")
        assert re.match(r"a\b", sentence_of(read_json, raw / "a"))


FIELDS = LINE.map(lambda text: text.replace("\r", "").replace("\t", " "))
FIELD = st.lists(FIELDS, min_size=1, max_size=2).map("\n".join)
HEADS = st.lists(LINE.map(lambda text: text.replace("\r", "").replace("\t", "")), min_size=2, max_size=4, unique=True)


def quoted(field, delimiter, draw):
    """A field of CSV, in quotes where it must be or may be."""
    needed = any(mark in field for mark in (delimiter, '"', "\n"))
    return '"{}"'.format(field.replace('"', '""')) if needed or draw(st.booleans()) else field


@st.composite
def tables(draw):
    """The bytes of a table, its delimiter, its head, and each row with the line in which it begins."""
    delimiter = draw(st.sampled_from(",\t"))
    quotes = delimiter == ","
    head = draw(HEADS)
    field = FIELD if quotes else FIELD.map(lambda text: text.replace("\n", " "))
    row = st.lists(field, min_size=len(head), max_size=len(head))
    rows = draw(st.lists(row.filter(lambda row: head not in (row, [each.strip() for each in row])), max_size=4))
    lines, found = [], []
    for row in [head, *rows]:
        lines += [""] * draw(st.sampled_from([0, 0, 0, 1, 2]))
        found.append((len(lines) + 1, row))
        text = delimiter.join(quoted(each, delimiter, draw) if quotes else each for each in row)
        lines += text.split("\n")
    lines += [""] * draw(st.integers(0, 2))
    content, _ = draw(texts(lines))
    return content, delimiter, head, found[1:], lines


@EXAMPLES
@given(tables())
def test_a_table_has_the_fields_that_are_in_it(table):
    content, delimiter, head, rows, _ = table
    with folder() as raw:
        (raw / "t").write_bytes(content)
        expected = [(f"t, line {line}", dict(zip(head, row, strict=True))) for line, row in rows]
        assert list(read_table(raw / "t", delimiter)) == expected


@EXAMPLES
@given(tables(), st.data())
def test_a_broken_row_is_said_with_its_line(table, data):
    _, delimiter, head, rows, lines = table
    place = data.draw(st.sampled_from([line for line, _ in rows] + [len(lines) + 1]))
    plain = [*"a" * len(head)]
    wrong = [plain[1:], [*plain, "a"], [*plain, ""]]
    if not any("\n" in field for field in head):
        wrong.append([quoted(field, delimiter, data.draw) for field in head] if delimiter == "," else head)
    if delimiter == ",":
        wrong += [['"a" a', *plain[1:]], [*plain[1:], '"a""" a'], ["a\ra", *plain[1:]]]
        wrong += [[*plain[1:], ' "a"'], ['\u00a0"a" a', *plain[1:]]]
    lines = [*lines[: place - 1], delimiter.join(data.draw(st.sampled_from(wrong))), *lines[place - 1 :]]
    with folder() as raw:
        (raw / "t").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        assert re.match(rf"t: .*\bline {place} ", sentence_of(list, read_table(raw / "t", delimiter)))
        if delimiter == ",":
            lines[place - 1] = delimiter.join([*plain[1:], '"a'])
            rest = [line for line in lines[place:] if '"' not in line]
            (raw / "t").write_text("\n".join([*lines[:place], *rest]), encoding="utf-8", newline="")
            assert re.match(rf"t: .*\bline {place} ", sentence_of(list, read_table(raw / "t", delimiter)))


@EXAMPLES
@given(st.lists(NAME, max_size=4, unique=True), st.lists(HIDDEN, max_size=3, unique=True), st.data())
def test_what_programs_leave_behind_is_no_data(names, hidden, data):
    with folder() as raw:
        for name in [*names, *hidden]:
            if data.draw(st.booleans()):
                (raw / name).touch()
            else:
                (raw / name).mkdir()
                (raw / name / data.draw(HIDDEN | NAME)).touch()
        assert listed(raw) == sorted(raw / name for name in names)
        inside = [path for name in names for path in (raw / name).glob("n*")]
        assert listed(raw, "*/*") == sorted(inside)


@EXAMPLES
@given(st.binary(max_size=40), st.integers(0, 50), st.none() | st.integers(1, 50), st.integers(1, 9))
def test_a_range_of_bytes_is_whole_or_refused(content, start, count, chunk):
    with folder() as raw, pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.data.opening._CHUNK", chunk)
        (raw / "a").write_bytes(content)
        if start + (count or 0) <= len(content):
            assert b"".join(byte_range(raw / "a", start, count)) == content[start:][:count]
        else:
            assert "shorter than the card says" in sentence_of(list, byte_range(raw / "a", start, count))
