"""Configurations and records: what is refused, how clearly, and how two of them are laid over each other."""

import copy
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from shared.config import Ascending, Strict, build, load_yaml, merge
from shared.records import read_if_whole, read_json, read_record
from tests.refused import assert_refused, sentence_of


class Optimiser(Strict):
    learning_rate: float = Field(gt=0)
    momentum: float = 0.9


class Training(Strict):
    optimiser: Optimiser
    updates: int = Field(default=100, ge=1)
    shape: tuple[int, float] = (1, 1.0)
    schedules: dict[str, list[Optimiser]] = Field(default={})


class Sizes(Strict):
    sizes: Ascending


GOOD = {"optimiser": {"learning_rate": 0.1}, "updates": 7}
MAPPINGS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)


def refusal(value: object) -> str:
    return sentence_of(build, Training, value, where="quick.yaml, rnnsearch")


def test_a_good_value_is_built_with_its_defaults_and_frozen() -> None:
    training = build(Training, {**GOOD, "shape": [1, 2]}, where="here")
    assert training.updates == 7
    assert training.shape == (1, 2.0)  # a list may stand for a tuple, and an integer for a float
    assert training.optimiser.momentum == 0.9
    with pytest.raises(ValidationError, match="frozen"):
        setattr(training, "updates", 8)  # noqa: B010  (what mypy would refuse)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({**GOOD, "update": 1}, "unknown key 'update' (did you mean 'updates'?)"),
        ({**GOOD, "optimizer": 1}, "unknown key 'optimizer' (did you mean 'optimiser'?)"),
        ({**GOOD, "momentum": 1}, "unknown key 'momentum' (did you mean 'schedules.momentum'?)"),
        ({**GOOD, "schedules": {"first": [{"learning_rat": 1.0, "learning_rate": 1.0}]}},
         "unknown key 'schedules.first.0.learning_rat' (did you mean 'learning_rate'?)"),
        ({**GOOD, "zzz": 1}, "unknown key 'zzz'."),
        *(({"optimiser": {"learning_rate": number}}, f"'optimiser.learning_rate': .*, got {number!r}")
          for number in (NAN, INF, -INF, 0.0, -1.0, "fast", True)),
        ({"optimiser": {"momentum": 0.5}, "updates": 0, "epochs": 3},
         "'optimiser.learning_rate': field required; 'updates': .*; unknown key 'epochs'"),
        *((value, "rnnsearch: 'value': ") for value in (None, [], "text", 3)),
        ({**GOOD, "updates": "3"}, "'updates': the text '3' is not a number; take off the quotes"),
        ({**GOOD, "shape": ["1", 2]}, "'shape.0': the text '1' is not a number"),
        ({**GOOD, "shape": [3]}, "'shape.1': field required"),
        ({**GOOD, "updates": 3.0}, "'updates': input should be a valid integer, got 3.0"),
        ({**GOOD, "updates": True}, "'updates': input should be a valid integer, got True"),
        ({"optimiser": {"learning_rate": "1e-9"}}, "the text '1e-9' is not a number; take off"),
        ({**GOOD, "schedules": {"a": [{"learning_rate": "0.5"}]}}, "'schedules.a.0.learning_rate': the text '0.5' is"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_keys_its_value_and_what_was_meant(value: object, problem: str) -> None:
    message = refusal(value)
    assert message.startswith("quick.yaml, rnnsearch: ")
    pattern = re.escape(problem).replace(r"\.\*", ".*")
    assert re.search(pattern, message)


def test_yaml_is_read_as_utf8_with_numbers_as_dvc_has_them(tmp_path: Path) -> None:
    path = tmp_path / "paper.yaml"
    path.write_text(
        "title: Übersetzung → Ausrichtung\nyear: 2015\nrates: [1e-9, 1.5E3, -2e+4, 1e, e9]\n", encoding="utf-8"
    )
    rates = [1e-9, 1500.0, -2e4, "1e", "e9"]
    assert load_yaml(path) == {"title": "Übersetzung → Ausrichtung", "year": 2015, "rates": rates}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert_refused(r"absent.yaml does not exist; check the path", load_yaml, tmp_path / "absent.yaml")


@given(st.lists(st.integers(-1, 6), max_size=4))
def test_sizes_ascend_or_are_refused(sizes: list[int]) -> None:
    if len(sizes) >= 2 and sizes == sorted({*sizes}) and sizes[0] > 0:
        assert build(Sizes, {"sizes": sizes}, where="here").sizes == sizes
        return
    assert_refused(r"here: 'sizes.*(, got|field required)", build, Sizes, {"sizes": sizes}, where="here")


@given(MAPPINGS)
def test_merging_nothing_changes_nothing(value: object) -> None:
    assert merge(value, {}) == (value if isinstance(value, dict) else {})
    assert merge({}, value) == value
    assert merge(value, value) == value


@given(MAPPINGS, MAPPINGS)
def test_the_override_wins_wherever_it_speaks_and_arguments_stay_as_they_were(a: object, b: object) -> None:
    before = copy.deepcopy((a, b))
    merged = merge(a, b)
    assert (a, b) == before
    for path, leaf in leaves(b):
        assert at(merged, path) == leaf
    if isinstance(a, dict) and isinstance(b, dict):
        assert list(merged) == [*a, *(key for key in b if key not in a)]
        assert all(merged[key] == a[key] for key in a if key not in b)


def leaves(value: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], object]]:
    """List the paths to everything in ``value`` that is not a mapping with something in it."""
    if not isinstance(value, dict) or (path and not value):
        return [] if isinstance(value, dict) else [(path, value)]
    return [found for key, inner in value.items() for found in leaves(inner, (*path, key))]


def at(value: object, path: tuple[str, ...]) -> object:
    """Return what lies in ``value`` at ``path``."""
    for key in path:
        assert isinstance(value, dict)
        value = value[key]
    return value


def test_merged_keys_may_be_overridden_and_merged_again(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: [*b, *a], y: 4}\nd: *b\n1: x\n'1': y\n")
    assert load_yaml(path) == {
        "a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"x": 3, "y": 4}, "d": {"x": 3, "y": 2}, 1: "x", "1": "y",
    }  # fmt: skip


def aliases_of_aliases(levels: int, first: str = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]") -> str:
    """Each line is ten times the line before."""
    lines = [f"a0: &a0 {first}"]
    return "\n".join([*lines, *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels))])


@pytest.mark.parametrize(("content", "said"), [
    (b"a: [1, 2\nb: 3\n", r" is not valid YAML: .*line 2"),
    (b"a: b: c\n", r" is not valid YAML: .*line 1"),
    (b"title: \xff\xfe\n", r" is not UTF-8 text \(.* at byte 7\)"),
    (b"x: !!python/object/apply:os.getcwd []\n", r" is not valid YAML: .*could not determine a constructor"),
    (b"a: " + 5_000 * b"9", r" has a value that cannot be read \(Exceeds the limit"),
    ("a:\n- 10\n- 010\n", ": line 3 has 010, which YAML reads as another number;"),
    ("a: 1:30\n", ": line 1 has 1:30, which"),
    ("a: [0_10]\n", ": line 1 has 0_10, which"),
    ("a: 1:30.5\n", ": line 1 has 1:30.5, which"),
    ("a: !!bool x\n", " has a value that cannot be read"),
    ("true: 1\nyes: 2\n", ": the key 'yes' stands in line 1 and again in line 2;"),
    ("1: 1\n1.0: 2\n", ": the key '1.0' stands in line 1 and again in line 2;"),
    ("a: 1\nb: 2\na: 3\n", ": the key 'a' stands in line 1 and again in line 3;"),
    ("a:\n  b: 1\n  c: 2\n  'b': 3\n", ": the key 'b' stands in line 2 and again in line 4;"),
    ("a: [{b: 1},\n {c: 1,\n b: 2, c: 3}]\n", ": the key 'c' stands in line 2 and again in line 3;"),
    ("base: &base\n  a: 1\n  a: 2\nother: {<<: *base}\n", ": the key 'a' stands in line 2 and again in line 3;"),
    ("a: 1\nb: " + "[" * 200_000 + "]" * 200_000, ": line 2 is nested more than 50 levels deep"),
    ("\n".join(f"{' ' * n}a:" for n in range(60)), ": line 51 is nested more than 50 levels deep"),
    ("- " * 300 + "1", ": line 1 is nested more than 50 levels deep"),
    (aliases_of_aliases(9, "[]"), ": in line 7 there are more than 1,000,000 values, aliases written out"),
    (
        f"a: &a {'[' * 40}1{']' * 40}\nb: &b {'[' * 9}*a{']' * 9}\nc: [*b]",
        ": line 3 is nested more than 50 levels deep",
    ),
    (aliases_of_aliases(9), ": in line 6 there are more than 1,000,000 values, aliases written out"),
    ("a: 1\nb: &whole {part: [*whole]}", r": '\*whole' in line 2 stands for what it is in"),
])  # fmt: skip
def test_what_is_not_plain_yaml_stands_twice_or_is_a_bomb_is_refused(
    tmp_path: Path, content: bytes | str, said: str
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert_refused(f"^{re.escape(str(path))}{said}", load_yaml, path)


def test_aliases_and_levels_within_bounds_are_read(tmp_path: Path) -> None:
    (path := tmp_path / "file.yaml").write_text(aliases_of_aliases(5) + f"\nb: {'[' * 48}{']' * 48}")
    assert len(load_yaml(path)["a4"][9][9][9][9]) == 10


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
