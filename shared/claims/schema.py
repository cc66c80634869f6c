"""Claims as data: what a paper says, where it says it, and the one comparison of runs that decides it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from shared.claims.comparisons import Comparison, Correlation, Exact, Floor, Row, Sides
from shared.claims.rules import SCALES
from shared.config import Strict, build, check_name, load_yaml, merge
from shared.errors import ReplicationError
from shared.metrics.registry import known, measure, split_of

Provenance = Literal["C:paper", "C:code", "C:note", "D", "M"]
"""Where a number comes from: the paper, its authors' code, a note on it; derived by us; from memory."""

SHORT = 12  # words
ALL = "all"
"""Stands for every scale in ``not_decided`` and ``different_here``."""


class InPaper(Strict):
    """What the paper reports: in words, and as a number where it gives one."""

    text: str
    effect: float | None = None
    unit: str | None = None
    source: Provenance = "C:paper"


class Part(Strict):
    """One of the things that a claim says.

    Attributes:
        says: the part, as it stands inside of a sentence.
        by: name of the comparison that decides it: ``primary`` or a supporting one; in the file also from scales, and
            ``all`` the others, to names.
        not_tested: in its place, why nothing decides it.
    """

    says: str
    by: str | None = None
    not_tested: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Part:
        if (self.by is None) == (self.not_tested is None):
            raise ValueError("give 'by', the name of a comparison, or 'not_tested', why there is none")
        return self


class Claim(Strict):
    """One claim of a paper, and what decides it.

    Attributes:
        in_short: what is decided, in the paper's terms and at most 12 words, as they stand inside of a sentence.
        where: section, table or figure of the paper.
        primary: the one comparison that decides the claim; its evidence is the best that the scale affords.
        identities: for claims that hold by mathematics, given in place of ``primary``; all of them must hold.
        supporting: shown and counted; they decide nothing, but for those that a part names.
        parts: of a statement that says several things, each of them; it is reproduced only if all are.
        control: name of the supporting comparison that must show an effect, before one is said to be missing.
        by_mathematics: of a primary comparison that measures what a theorem or a closed form says, which one.
        ours: the paper does not make this claim; it is counted apart.
        not_decided: scale, or ``all``, to the reason why nothing decides the claim there.
        different_here: what a reader must know beside the verdict; in the file also scale, or ``all``, to it.
    """

    id: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*-C\d+$")
    statement: str
    in_short: str | None = None
    where: str
    in_paper: InPaper
    primary: Comparison | None = None
    identities: tuple[Exact, ...] = ()
    supporting: tuple[Row, ...] = ()
    parts: tuple[Part, ...] = ()
    control: str | None = None
    by_mathematics: str | None = None
    ours: bool = False
    not_decided: dict[str, str] = Field(default_factory=dict)
    different_here: str | None = None

    SCALES: ClassVar[frozenset[str]] = frozenset({*SCALES, ALL})

    @model_validator(mode="after")
    def _decidable(self) -> Claim:
        if self.in_short is not None and len(self.in_short.split()) > SHORT:
            raise ValueError(f"in_short is {len(self.in_short.split())} words long; say it in at most {SHORT}")
        if self.primary is not None and self.identities:
            raise ValueError("give 'primary' or 'identities', not both")
        if self.primary is None and not self.identities and ALL not in self.not_decided:
            raise ValueError(f"give 'primary' or 'identities', or under not_decided.{ALL} why nothing decides it")
        if unknown := sorted(self.not_decided.keys() - self.SCALES):
            raise ValueError(f"not_decided: '{unknown[0]}' is no scale")
        if not all(row.name for row in (*self.identities, *self.supporting)):
            raise ValueError("every supporting comparison and identity needs a 'name'")
        names = [row.name for row in self.rows()]
        if len(set(names)) < len(names):
            raise ValueError("the names of a claim's comparisons must differ")
        return self

    @property
    def deciding(self) -> list[Row]:
        """What decides the claim: its primary comparison or identities, and those that its parts name."""
        first: list[Row] = [*([self.primary] if self.primary else ()), *self.identities]
        named = [row for part in self.parts for row in self.rows() if row.name == part.by]
        return first + [row for row in named if row not in first]

    @model_validator(mode="after")
    def _measurable(self) -> Claim:
        for row in self.rows():
            if not isinstance(row, Exact) and (mistake := _mistake(row, decides=row in self.deciding)):
                raise ValueError(f"'{row.name}': {mistake}")
        return self

    def undecided_at(self, scale: str) -> str | None:
        """Why nothing decides the claim at ``scale``; None where something does."""
        return self.not_decided.get(scale, self.not_decided.get(ALL))

    def rows(self) -> list[Row]:
        """Everything that is computed for the claim, what decides it first."""
        return [*([self.primary] if self.primary else ()), *self.identities, *self.supporting]


def _mistake(row: Comparison, *, decides: bool) -> str | None:
    """What is wrong with the metric of a comparison, or with an effect that no runs could show; None if nothing is."""
    if decides and not row.because:
        return "it decides, and must say why 'relevant' matters, as 'because'"
    for metric in row.metrics():
        split, plain = split_of(metric)
        if split and known(plain) is not None:
            return f"metric '{metric}' names a split; give 'metric: {plain}' and 'where: {{split: {split}}}'"
    if "perplexity" in row.metric and row.scale == "plain" and not isinstance(row, Correlation):
        return f"metric '{row.metric}' is compared as it is; compare nats or bits, or give 'scale: log'"
    most = measure(row.metric).most
    if isinstance(row, Sides) and row.scale == "plain" and row.over is None:
        if row.than is None and row.relevant >= most:
            return f"relevant: no two values of {row.metric} differ by {row.relevant:g}"
        if row.than is not None and row.kind == "greater" and (wanted := row.than + row.relevant) > most:
            return f"relevant: {row.metric} is at most {most:g}, never {wanted:g}; lower it or 'than'"
    return None


class Claims(Strict):
    """A claims.yaml, at one scale.

    Attributes:
        floors: task to what its models must reach.
        claims: in the order of the file.
    """

    floors: dict[str, Floor] = Field(default_factory=dict)
    claims: tuple[Claim, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Claims:
        ids = [claim.id for claim in self.claims]
        if len(set(ids)) < len(ids):
            raise ValueError(f"every claim needs an id of its own, got {', '.join(ids)}")
        return self


def load_claims(path: Path, scale: str) -> Claims:
    """Read a claims.yaml, with the changes that comparisons and floors make at ``scale``.

    Both may carry ``at: {<scale>: {…}}``; that mapping is laid over them at this scale. A key that is null there is
    taken away; a floor or a supporting comparison that is null does not count.

    Raises:
        ReplicationError: the file is missing or wrong, or two claims share an id; says where.
    """
    document = load_yaml(path)
    if isinstance(document, dict):
        if isinstance(claims := document.get("claims"), list):
            document["claims"] = [_claim(claim, scale, path) for claim in claims]
        if isinstance(floors := document.get("floors"), dict):
            laid = {task: _at_scale(floor, scale, f"{path}: floors.{task}") for task, floor in floors.items()}
            document["floors"] = {task: floor for task, floor in laid.items() if floor is not None}
    return build(Claims, document, where=str(path))


def _claim(claim: Any, scale: str, path: Path) -> Any:
    """A claim at a scale; it is checked separately, so that an error message names its id."""
    if not isinstance(claim, dict):
        return claim
    where, own = f"{path}: {claim.get('id')}", claim.get("primary")
    groups = [key for key in ("primary", "identities", "supporting") if key in claim]
    laid = claim | {key: _at_scale(claim[key], scale, f"{where}: {key}") for key in groups}
    if is_null := isinstance(own, dict) and laid["primary"] is None:
        laid["primary"] = {key: value for key, value in own.items() if key != "at"}
    if isinstance(own, dict):
        laid["primary"] = {"name": "primary"} | laid["primary"]
        if "relevant" not in laid["primary"]:
            raise ReplicationError(f"{where}: primary.relevant is missing; give the smallest effect that matters.")
    if isinstance(claim.get("parts"), list):
        laid["parts"] = [_part(part, scale, where) for part in claim["parts"]]
    if isinstance(said := claim.get("different_here"), dict):
        laid["different_here"] = _different_at(said, scale, where)
    built = build(Claim, laid, where=where)
    if is_null and scale not in built.not_decided:
        raise ReplicationError(f"{where}: primary is null at {scale} scale; say why under not_decided.{scale}.")
    others = [str(row.get("name")) for row in claim.get("supporting", ()) if row]  # of other scales
    named = {"primary", *(row.name for row in built.supporting), *others}
    for name in filter(None, (built.control, *(part.by for part in built.parts))):
        check_name(name, named, f"{where}: it has no comparison")
    return built


def _part(part: Any, scale: str, where: str) -> Any:
    """A part at a scale: ``by`` may name one comparison for each."""
    if not (isinstance(part, dict) and isinstance(by := part.get("by"), dict)):
        return part
    for name in by:
        check_name(str(name), Claim.SCALES, f"{where}: parts: there is no scale")
    return part | {"by": by.get(scale, by.get(ALL))}


def _different_at(said: dict[str, Any], scale: str, where: str) -> str | None:
    """What is different at every scale, and then at this one."""
    if unknown := sorted(str(key) for key in said.keys() - Claim.SCALES):
        raise ReplicationError(f"{where}: different_here: '{unknown[0]}' is no scale.")
    if wrong := [key for key, words in said.items() if not (isinstance(words, str) and words)]:
        raise ReplicationError(f"{where}: different_here.{wrong[0]}: give a sentence, not {said[wrong[0]]!r}.")
    return " ".join(said[key] for key in (ALL, scale) if key in said) or None


def _at_scale(row: Any, scale: str, where: str) -> Any:
    """A row with the changes of its ``at[scale]`` applied, None if that is null; of several those that are left."""
    if isinstance(row, list):
        return [laid for each in row if (laid := _at_scale(each, scale, where)) is not None]
    if not (isinstance(row, dict) and isinstance(row.get("at"), dict)):
        return row
    if unknown := sorted(row["at"].keys() - (Claim.SCALES - {ALL})):
        raise ReplicationError(f"{where}.at: '{unknown[0]}' is no scale.")
    for name, changes in row["at"].items():
        if not isinstance(changes, dict | None):
            raise ReplicationError(
                f"{where}.at.{name}: give what changes at this scale as 'key: value', or null, not {changes!r}."
            )
    plain = {key: value for key, value in row.items() if key != "at"}
    own = row["at"].get(scale, {})
    if own is None:
        return None
    taken_away = {key for key, value in own.items() if value is None and plain.get(key) is not None}
    return {key: value for key, value in merge(plain, own).items() if key not in taken_away}
