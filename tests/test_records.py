"""What is wrong with a record is said in one sentence, with what makes it anew."""

import pytest

from shared.records import read_if_whole, read_json, read_record
from tests.refused import assert_refused

PARTS = {"seed": int, "files": dict | None}
MERGED = '<<<<<<< HEAD\n{"seed": 1}\n=======\n{"seed": 2}\n>>>>>>> theirs\n'
WRONG = [
    (None, "does not exist"),
    ("", r"is damaged \(Expecting value.*\)"),
    (MERGED, r"is damaged \(Expecting value.*\)"),
    ("[" * 100_000, r"is damaged \(.*recursion.*\)"),
    ("[]", r"is damaged \(it holds no JSON object\)"),
    ("null", r"is damaged \(it holds no JSON object\)"),
    ("{}", "lacks the key 'seed'"),
    ('{"seed": "1"}', "has a 'seed' of another form"),
    ('{"seed": 1, "files": []}', "has a 'files' of another form"),
]


@pytest.mark.parametrize(("content", "wrong"), WRONG)
def test_a_record_that_is_not_whole_is_refused_by_those_who_need_it_and_nothing_to_others(tmp_path, content, wrong):
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    assert_refused(rf"(?s)run\.json {wrong}; train it again\.$", read_record, path, "train it again", PARTS)
    assert read_if_whole(path, PARTS) is None


def test_a_whole_record_is_read_with_whatever_else_it_has(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"seed": 1, "date": "today"}')
    assert read_record(path, "train it again", PARTS) == read_if_whole(path) == {"seed": 1, "date": "today"}


def test_bytes_that_are_no_text_and_files_that_cannot_be_opened_are_refused(tmp_path):
    (tmp_path / "run.json").write_bytes(b"\xff{}")
    assert_refused(r"run\.json is damaged \(.*decode.*\); train", read_record, tmp_path / "run.json", "train it again")
    assert_refused(r"cannot be read \(Is a directory\); train it again", read_record, tmp_path, "train it again")


def test_a_list_is_no_object(tmp_path):
    path = tmp_path / "claims.json"
    path.write_text("[1]")
    assert read_json(path, "report again", list) == [1]
    path.write_text("{}")
    assert_refused(r"claims\.json is damaged \(it holds no JSON list\); report", read_json, path, "report again", list)
