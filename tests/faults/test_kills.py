"""Nothing is lost, whatever is killed and whenever: the same command ends with the same bytes.

The few kills of the test suite are the same every time.
``python -m pytest tests/faults/test_kills.py -n 0 -s --kills 100 --seed 7`` makes more.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.killing import Table, Undisturbed, cases, kill

FEW = 9


@pytest.mark.slow
def test_a_killed_stage_is_made_again_to_the_same_bytes(
    undisturbed: Callable[[str], Undisturbed], request: pytest.FixtureRequest
) -> None:
    count = request.config.getoption("--kills", default=0) or FEW
    table = Table()
    for case in cases(count, request.config.getoption("--seed", default=7)):
        hit, faults = kill(undisturbed(case.kind), case)
        table.add(case, hit, faults)
        print(f"{case}: {'; '.join(faults) or ('equal' if hit else 'ended before, equal')}", flush=True)
    print(f"\n{table}")
    assert not table.failures, table
    assert 2 * table.kills >= count, table
