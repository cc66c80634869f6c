"""The ledger of a paper: a line for every attempt to decide one of its claims, whatever came of it.

Lines of ``replications/<paper>/attempts.jsonl`` are only ever added. What was tried before counts three times: the k-th
attempt of a claim has the share 6 / (π² k²) of the error rate, so that all together have no more than one alone;
effects of the same design are pooled with those of today; and other designs stay beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.claims.rules import FEWEST_SEEDS
from shared.errors import ReplicationError

Line = Mapping[str, Any]
NEEDED = {"claim", "scale", "plan", "design", "attempt", "verdict", "seeds", "effects", "relevant"}
"""Keys of a line, among others that are only shown."""


@dataclass(frozen=True)
class History:
    """What was tried before for a claim.

    Attributes:
        attempt: the number of today's, from 1; of a claim that has too few seeds to be decided, of the next.
        before: one line for each earlier attempt, as it was judged last.
        pool: seed to the effects of its other runs of today's design, as reports show them; to be added to those of
            today, without attempts that a line of the ledger calls ``void``.
        lines: the last one of every other design.
    """

    attempt: int = 1
    before: tuple[Line, ...] = ()
    pool: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()

    @property
    def penalty(self) -> float:
        """What p-values are multiplied by, so that a test at the usual level is one at the attempt's own."""
        return math.pi**2 / 6.0 * self.attempt**2


@dataclass(frozen=True)
class Ledger:
    """The attempts on a paper's claims so far, and the plans and designs of those claims today.

    Attributes:
        lines: of ``attempts.jsonl``, one for each attempt, in the order in which they were made.
        plans: claim to the digest of its plan.
        designs: claim to the digest of its plan without the seeds.
    """

    lines: Sequence[Line] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    designs: Mapping[str, str] = field(default_factory=dict)

    def history(
        self, claim: str, seeds: Sequence[int], effects: Sequence[float], relevant: float | None = None
    ) -> History:
        """What was tried before these effects of these seeds; the same numbers again are the same attempt."""
        of_claim = [line for line in self.lines if line["claim"] == claim]
        same = [line["attempt"] for line in of_claim if line["attempt"] and is_same(line, seeds, effects, relevant)]
        counted: dict[int, Line] = {line["attempt"]: line for line in of_claim if line["attempt"]}
        attempt = same[0] if same else 1 + max(counted, default=0)
        design, void = self.designs.get(claim), {line["attempt"] for line in of_claim if line.get("void")}
        now = {(seed, _rounded(effect)) for seed, effect in zip(seeds, effects, strict=False)}
        found, pool = dict[tuple[int, float | None], float](), dict[int, tuple[float, ...]]()
        for line in of_claim:
            if line["design"] == design and (line["attempt"] or 0) < attempt and line["attempt"] not in void:
                known = zip(line["seeds"], line["effects"], strict=False)
                found |= {(seed, _rounded(effect)): effect for seed, effect in known}
        for seed, rounded in [key for key in found if key not in now]:
            pool[seed] = (*pool.get(seed, ()), found[seed, rounded])
        others = {line["design"]: line for line in of_claim if line["design"] != design}
        before = tuple(counted[number] for number in sorted(counted) if number < attempt)
        return History(attempt, before, pool, tuple(others.values()))

    def new_lines(self, entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The lines that entries of claims.json add; none of those whose runs have been judged so before."""
        added: list[dict[str, Any]] = []
        for entry in (each for each in entries if each["lead"] is not None):
            lead, claim = entry["lead"], entry["id"]
            line = {
                "claim": claim, "scale": entry["scale"], "plan": self.plans.get(claim),
                "design": self.designs.get(claim), "attempt": entry["attempt"], "date": entry["ended"],
                "commits": entry["commits"], "machine": entry["machine"], "evidence": entry["evidence"],
                **{key: lead[key] for key in ("kind", "metric", "variants", "unit", "relevant")},
                "log": lead["scale"] == "log", "seeds": lead["seeds"], "effects": lead["per_seed"],
                "effect": lead["effect"], "interval": lead["interval"], "alone": lead["verdict"],
                "verdict": entry["verdict"], "how": entry["how"],
            }  # fmt: skip
            if not any(_is_again(each, line) for each in self.lines):
                added.append(line)
        return added


def is_same(line: Line, seeds: Sequence[int], effects: Sequence[float], relevant: float | None) -> bool:
    """Whether a line is of these effects, asked by the same bound."""
    then = [*line["seeds"]], [*map(_rounded, line["effects"])], line["relevant"]
    return then == ([*seeds], [*map(_rounded, effects)], relevant)


def _is_again(line: Line, new: Line) -> bool:
    same = all(line[key] == new[key] for key in ("claim", "scale", "plan", "verdict", "how"))
    return same and is_same(line, new["seeds"], new["effects"], new["relevant"])


def _rounded(effect: float | None) -> float | None:
    """To six digits, since a page keeps ten; null is no number."""
    return None if effect is None or not math.isfinite(effect) else float(f"{effect:.6g}")


def read_ledger(path: Path) -> list[Line]:
    """The lines of ``attempts.jsonl``; none where there is no file.

    Raises:
        ReplicationError: a line is damaged; says which.
    """
    found: list[Line] = []
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict) or not line.keys() >= NEEDED:
            raise ReplicationError(f"{path}: line {number} is damaged; take the file from git again.")
        found.append(line)
    return found


def append_lines(path: Path, lines: Sequence[Line]) -> None:
    """Add lines at the end of ``attempts.jsonl``; what stands there stays."""
    if lines:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def can_decide(seeds: Sequence[int]) -> bool:
    """Whether there are as many seeds as a verdict needs, which alone is an attempt."""
    return len(seeds) >= FEWEST_SEEDS
