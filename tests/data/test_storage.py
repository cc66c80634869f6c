import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.storage import load_arrays, read_columns, read_lines, save_arrays, write_lines
from shared.errors import ReplicationError

line = st.text(st.characters(codec="utf-8", exclude_characters="\n"))


@given(st.lists(line, max_size=5))
def test_lines_are_read_as_they_were_written(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "x"
    write_lines(path, lines)
    assert read_lines(path) == lines


def test_columns_are_read_together_and_must_be_of_one_length(tmp_path):
    for name, lines in {"en": ["a", "b"], "fr": ["c", "d"], "key": ["1", "2"]}.items():
        write_lines(tmp_path / f"test.{name}", lines)
    columns = read_columns(tmp_path, "test", ["en", "fr"], optional=["align", "key"])
    assert columns == {"en": ["a", "b"], "fr": ["c", "d"], "key": ["1", "2"]}
    with pytest.raises(ReplicationError, match=r"test\.align does not exist; run the fetch stage"):
        read_columns(tmp_path, "test", ["en", "align"])
    write_lines(tmp_path / "test.key", ["1"])
    with pytest.raises(ReplicationError, match=f"differ in length; fetch {tmp_path.name} again"):
        read_columns(tmp_path, "test", ["en"], optional=["key"])


def test_arrays_are_mapped_read_only_and_a_missing_one_is_named(tmp_path):
    save_arrays(tmp_path / "new", {"a": np.arange(3), "b": np.ones((2, 2))})
    a, b = load_arrays(tmp_path / "new", ["a", "b"])
    assert a.tolist() == [0, 1, 2]
    assert b.shape == (2, 2)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with pytest.raises(ReplicationError, match=r"new is incomplete .*c\.npy.* run the prepare stage again"):
        load_arrays(tmp_path / "new", ["a", "c"])
