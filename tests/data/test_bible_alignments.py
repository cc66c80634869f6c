import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.readers.bible import tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\"don't--he said, 'O man-child!'\" (12,000)", "“ don’t — he said , ‘ O man-child ! ’ ” ( 12,000 )"),
        ("'\"Do\" you,' said the kings' men...", "‘ “ Do ” you , ’ said the kings ’ men ..."),
        ('he said,"Go,\'", now;then.', "he said , ” Go , ’ ” , now ; then ."),
        ("", ""),
    ],
)
def test_plain_verses_are_written_as_the_aligned_text_is(text, expected):
    assert tokenize(text) == expected


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="'\"-")))
def test_tokenising_loses_nothing_but_white_space_and_is_idempotent(text):
    tokens = tokenize(text)
    assert "".join(tokens.split()) == "".join(text.split())
    assert tokenize(tokens) == tokens
