"""The ledgers of attempts hold every verdict that ever stood in a report, and are only ever added to."""

import json
import math
import subprocess
from pathlib import Path

import pytest

from shared.claims.attempts import read_ledger
from tests.refused import assert_refused

ROOT = Path(__file__).parents[1]
FILLED = "2d0601b29c9f20dd779258b6c3bef33562e77d3b"
"""The commit from which on lines are only added."""
LEDGERS = sorted((ROOT / "replications").glob("*/attempts.jsonl"))


def git(*arguments, given=None):
    done = subprocess.run(["git", *arguments], cwd=ROOT, input=given, capture_output=True)
    if done.returncode:
        pytest.skip("there is no git history here")
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def _whole_history():
    if git("rev-parse", "--is-shallow-repository").strip() == b"true":
        pytest.skip("the clone is shallow, so that the verdicts of the past are not in it")


def versions(pattern, *options):
    """(path, content) of all versions of files in history, from the oldest."""
    said = git("log", *options, "-m", "--reverse", "--format=", "--raw", "--no-abbrev", "--", pattern).decode()
    rows = [(path, head.split()[3]) for head, _, path in (line.partition("\t") for line in said.splitlines())]
    rows = [row for row in dict.fromkeys(rows) if row[1].strip("0")]  # 0 is a file that was taken away
    output = git("cat-file", "--batch", given="".join(f"{blob}\n" for _, blob in rows).encode())
    found = []
    for path, _ in rows:
        head, _, output = output.partition(b"\n")
        size = int(head.split()[2])
        found.append((path, output[:size].decode("utf-8")))
        output = output[size + 1 :]
    return found


def rounded(effect):
    return None if effect is None or math.isnan(effect) else float(f"{effect:.6g}")


def found(effects, effect):
    """What was measured: the effects of the seeds, to which a report may have added earlier ones for its mean."""
    return tuple(map(rounded, effects)) or rounded(effect)


def test_no_verdict_of_the_past_is_missing():
    known = {
        (path.parent.name, line["claim"], line["scale"], line["verdict"], found(line["effects"], line["effect"]))
        for path in LEDGERS
        for line in read_ledger(path)
    }
    past = set()
    for path, content in versions("reports/*/*/claims.json", "--full-history"):
        _, scale, paper, _ = path.split("/")
        for entry in json.loads(content) if scale != "smoke" else ():
            lead = entry.get("lead", entry)
            if entry["verdict"] != "not tested" and lead is not None:
                effects = found(lead.get("per_seed", ()), lead["effect"])
                past.add((paper, entry["id"], scale, entry["verdict"], effects))
    assert len(past) > 200
    assert past - known == set()


def test_nothing_is_taken_out_of_a_ledger():
    past = versions("replications/*/attempts.jsonl", "--first-parent", f"{FILLED}~1..HEAD")
    assert {ROOT / path for path, _ in past} <= {*LEDGERS}
    shortened = [path for path, content in past if not (ROOT / path).read_text(encoding="utf-8").startswith(content)]
    assert shortened == []


@pytest.mark.parametrize("text", ["{", "[]", '{"claim": "T99-C1"}'])
def test_a_damaged_line_is_refused_by_its_number(text, tmp_path):
    path = tmp_path / "attempts.jsonl"
    path.write_text(LEDGERS[0].read_text(encoding="utf-8").splitlines()[0] + f"\n{text}\n", encoding="utf-8")
    assert_refused(r"attempts\.jsonl: line 2 is damaged; take the file from git again", read_ledger, path)
