import pytest

from shared.data.storage import read_columns, write_lines
from shared.errors import ReplicationError


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
