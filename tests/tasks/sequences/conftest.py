"""Random data of every sort of sequences, fetched once, and the tasks that are prepared of them."""

import pytest

from tests.tasks import in_process
from tests.tasks.sequences.toy_sequence_models import COUNTS, write_copies, write_pictures, write_proteins


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Random proteins of 3 to 40 letters, random pictures of 4 x 4 pixels, and parameters of the copy task."""
    folder = tmp_path_factory.mktemp("data")
    write_proteins(folder / "proteins", COUNTS)
    write_pictures(folder / "pixels", COUNTS)
    write_copies(folder / "copies", symbols=6)
    return folder


@pytest.fixture
def prepared(data, tmp_path):
    """From a corpus to its prepared task."""
    return lambda corpus: in_process.prepared("sequences", corpus, data / corpus["of"], tmp_path / corpus["of"])[1]
