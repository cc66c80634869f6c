"""The plan of a scale, which ``freeze`` writes before the deciding runs: what decides every claim, in hashes.

``plan.json`` holds hashes of what decides each claim (its comparison or identities, and the floor of its task, without
the sentences that give reasons) and of all settings of each variant that decides a claim; and when that was frozen,
after which earlier plans of the claim. Later changes are allowed. They are found by comparison with the plan, and
reported beside the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from shared.claims import rules, schema
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import REPLICATIONS, write_json
from shared.pipeline.provenance import hash_of, now, revision
from shared.records import read_json

RULES = {
    "alpha": rules.ALPHA, "fewest_seeds": rules.FEWEST_SEEDS, "learned": rules.LEARNED, "left": rules.LEFT,
    "doubled_seeds": rules.DOUBLED_SEEDS,
}  # fmt: skip
SAID = {"because", "paper"}  # decides nothing: a sentence may be corrected without a new plan


class _At(BaseModel):
    commit: str
    date: str
    verdict: str | None = None


class _Decided(BaseModel):
    decided_by: str = Field(alias="decided by")
    floor: str
    variants: list[str]
    frozen: list[_At] = []


class _Plan(BaseModel):
    """What must be in a plan; more is allowed."""

    commit: str
    date: str
    rules: dict[str, Any]
    claims: dict[str, _Decided]
    variants: dict[str, str]
    search: str | None
    dropped: dict[str, list[_At]] = {}


class _Search(BaseModel):
    """What must be in the record of a search."""

    seeds: list[int]
    groups: list[dict[str, Any]]


def freeze_stage(paper: str, scale: str) -> None:
    """Write ``replications/<paper>/<scale>/plan.json``.

    Raises:
        ReplicationError: something is wrong with what it would freeze, it is not committed or there is no commit, or
            settings are not those that the search found best.
    """
    from shared.pipeline.check import check_stage
    from shared.pipeline.search import unfollowed
    from shared.reports.scales import claims_of

    check_stage(paper, scale)
    made_of, settings = revision(), ScaleFile(paper, scale)
    if made_of["git_dirty"]:
        raise ReplicationError(
            f"the plan of {paper} is frozen from a clean commit; commit what has changed, then freeze it again."
        )
    if made_of["git_commit"] is None:
        raise ReplicationError(
            f"the plan of {paper} names the commit that it is frozen at, and this folder has none; commit it with git, "
            "then freeze it again."
        )
    if lines := unfollowed(paper, scale):
        raise ReplicationError(lines[0])
    made = {"paper": paper, "scale": scale, "commit": made_of["git_commit"], "date": now()}
    reported = claims_of(Path("reports") / scale / paper) or []
    write_json(plan_path(settings), with_history(made | content(settings), load_plan(settings), reported))
    print(f"{plan_path(settings)}: frozen at {made_of['git_commit']}.")


def plan_path(settings: ScaleFile) -> Path:
    """``replications/<paper>/<scale>/plan.json``."""
    return settings.path.with_name("plan.json")


def found_path(settings: ScaleFile) -> Path:
    """``replications/<paper>/<scale>/search.json``."""
    return settings.path.with_name("search.json")


def load_plan(settings: ScaleFile) -> dict[str, Any] | None:
    """The frozen plan; None where there is none.

    Raises:
        ReplicationError: it cannot be read.
    """
    return _loaded(plan_path(settings), f"freeze {settings.paper} --scale {settings.scale}", _Plan)


def load_found(settings: ScaleFile) -> dict[str, Any] | None:
    """What the search found, ``search.json``; None where there was none.

    Raises:
        ReplicationError: it cannot be read.
    """
    return _loaded(found_path(settings), f"search {settings.paper} --scale {settings.scale}", _Search)


def _loaded(path: Path, command: str, shape: type[BaseModel]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    again = f"run 'python -m shared.pipeline {command}' again"
    found = read_json(path, again, dict)
    try:
        shape.model_validate(found)
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"]))
        raise ReplicationError(f"{path}: '{key}' is not what that command writes; {again}.") from None
    return found


def content(settings: ScaleFile) -> dict[str, Any]:
    """What a plan of these settings holds, beside commit and date."""
    claims = schema.load_claims(REPLICATIONS / settings.paper / "claims.yaml", settings.scale)
    decided = {claim.id: _decided(claims, claim, settings) for claim in claims.claims}
    names = sorted({name for part in decided.values() for name in part["variants"]})
    search = load_found(settings)
    return {
        "rules": RULES | {"looks": list(claims.looks)},
        "claims": decided,
        "variants": {name: hash_of(settings.run(name).model_dump(mode="json")) for name in names},
        "search": None if search is None else hash_of(search),
    }


def with_history(
    plan: Mapping[str, Any], before: Mapping[str, Any] | None, reported: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """A plan in which each claim has ``frozen``: when its own plan was, and before it the plans that this replaced.

    Args:
        plan: what is frozen now, with commit and date.
        before: the plan that it replaces; a claim that nothing has changed for keeps what that says of it. Plans of
            claims that are no more stand under ``dropped``, for they may come back.
        reported: entries of the report's claims.json; a plan that is replaced keeps the verdict that it came to.
    """
    verdicts, at = {entry["id"]: entry for entry in reported}, {key: plan[key] for key in ("commit", "date")}
    before = before or {"rules": {}, "claims": {}}
    past = before.get("dropped", {}) | {claim: _plans_of(claim, before) for claim in before["claims"]}
    rules_differ, claims = bool(_changed_rules(before, plan)), {}
    for claim, decided in plan["claims"].items():
        frozen = [*past.pop(claim, ())]
        if decided["variants"] and (not frozen or rules_differ or _changed(claim, before, plan)):
            entry = verdicts.get(claim, {})
            if frozen and (entry.get("ended") or "") > frozen[-1]["date"]:  # runs that ended after it have been judged
                frozen[-1] = frozen[-1] | {"verdict": str(entry["verdict"])}
            frozen.append(at)
        claims[claim] = {**decided, "frozen": frozen}
    return {**plan, "claims": claims, "dropped": {claim: frozen for claim, frozen in past.items() if frozen}}


def _plans_of(claim: str, plan: Mapping[str, Any]) -> list[dict[str, str]]:
    """The plans that a claim has had; plans of before there were dates name none."""
    then = plan["claims"][claim]
    return then.get("frozen") or ([{key: plan[key] for key in ("commit", "date")}] if then["variants"] else [])


def changes(settings: ScaleFile) -> dict[str, tuple[str, ...]] | None:
    """Claim to what deciding has changed since the plan was frozen; None where there is no plan."""
    plan = load_plan(settings)
    if plan is None:
        return None
    now = content(settings)
    different = [f"the rule '{name}'" for name in _changed_rules(plan, now)]
    if plan["search"] != now["search"]:
        different.append("what the search found")
    return {claim: (*different, *_changed(claim, plan, now)) for claim in now["claims"]}


def _changed_rules(plan: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The rules that have changed; a rule that is younger than the plan has not."""
    return [name for name, rule in now["rules"].items() if plan["rules"].get(name, rule) != rule]


def _changed(claim: str, plan: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    then, here = plan["claims"].get(claim), now["claims"][claim]
    if then is None:
        return ["the claim was not in the plan"]
    variants = sorted({*then["variants"], *here["variants"]})
    if not variants:  # no run of this scale decides it, then as now
        return []
    parts = {"decided by": "what decides the claim", "floor": "the floor of its task"}
    different = [name for name in variants if plan["variants"].get(name) != now["variants"].get(name)]
    changed = [words for part, words in parts.items() if then[part] != here[part]]
    return changed + [f"the settings of {name}" for name in different]


def _decided(claims: schema.Claims, claim: schema.Claim, settings: ScaleFile) -> dict[str, Any]:
    """What decides one claim at the scale: its comparison or identities, the floor, the variants."""
    deciding = [row for row in (claim.primary, *claim.identities) if row is not None]
    open_here = claim.undecided_at(settings.scale) is not None
    named = [*(name for row in deciding for name in row.compared()), *(claim.primary.doubled if claim.primary else ())]
    names = [] if open_here else settings.running(named)
    written = {
        task: floor.model_dump(mode="json", exclude={*SAID, "exempt"}) | {"exempt": sorted(floor.exempt)}
        for task in dict.fromkeys(settings.task_of(name) for name in names)
        if (floor := claims.floors.get(task)) is not None
    }
    decided_by = hash_of([[row.model_dump(mode="json", exclude=SAID) for row in deciding], open_here])
    return {"decided by": decided_by, "floor": hash_of(written), "variants": names}
