"""What people give to the command ``try``: pictures of any form, paths, numbers and any text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import replications  # noqa: F401  before a project of toys puts its own in its place
from shared.pipeline.__main__ import main
from shared.tasks.captioning import trial as captioning_trial
from tests.data.odd import EXAMPLES, NAME, PIECE
from tests.data.test_fuzz_binary import pictures
from tests.pipeline.toys import enter


@pytest.fixture
def tried(made, monkeypatch, capsys):
    """From a kind and an input to the exit status and what is printed, an error without the word that begins it."""
    monkeypatch.setattr(captioning_trial, "fetch", lambda dataset: None)

    def asked(kind, text):
        enter(made(kind), monkeypatch)
        capsys.readouterr()
        status = main(["try", f"toy_{kind}.short", "--scale", "smoke", "--", text])
        printed = capsys.readouterr()
        return status, printed.err if status else printed.out

    return asked


@EXAMPLES
@given(drawn=pictures(), cut=st.none() | st.integers(0, 60))
def test_a_picture_of_any_form_has_a_caption_and_what_is_none_is_refused(drawn, cut, tried, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "picture.png"
    content = b"" if cut == 0 else drawn[0] if cut is None else drawn[0][:-cut]
    path.write_bytes(content)
    status, printed = tried("captioning", str(path))
    if cut is None:
        assert status == 0, printed
    if status:
        assert printed.startswith(f"error: '{path}' cannot be read as a picture (")
        assert printed.endswith(" for a picture of the test split.\n")
    else:
        assert "Output" in printed


NUMBERS = ["3", "1 4", "3,1,4", " 2\n6\t", "003", "٣ 1", "8", "-1 2", "1.5", "1e3", "1;2", "9" * 5_000, "3 " * 9_000]
PATHS = ["test:", "/", "~", "a\0b", "\udce9", "https://e.org/a.png"]
ASKED = st.lists(PIECE | st.sampled_from(NUMBERS) | NAME | st.sampled_from(PATHS), max_size=3)


@EXAMPLES
@given(kind=st.sampled_from(["captioning", "sequences", "translation"]), asked=ASKED.map("".join))
def test_any_other_input_is_answered_or_refused_in_a_sentence(kind, asked, tried):
    status, printed = tried(kind, asked)
    numbers = re.fullmatch(r"\s*\d+([\s,]+\d+)*\s*", asked) and [int(each) for each in re.findall(r"\d{1,9}", asked)]
    if kind == "sequences":
        assert (status == 0) == bool(numbers and len(numbers) < 5 and all(0 < each < 7 for each in numbers))
    if kind == "captioning":
        assert (status == 0) == bool(re.fullmatch(r"\s*test:0*[0-7]\s*", asked))
    if status:
        assert printed.startswith("error: ")
        assert printed.endswith(".\n")
        assert len(printed.splitlines()) == 1
        assert len(printed) < 1_500
    else:
        assert "Output" in printed
