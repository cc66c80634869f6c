"""Nothing is lost, whatever is killed and whenever: the same command ends with the same bytes.

The few kills of the test suite are the same every time.
``python -m pytest tests/faults/test_kills.py -n 0 -s --kills 100 --seed 7`` makes more.
"""

from collections import Counter

import pytest

from tests.faults.killing import cases, kill

FEW = 9


@pytest.mark.slow
def test_a_killed_stage_is_made_again_to_the_same_bytes(undisturbed, request):
    count = request.config.getoption("--kills", default=0) or FEW
    table, kills, failures = Counter(), 0, []
    for case in cases(count, request.config.getoption("--seed", default=7)):
        hit, faults = kill(undisturbed(case.kind), case)
        came = f"{'killed' if hit else 'ended before'}, {'failed' if faults else 'equal'}"
        table[f"{case.stage:<9} {case.number.name:<8} {case.target:<8} {came}"] += 1
        kills += hit
        failures += [f"{case}: {fault}" for fault in faults]
        print(f"{case}: {'; '.join(faults) or came}", flush=True)
    print("", *(f"{row:<48} {number:>6}" for row, number in sorted(table.items())), sep="\n")
    assert not failures, "\n".join(failures)
    assert 2 * kills >= count, table
