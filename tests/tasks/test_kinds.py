"""The kinds of task: each has figures, and no other is one."""

import pytest

from shared.errors import ReplicationError
from shared.tasks.kinds import KINDS, part_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_figures_for_papers_that_list_none(kind):
    assert part_of(kind, "report").REPORT.figures


def test_an_unknown_kind_is_refused():
    with pytest.raises(ReplicationError, match="no kind of task 'poetry'; there are captioning, classification"):
        part_of("poetry", "report")
