"""What two collections of runs differ in: settings, measures and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shared.claims.differences import Difference, alike, difference, shared_metrics
from shared.claims.results import RunResults

Settings = Mapping[str, Any]
"""Dotted key to value, such as ``training.updates`` to 400."""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Side:
    """One of the two collections.

    Attributes:
        label: what it is called.
        runs: paper, then variant, to results.
        settings: paper, then variant, to settings; a variant whose settings cannot be found is left out.
        data: paper, then task, to the digest of its data as they were fetched.
        claims: paper to the entries of its report's claims.json.
    """

    label: str
    runs: Mapping[str, Mapping[str, RunResults]]
    settings: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[str, Sequence[Entry]] = field(default_factory=dict)


class Member(NamedTuple):
    """A variant of a paper on one side."""

    paper: str
    variant: str

    def __str__(self) -> str:
        return f"{self.paper}.{self.variant}"


class Pair(NamedTuple):
    """Two variants that are compared, one of each side."""

    left: Member
    right: Member

    def __str__(self) -> str:
        return str(self.left) if self.left == self.right else f"{self.left} and {self.right}"


@dataclass(frozen=True)
class Compared:
    """What came out.

    Attributes:
        sides: the two.
        pairs: variants of both that are compared.
        alone: variants that only one side has, by its label.
        settings: pair to key to the values of both.
        equal: the pairs that have the same numbers in every seed.
        differences: pair to measures; none of equal pairs, nor of pairs that share no measure.
        verdicts: entries of both, of claims whose verdict differs; None where a side has no such claim.
    """

    sides: tuple[Side, Side]
    pairs: Sequence[Pair]
    alone: Mapping[str, Sequence[str]]
    settings: Mapping[Pair, Mapping[str, tuple[Any, Any]]]
    equal: Sequence[Pair]
    differences: Mapping[Pair, Sequence[Difference]]
    verdicts: Sequence[tuple[Entry | None, Entry | None]]

    def members(self, pair: Pair) -> tuple[tuple[Side, Member], tuple[Side, Member]]:
        """Each side with its variant of a pair."""
        return (self.sides[0], pair.left), (self.sides[1], pair.right)

    @property
    def settings_known(self) -> bool:
        """Whether the settings of all pairs are at hand on both sides."""
        return all(_settings_of(*each) is not None for pair in self.pairs for each in self.members(pair))

    @property
    def changed(self) -> list[Pair]:
        """The pairs whose numbers differ."""
        return [pair for pair in self.pairs if pair not in self.equal]


def compared(left: Side, right: Side, chosen: Pair | None = None) -> Compared:
    """Compare all variants that both sides have, or the ``chosen`` two."""
    ours, theirs = _members(left), _members(right)
    both = [Pair(member, member) for member in ours if member in theirs]
    pairs = both if chosen is None else [chosen]
    alone = {
        side.label: [str(member) for member in members if member not in others]
        for side, members, others in ((left, ours, theirs), (right, theirs, ours))
        if chosen is None
    }
    equal = [pair for pair in pairs if alike(*_runs(left, right, pair))]
    found = {pair: _differences(left, right, pair) for pair in pairs if pair not in equal}
    return Compared(
        (left, right),
        pairs,
        {label: names for label, names in alone.items() if names},
        {pair: changed for pair in pairs if (changed := _settings(left, right, pair))},
        equal,
        {pair: measures for pair, measures in found.items() if measures},
        [] if chosen is not None else [*_verdicts(left, right)],
    )


def _members(side: Side) -> list[Member]:
    return [
        Member(paper, variant)
        for paper, results in side.runs.items()
        for variant, run in results.items()
        if run.seeds and not run.members
    ]


def _settings_of(side: Side, member: Member) -> Settings | None:
    return side.settings.get(member.paper, {}).get(member.variant)


def _settings(left: Side, right: Side, pair: Pair) -> dict[str, tuple[Any, Any]]:
    ours, theirs = _settings_of(left, pair.left), _settings_of(right, pair.right)
    if ours is None or theirs is None:
        return {}
    keys = {**ours, **theirs}
    return {key: (ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)}


def _runs(left: Side, right: Side, pair: Pair) -> tuple[RunResults, RunResults]:
    return left.runs[pair.left.paper][pair.left.variant], right.runs[pair.right.paper][pair.right.variant]


def _differences(left: Side, right: Side, pair: Pair) -> list[Difference]:
    ours, theirs = _runs(left, right, pair)
    digests = [
        side.data.get(member.paper, {}).get(run.task)
        for side, member, run in ((left, pair.left, ours), (right, pair.right, theirs))
    ]
    without_data = not (ours.task or theirs.task)
    same = without_data or (None not in digests and digests[0] == digests[1])
    return [difference(ours, theirs, metric, same_data=same) for metric in shared_metrics(ours, theirs)]


def _verdicts(left: Side, right: Side) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Claims of papers that both sides have a report of, in the order of the first."""
    for paper in left.claims:
        if paper in right.claims:
            ours, theirs = ({entry["id"]: entry for entry in side.claims[paper]} for side in (left, right))
            for claim in {**ours, **theirs}:
                pair = ours.get(claim), theirs.get(claim)
                if len({entry["verdict"] if entry else None for entry in pair}) > 1:
                    yield pair
