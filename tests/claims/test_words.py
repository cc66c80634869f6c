"""Numbers of things in sentences: helped, and nowhere written with a plural whatever the number is."""

import ast
import re

import pytest

from shared.claims.words import number_of

PLURALS = (
    "claims", "comparisons", "examples", "figures", "identities", "intervals", "models", "papers", "rows", "runs",
    "seeds", "sentences", "texts", "variants", "words",
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (number_of(1, "seed"), "1 seed"),
        (number_of(0, "seed"), "0 seeds"),
        (number_of(2, "seed"), "2 seeds"),
        (number_of(1, "variant is", "variants are"), "1 variant is"),
        (number_of(3, "identity", "identities"), "3 identities"),
        (number_of(1_234_567, "parameter"), "1,234,567 parameters"),
    ],
)
def test_one_is_called_as_one(said, expected):
    assert said == expected


def test_no_sentence_of_reports_and_claims_has_a_plural_after_any_number(root):
    """The pattern is an f-string's number followed by a plural noun; at least so many of something are never one."""
    bare = []
    for folder in ("shared/claims", "shared/reports"):
        for path in sorted((root / folder).rglob("*.py")):
            bare += [f"{path.name}: {said}" for said in plurals(path.read_text(encoding="utf-8"))]
    assert bare == []


def plurals(code):
    for text in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)):
        for value, after in zip(text.values, text.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            named = re.match(rf" (?:(?!over |of )[a-z]+ )?({'|'.join(PLURALS)})\b", after.value)
            if named and "number_of" not in ast.unparse(value) and not ast.unparse(value.value).isupper():
                yield ast.unparse(text)


def test_the_pattern_is_seen():
    assert (
        len([*plurals('f"{n} seeds", f"of {len(a)} supporting comparisons", f"{FEWEST_SEEDS} seeds", f"{n} hours"')])
        == 2
    )
